//! The inner half of the sandbox: pid 1 of a container.
//!
//! It starts the program, passes signals on, reaps orphans, and ends with the program's exit code;
//! the kernel then ends whatever the program left behind.

use std::io::{BufReader, Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::outer::map_ids;
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
    let command = command_with(&program, spec.input, input);
    match command.and_then(|mut command| command.spawn()) {
        Ok(child) => Ok(Pid::from_raw(child.id().cast_signed())),
        Err(error) => Err((why(&program, &error), true)),
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
    if let Some(group) = program.group {
        command.gid(group);
    }
    if let Some(user) = program.user {
        command.uid(user);
    }
    command
}

/// The program in a process group of its own, with its input; one with a terminal leads the session
/// of that terminal.
pub(super) fn command_with(
    program: &Program,
    input: Input,
    descriptor: Option<OwnedFd>,
) -> Result<Command> {
    match (input, descriptor) {
        (Input::Terminal { .. }, Some(terminal)) => {
            let lead = ["/proc/self/exe", "sandbox", "lead"].map(String::from);
            let argv = lead.into_iter().chain(program.argv.iter().cloned()).collect();
            let mut command = command(&Program { argv, ..program.clone() });
            command.stdout(terminal.try_clone()?).stderr(terminal.try_clone()?).stdin(terminal);
            Ok(command)
        }
        (_, descriptor) => {
            let mut command = command(program);
            command.stdin(descriptor.map_or_else(Stdio::null, Stdio::from)).process_group(0);
            Ok(command)
        }
    }
}

/// `sandbox lead PROGRAM ARG…`: becomes the program, at the terminal that standard input is.
pub(super) fn lead(args: &[String]) -> i32 {
    let Some((name, rest)) = args.split_first() else { return 127 };
    let error = nix::unistd::setsid()
        .map_err(Error::from)
        .and_then(|_| Ok(rustix::process::ioctl_tiocsctty(std::io::stdin())?))
        .err()
        .unwrap_or_else(|| Command::new(name).args(rest).exec());
    #[expect(clippy::print_stderr, reason = "standard error is the container's terminal")]
    {
        eprintln!("exec: {name:?}: {error}");
    }
    if error.kind() == ErrorKind::NotFound { 127 } else { 126 }
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
