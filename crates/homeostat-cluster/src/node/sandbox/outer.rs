//! The outer half of the sandbox: makes the namespaces and the root, keeps the cord to the agent.

use std::io::{BufReader, Error, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getegid, geteuid};

use crate::node::descriptor;

use super::step::Step;
use super::{Down, Spec, Tier, Up, cord, exit_code, init, parent, receive, root, send, take_ports};

/// Exit code when nothing could be started; the reason went up the cord.
const NOT_STARTED: i32 = 125;

pub(super) fn main() -> i32 {
    let Ok(mut agent) = cord() else { return NOT_STARTED };
    match run(&agent) {
        Ok(code) => code,
        Err(error) => {
            let report = Up::Failed { message: error.to_string(), program: false };
            // The agent may be gone, and then nobody needs the reason.
            let _ = send(&mut agent, &report);
            NOT_STARTED
        }
    }
}

fn run(agent: &UnixStream) -> Result<i32> {
    let input = descriptor::receive(agent, &mut [0])?;
    let mut lines = BufReader::new(agent.try_clone()?);
    let Some(Down::Start(spec)) = receive(&mut lines)? else {
        return Err(Error::other("the agent went away before it said what to start"));
    };
    if spec.tier == Tier::Raw {
        set_child_subreaper(true)?;
    } else {
        isolate(spec.tier)?;
        root::build(&spec)?;
    }
    // Before init: what the container starts is under the filter from its first instruction.
    let shares_ports = take_ports(spec.ports.as_ref())?;
    let (mut child, started) = start(&spec, input, shares_ports)?;
    send(&mut &*agent, &started)?;
    if matches!(started, Up::Failed { .. }) {
        child.wait()?;
        return Ok(NOT_STARTED);
    }
    let code = attend(spec.tier, &mut child, &mut lines)?;
    if spec.tier == Tier::Raw {
        sweep();
    }
    Ok(code)
}

/// Passes signals on until the child ends; ends it when the agent is gone.
fn attend(tier: Tier, child: &mut Child, lines: &mut BufReader<UnixStream>) -> Result<i32> {
    // One thread has to do: a process that made a pid namespace cannot start another.
    let mut watched = SigSet::empty();
    watched.add(Signal::SIGCHLD);
    watched.thread_block()?;
    let ended = SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let mut connected = true;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(exit_code(status));
        }
        let ready = {
            let mut waits = vec![PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
            if connected {
                waits.push(PollFd::new(lines.get_ref().as_fd(), PollFlags::POLLIN));
            }
            if lines.buffer().is_empty() {
                poll(&mut waits, PollTimeout::NONE)?;
            }
            waits.get(1).and_then(PollFd::any).unwrap_or(false) || !lines.buffer().is_empty()
        };
        // Taken off so that the next wait is for the next child.
        while let Ok(Some(_)) = ended.read_signal() {}
        if ready {
            if let Ok(Some(Down::Signal(number))) = receive(lines) {
                forward(tier, pid, number);
            } else {
                connected = false;
                forward(tier, pid, Signal::SIGKILL as i32);
            }
        }
    }
}

/// Ends what the program left behind where no pid namespace does it: orphans are handed to this
/// process, which asked for them.
fn sweep() {
    loop {
        for orphan in children() {
            // Gone already is as good.
            let _ = kill(orphan, Signal::SIGKILL);
        }
        if waitpid(None, None) == Err(Errno::ECHILD) {
            return;
        }
    }
}

fn children() -> Vec<Pid> {
    let me = u64::from(std::process::id());
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter(|entry| parent(&entry.path()) == Some(me))
        .filter_map(|entry| Some(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)))
        .collect()
}

fn forward(tier: Tier, pid: Pid, number: i32) {
    let Ok(signal) = Signal::try_from(number) else { return };
    // Errors mean that it is gone already.
    if tier == Tier::Raw && signal == Signal::SIGKILL {
        let _ = killpg(pid, signal);
    } else {
        let _ = kill(pid, signal);
    }
}

/// Starts init in the new pid namespace, or the program itself where there are no namespaces.
fn start(spec: &Spec, input: Option<OwnedFd>, shares_ports: Option<String>) -> Result<(Child, Up)> {
    if spec.tier == Tier::Raw {
        // No pid namespace ends the program with this process.
        let step = Step { parent: Some(std::process::id()), ..Step::default() };
        let child = init::run_program(&step, &spec.program, spec.input, input)?;
        let init = child.id().cast_signed();
        return Ok((child, Up::Started { init, shares_ports }));
    }
    let (mut ours, theirs) = UnixStream::pair()?;
    let child = Command::new("/proc/self/exe")
        .args(["sandbox", "init"])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    descriptor::send(&ours, b"\n", input.as_ref().map(AsFd::as_fd))?;
    // Whoever holds a terminal keeps its screen from ending.
    drop(input);
    send(&mut ours, &Down::Start(Box::new(spec.clone())))?;
    let answer = match receive(&mut BufReader::new(&ours))? {
        Some(Up::Started { .. }) => Up::Started { init: child.id().cast_signed(), shares_ports },
        Some(failed) => failed,
        None => Up::Failed { message: "the container's init ended at once".into(), program: false },
    };
    Ok((child, answer))
}

/// Leaves the host's namespaces; an ordinary user becomes root of a user namespace first.
fn isolate(tier: Tier) -> Result<()> {
    let spaces = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    if tier == Tier::User {
        let (user, group) = (geteuid(), getegid());
        unshare(spaces | CloneFlags::CLONE_NEWUSER)?;
        map_ids(0, user.as_raw(), 0, group.as_raw())?;
    } else {
        unshare(spaces)?;
    }
    Ok(())
}

/// Maps one user and one group of the parent namespace into the one this process just made.
pub(super) fn map_ids(user: u32, parent_user: u32, group: u32, parent_group: u32) -> Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {parent_user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {parent_group} 1"))
}

/// Answers with exit code 0 when the namespaces and the overlay can be made here.
pub(super) fn probe() -> i32 {
    let tier = if geteuid().is_root() { Tier::Root } else { Tier::User };
    let scratch = std::env::temp_dir();
    match isolate(tier).and_then(|()| root::overlay(tier, &scratch).map(drop)) {
        Ok(()) => 0,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "for whoever runs the probe by hand")]
            {
                eprintln!("{error}");
            }
            1
        }
    }
}
