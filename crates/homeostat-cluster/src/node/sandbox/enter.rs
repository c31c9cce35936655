//! Runs one more program inside a running container: `kubectl exec`, exec probes, lifecycle hooks.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sched::{CloneFlags, setns};
use nix::unistd::{chdir, chroot, fchdir, setsid};

use super::step::{Step, typed_signals};
use super::{Entry, Program, Tier, began, exit_code, init, parent, take_ports};

/// Exit code when the program could not be started, as shells have it.
const NOT_STARTED: i32 = 126;

/// `sandbox enter FILE`: the file holds an [`Entry`] and is removed once read.
pub(super) fn main(args: &[String]) -> i32 {
    match run(args) {
        Ok(code) => code,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "standard error is the caller's terminal")]
            {
                eprintln!("{error}");
            }
            NOT_STARTED
        }
    }
}

fn run(args: &[String]) -> Result<i32> {
    let file = args.first().ok_or_else(|| Error::other("no entry file named"))?;
    let text = fs::read(file).map_err(|error| at(file, &error))?;
    let entry: Entry = serde_json::from_slice(&text)?;
    fs::remove_file(file).map_err(|error| at(file, &error))?;
    if entry.terminal {
        setsid()?;
        // A session leader without a terminal gets the first one it opens.
        let terminal = "/proc/self/fd/0";
        let opened = File::options().read(true).write(true).open(terminal);
        opened.map_err(|error| at(terminal, &error))?;
    }
    if entry.tier != Tier::Raw {
        join(&entry).map_err(|error| at("the container cannot be entered", &error))?;
    }
    // In the container's namespaces, where it takes no renouncing of rights. A host that does not
    // allow it was complained about when the container started.
    take_ports(entry.ports.as_ref())?;
    if entry.terminal {
        // Control-C is for the program: what it makes of it is the exit code. Before there is one, or
        // it may be typed when the program runs and this process has not come so far.
        typed_signals().thread_block()?;
    }
    let mut child =
        bound(&entry)?.spawn().map_err(|error| Error::other(init::why(&entry.program, &error)))?;
    Ok(exit_code(child.wait()?))
}

/// The program, which ends with this process: whoever ends that, a client that hung up or a probe
/// whose time is over, ends the program too.
fn bound(entry: &Entry) -> Result<Command> {
    let Program { user, group, groups, .. } = entry.program.clone();
    // From inside a pid namespace, a parent outside of it is 0.
    let parent = if entry.tier == Tier::Raw { std::process::id() } else { 0 };
    // Called so there and not here: this process is in no pid namespace where it could find itself.
    let called = entry.tier == Tier::User;
    let (parent, unblocks) = (Some(parent), entry.terminal);
    let step = Step { parent, user, group, groups, called, unblocks, ..Step::default() };
    let mut command = step.command(&entry.program)?;
    if !entry.terminal {
        command.process_group(0);
    }
    Ok(command)
}

fn join(entry: &Entry) -> Result<()> {
    // Whatever becomes of the number, this is one process.
    let process = Process::open(entry.init)?;
    let root = process.file("root")?;
    let mut spaces = Vec::new();
    if entry.tier == Tier::User {
        let user = Process::open(entry.outer)?.file("ns/user")?;
        spaces.push((user, CloneFlags::CLONE_NEWUSER));
    }
    for (name, flag) in [
        ("ns/uts", CloneFlags::CLONE_NEWUTS),
        ("ns/ipc", CloneFlags::CLONE_NEWIPC),
        ("ns/pid", CloneFlags::CLONE_NEWPID),
        ("ns/mnt", CloneFlags::CLONE_NEWNS),
    ] {
        spaces.push((process.file(name)?, flag));
    }
    process.must_be_child_of(entry)?;
    // All are opened before the first is joined: afterwards the paths mean something else.
    for (space, flag) in &spaces {
        setns(space, *flag).map_err(|error| at(&format!("{flag:?}"), &error.into()))?;
    }
    fchdir(&root)?;
    chroot(".")?;
    chdir("/")?;
    Ok(())
}

/// A process of the host, held by its directory: a number that is given to another process does not
/// lead there.
struct Process(File);

impl Process {
    fn open(number: i32) -> Result<Self> {
        let path = format!("/proc/{number}");
        Ok(Self(File::open(&path).map_err(|error| at(&path, &error))?))
    }

    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    fn file(&self, name: &str) -> Result<File> {
        File::open(self.path().join(name)).map_err(|error| at(name, &error))
    }

    /// That this is the container's init, and not another process with its number: its parent is,
    /// even now, the process that the agent started.
    fn must_be_child_of(&self, entry: &Entry) -> Result<()> {
        let outer = Path::new("/proc").join(entry.outer.to_string());
        let child = parent(&self.path()) == Some(u64::from(entry.outer.cast_unsigned()));
        if child && began(&outer) == Some(entry.began) {
            return Ok(());
        }
        Err(Error::other("it has ended"))
    }
}

/// The error with what it is about; the system's own words are none for people.
fn at(what: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("{what}: {error}"))
}
