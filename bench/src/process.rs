//! What the system says about a process.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

/// Resident memory, in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    memory(pid, "VmRSS:")
}

/// The most memory that was ever resident, in bytes.
pub(crate) fn peak(pid: u32) -> Result<u64> {
    memory(pid, "VmHWM:")
}

fn memory(pid: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}

/// Processor time so far, of all threads, those that have ended too.
pub(crate) fn processor_time(pid: u32) -> Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid)?))?;
    Ok(clock.now()?.into())
}

/// What `start` starts has one processor to itself: how work gets from one to another is then no part of
/// what it costs.
pub(crate) fn on_one_processor<R>(start: impl FnOnce() -> Result<R>) -> Result<R> {
    let this_thread = Pid::from_raw(0);
    let all = sched_getaffinity(this_thread)?;
    let mut processors = 0..CpuSet::count();
    let first = processors.find(|number| all.is_set(*number).unwrap_or_default());
    let mut one = CpuSet::new();
    one.set(first.context("no processor")?)?;
    sched_setaffinity(this_thread, &one)?;
    let started = start();
    sched_setaffinity(this_thread, &all)?;
    started
}

/// The processes that `parent` has started.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of = |pid: &u32| stat(*pid).is_ok_and(|fields| fields[1] == parent.to_string());
    pids.filter(of).collect()
}

/// The fields of `/proc/PID/stat` after the name, which may hold anything.
fn stat(pid: u32) -> Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = stat.rsplit_once(") ").context("no name")?;
    Ok(rest.split(' ').map(str::to_owned).collect())
}

/// What the system says it runs on.
pub(crate) fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let model = if model.is_empty() { "an unknown processor" } else { model };
    match cores(Path::new("/sys/devices/system/cpu")) {
        Some(1) => format!("{cpus} × {model}, on one core"),
        Some(cores) => format!("{cpus} × {model}, on {cores} cores"),
        None => format!("{cpus} × {model}"),
    }
}

/// How many cores the processors are on: two that share one slow each other down, and the processor
/// time of whoever keeps both busy counts that twice.
fn cores(processors: &Path) -> Option<usize> {
    let siblings = |folder: fs::DirEntry| {
        fs::read_to_string(folder.path().join("topology/thread_siblings_list")).ok()
    };
    let cores: BTreeSet<_> =
        fs::read_dir(processors).ok()?.flatten().filter_map(siblings).collect();
    (!cores.is_empty()).then_some(cores.len())
}
