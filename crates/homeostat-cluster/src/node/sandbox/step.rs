//! `sandbox step HOW PROGRAM ARG…`: the last step into a program. The process that takes it is the
//! sandbox's own until it has become who the program is to be, and then becomes the program.
//!
//! It is a step of its own because none of this can be asked of a process before it is started.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Gid, Uid, geteuid, getppid, setgid, setgroups, setsid, setuid};
use rustix::io::FdFlags;
use serde::{Deserialize, Serialize};

use super::{Program, init};

/// Exit codes when the program could not be started, as shells have them.
const NOT_STARTED: i32 = 126;
const NOT_FOUND: i32 = 127;

/// How a process is to become the program.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Step {
    /// Who it must not outlive; 0 for one outside of its pid namespace.
    pub(super) parent: Option<u32>,
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    /// The groups beside that one.
    pub(super) groups: Vec<u32>,
    /// Whether an ordinary user is only called by another one's number.
    pub(super) called: bool,
    /// Whether standard input is a terminal whose session it leads.
    pub(super) leads: bool,
    /// Whether it hears what is typed to end it, to which its parent is deaf.
    pub(super) unblocks: bool,
    /// The descriptor on which to say why the program could not be executed; standard error by
    /// default.
    pub(super) report: Option<i32>,
}

impl Step {
    /// The command that takes the step; whoever starts it sets the streams.
    pub(super) fn command(&self, program: &Program) -> Result<Command> {
        let how = serde_json::to_string(self)?;
        let way = ["/proc/self/exe".into(), "sandbox".into(), "step".into(), how];
        let argv = way.into_iter().chain(program.argv.iter().cloned()).collect();
        Ok(init::command(&Program { argv, ..program.clone() }))
    }

    /// Starts the program and returns when it runs.
    ///
    /// # Errors
    /// Why it does not; nothing is left of it then.
    pub(super) fn start(
        mut self,
        program: &Program,
        streams: impl FnOnce(&mut Command) -> Result<()>,
    ) -> Result<Child> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // Open in the process that takes the step, which closes it by becoming the program.
        rustix::io::fcntl_setfd(&writer, FdFlags::empty())?;
        self.report = Some(writer.as_raw_fd());
        let mut command = self.command(program)?;
        streams(&mut command)?;
        let started = command.spawn();
        drop(writer);
        let mut child = started.map_err(|error| Error::other(init::why(program, &error)))?;
        let mut words = String::new();
        File::from(reader).read_to_string(&mut words)?;
        if words.is_empty() {
            return Ok(child);
        }
        child.wait()?;
        Err(Error::other(words))
    }
}

/// Takes the step; returns the exit code when it cannot.
pub(super) fn main(args: &[String]) -> i32 {
    let Some((how, argv)) = args.split_first() else { return NOT_STARTED };
    let Ok(step) = serde_json::from_str::<Step>(how) else { return NOT_STARTED };
    let Ok(report) = step.report.map(closing_by_itself).transpose() else { return NOT_STARTED };
    let Err(error) = take(&step, argv) else { return NOT_STARTED };
    match report {
        // Nobody to tell means that nobody waits.
        Some(mut report) => drop(write!(report, "{error}")),
        None => {
            #[expect(clippy::print_stderr, reason = "standard error is the caller's terminal")]
            {
                eprintln!("{error}");
            }
        }
    }
    if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED }
}

/// What a terminal sends when somebody wants the program to end.
pub(super) fn typed_signals() -> SigSet {
    SigSet::from_iter([Signal::SIGINT, Signal::SIGQUIT])
}

/// The descriptor that was left open for this process, as one that the program will not have.
fn closing_by_itself(number: i32) -> Result<File> {
    let again = File::options().write(true).open(format!("/proc/self/fd/{number}"))?;
    nix::unistd::close(number)?;
    Ok(again)
}

fn take(step: &Step, argv: &[String]) -> Result<()> {
    let who = |error: Error| Error::other(format!("the user cannot be changed: {error}"));
    if step.leads {
        setsid()?;
        rustix::process::ioctl_tiocsctty(std::io::stdin())?;
    }
    if step.called {
        init::become_user(step.user, step.group).map_err(who)?;
    } else {
        renounce(step).map_err(who)?;
    }
    if let Some(parent) = step.parent {
        // After the change of user, which would undo it.
        set_pdeathsig(Signal::SIGKILL)?;
        if getppid().as_raw().cast_unsigned() != parent {
            return Err(Error::other("nobody waits for the program any more"));
        }
    }
    if step.unblocks {
        typed_signals().thread_unblock()?;
    }
    let name = argv.first().map_or("", String::as_str);
    let error = Command::new(name).args(argv.iter().skip(1)).exec();
    let program = Program { argv: argv.to_vec(), ..Program::default() };
    Err(Error::new(error.kind(), init::why(&program, &error)))
}

fn renounce(step: &Step) -> Result<()> {
    if let Some(group) = step.group {
        setgid(Gid::from_raw(group))?;
    }
    if geteuid().is_root() && (step.user.is_some() || !step.groups.is_empty()) {
        let groups: Vec<Gid> = step.groups.iter().copied().map(Gid::from_raw).collect();
        setgroups(&groups)?;
    }
    if let Some(user) = step.user {
        setuid(Uid::from_raw(user))?;
    }
    Ok(())
}
