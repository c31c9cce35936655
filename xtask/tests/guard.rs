//! What `cargo xtask` starts ends with it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(clippy::disallowed_methods, reason = "it waits for other processes, in real time")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A number that stands in no other command line.
const MARK: &str = "86311.5";

/// The processes with the mark, but for those that merely say it.
fn marked() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| {
        let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
        line.starts_with("sleep").then(|| line.replace('\0', " "))
    });
    lines.filter(|line| line.contains(MARK)).collect()
}

#[test]
fn a_program_and_what_it_started_end_when_whoever_started_it_is_killed() {
    let script = format!("sleep {MARK} & sleep {MARK} & echo ready; wait");
    let mut run = Command::new("sh")
        .args(["-c", r#""$0" guard --parent=$$ -- sh -c "$1"; true"#])
        .args([env!("CARGO_BIN_EXE_xtask"), &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    assert_eq!(marked().len(), 2, "they run");
    run.kill().unwrap();
    run.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !marked().is_empty() {
        assert!(Instant::now() < deadline, "they go on: {:?}", marked());
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn a_guarded_program_ends_with_its_own_code() {
    let run = |script: &str| {
        let parent = format!("--parent={}", std::process::id());
        let arguments = ["guard", &parent, "--", "sh", "-c", script];
        Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).status().unwrap().code()
    };
    assert_eq!(run("exit 0"), Some(0));
    assert_eq!(run("exit 7"), Some(7));
    assert_eq!(run("kill -KILL $$"), Some(137));
}

#[test]
fn a_guarded_program_hears_every_signal() {
    let parent = format!("--parent={}", std::process::id());
    let blocked = ["guard", &parent, "--", "grep", "^SigBlk", "/proc/self/status"];
    let said = Command::new(env!("CARGO_BIN_EXE_xtask")).args(blocked).output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    let mask = said.split_whitespace().nth(1).unwrap();
    assert_eq!(u64::from_str_radix(mask, 16), Ok(0), "{said}");
}
