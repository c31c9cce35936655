//! The inner half of the sandbox: pid 1 of a container.
//!
//! It starts the program, passes signals on, reaps orphans, and ends with the program's exit code;
//! the kernel then ends whatever the program left behind.

use std::io::{BufReader, Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::outer::map_ids;
use super::step::Step;
use super::{Down, Input, Program, Spec, Tier, Up, cord, receive, send};
use crate::node::descriptor;

pub(super) fn main() -> i32 {
    run().unwrap_or(125)
}

fn run() -> Result<i32> {
    set_pdeathsig(Signal::SIGKILL)?;
    let mut cord = cord()?;
    let input = descriptor::receive(&cord, &mut [0])?;
    let Some(Down::Start(spec)) = receive(&mut BufReader::new(cord.try_clone()?))? else {
        return Err(Error::other("no one to serve"));
    };
    let program = match start(&spec, input) {
        Ok(program) => program,
        Err((message, program)) => {
            send(&mut cord, &Up::Failed { message, program })?;
            return Ok(127);
        }
    };
    // Pid 1 gets no signal that it has no handler for: block them all, then take them one by one.
    let signals = SigSet::all();
    signals.thread_block()?;
    send(&mut cord, &Up::Started { init: 1, shares_ports: None })?;
    drop(cord);
    loop {
        if let Some(code) = reap(program) {
            return Ok(code);
        }
        match signals.wait()? {
            Signal::SIGCHLD => {}
            signal => {
                let _ = kill(program, signal);
            }
        }
    }
}

/// Collects every child that has ended; the code of `program` once it is among them.
fn reap(program: Pid) -> Option<i32> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => return Some(code),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                return Some(128 + signal as i32);
            }
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return None,
            Ok(_) | Err(_) => {}
        }
    }
}

/// The pid of the program, or what to say and whether the program is to blame.
fn start(spec: &Spec, input: Option<OwnedFd>) -> std::result::Result<Pid, (String, bool)> {
    // A process tree of the container's own, where the host allows it; else the host's stays.
    let _ = mount(
        Some("proc"),
        "/proc",
        Some("proc"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
        None::<&str>,
    );
    let mut program = spec.program.clone();
    if spec.tier == Tier::User {
        become_user(program.user.take(), program.group.take())
            .map_err(|error| (error.to_string(), false))?;
    }
    match run_program(&Step::default(), &program, spec.input, input) {
        Ok(child) => Ok(Pid::from_raw(child.id().cast_signed())),
        Err(error) => Err((error.to_string(), true)),
    }
}

/// An ordinary user cannot change its id, but it can be called by another one in a namespace.
pub(super) fn become_user(user: Option<u32>, group: Option<u32>) -> Result<()> {
    let Some(user) = user.filter(|user| *user != 0) else { return Ok(()) };
    unshare(CloneFlags::CLONE_NEWUSER)?;
    map_ids(user, 0, group.unwrap_or(user), 0)
}

/// The program as a command, with nothing inherited but the standard streams.
pub(super) fn command(program: &Program) -> Command {
    let mut command = Command::new(program.argv.first().map_or("", String::as_str));
    command
        .args(program.argv.iter().skip(1))
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)));
    command.current_dir(program.directory.as_deref().unwrap_or_else(|| "/".as_ref()));
    command
}

/// Runs the program in a process group of its own, as the user it is to be and with its input; one
/// with a terminal leads the session of that terminal.
pub(super) fn run_program(
    step: &Step,
    program: &Program,
    input: Input,
    descriptor: Option<OwnedFd>,
) -> Result<Child> {
    let Program { user, group, groups, .. } = program.clone();
    let leads = matches!(input, Input::Terminal { .. }) && descriptor.is_some();
    let step = Step { user, group, groups, leads, ..step.clone() };
    step.start(program, |command| {
        match descriptor {
            Some(terminal) if leads => {
                command.stdout(terminal.try_clone()?).stderr(terminal.try_clone()?).stdin(terminal);
            }
            descriptor => {
                command.stdin(descriptor.map_or_else(Stdio::null, Stdio::from)).process_group(0);
            }
        }
        Ok(())
    })
}

/// Why a program could not be executed, in words.
pub(super) fn why(program: &Program, error: &Error) -> String {
    let name = program.argv.first().map_or("", String::as_str);
    match error.kind() {
        ErrorKind::NotFound => format!(
            "exec: {name:?}: executable file not found in $PATH, or the working directory is missing"
        ),
        _ => format!("exec: {name:?}: {error}"),
    }
}
