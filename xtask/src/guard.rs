//! Programs that end with whoever started them, however that ends: a killed `cargo xtask test` leaves
//! no cargo behind that holds the lock of the build, and no test that goes on for nobody.
//!
//! This program stands in between as `xtask guard`: the kernel tells it when its parent is gone, and
//! it ends the program and all that the program started, which are a process group of their own.
//! What has made a group of its own is not its business.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getppid};

/// How long the program may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// What ends the program: the parent's end is told as the first.
const ENDS: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// `cargo xtask guard`
#[derive(clap::Args)]
pub(crate) struct Guard {
    /// Who started this; if it is another by now, it is gone.
    #[arg(long)]
    parent: i32,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// This very program, for whoever starts it again. Not by its name: the builds and tests that it runs
/// put another in its place.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

/// That program, guarded.
pub(crate) fn guarded(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(THIS_PROGRAM);
    command.arg("guard").arg(format!("--parent={}", std::process::id())).arg("--").arg(program);
    command
}

impl Guard {
    /// Runs the program and ends as it does.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let mut signals: SigSet = ENDS.into_iter().collect();
        signals.add(Signal::SIGCHLD);
        // Before anything can happen: they wait until they are asked for.
        signals.thread_block()?;
        set_pdeathsig(Signal::SIGTERM)?;
        if getppid() != Pid::from_raw(self.parent) {
            return Ok(ExitCode::FAILURE);
        }
        let (program, arguments) = self.program.split_first().context("no program")?;
        let mut command = Command::new(program);
        let child = hearing(signals, || command.args(arguments).process_group(0).spawn())?;
        let mut child =
            child.with_context(|| format!("{} could not be started", program.display()))?;
        loop {
            let heard = signals.wait()?;
            if let Some(status) = child.try_wait()? {
                return Ok(code(status));
            }
            if ENDS.contains(&heard) {
                return Ok(code(end(&mut child, heard)?));
            }
        }
    }
}

/// Starts something in a thread that hears the signals: a program inherits what is blocked, and could
/// not be asked to end.
fn hearing<T: Send>(signals: SigSet, start: impl FnOnce() -> T + Send) -> Result<T> {
    let started = std::thread::scope(|scope| {
        let thread = scope.spawn(move || signals.thread_unblock().map(|()| start()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    Ok(started?)
}

/// Ends the program and what it started: kindly, then not.
fn end(child: &mut Child, signal: Signal) -> Result<ExitStatus> {
    let group = Pid::from_raw(child.id().cast_signed());
    // Whoever loses its parent now becomes ours, and we hear of its end.
    set_child_subreaper(true)?;
    let _ = killpg(group, signal);
    let deadline = Instant::now() + GRACE;
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            let _ = killpg(group, Signal::SIGKILL);
            break child.wait()?;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // Others of the group may have outlived the first.
    let others = Pid::from_raw(-group.as_raw());
    loop {
        while matches!(
            waitpid(others, Some(WaitPidFlag::WNOHANG)),
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
        ) {}
        if killpg(group, None).is_err() {
            break;
        }
        if Instant::now() > deadline {
            let _ = killpg(group, Signal::SIGKILL);
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(ended)
}

/// As a shell tells it: the exit code, or 128 and the signal.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
