//! Runs one more program inside a running container: `kubectl exec`, exec probes, lifecycle hooks.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::path::Path;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{chdir, chroot, fchdir, setsid};

use super::{Entry, Tier, exit_code, init};

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
    let mut entry: Entry = serde_json::from_slice(&fs::read(file)?)?;
    fs::remove_file(file)?;
    if entry.terminal {
        setsid()?;
        // A session leader without a terminal gets the first one it opens.
        File::options().read(true).write(true).open("/proc/self/fd/0")?;
    }
    if entry.tier != Tier::Raw {
        join(&entry)?;
    }
    if entry.tier == Tier::User {
        init::become_user(&mut entry.program)?;
    }
    let mut command = init::command(&entry.program);
    if !entry.terminal {
        command.process_group(0);
    }
    let mut child =
        command.spawn().map_err(|error| Error::other(init::why(&entry.program, &error)))?;
    if entry.terminal {
        // Control-C is for the program: what it makes of it is the exit code. Only now, for what is
        // blocked before is blocked in the program too.
        SigSet::from_iter([Signal::SIGINT, Signal::SIGQUIT]).thread_block()?;
    }
    Ok(exit_code(child.wait()?))
}

fn join(entry: &Entry) -> Result<()> {
    let process = Path::new("/proc").join(entry.init.to_string());
    let root = File::open(process.join("root"))?;
    let mut spaces = Vec::new();
    if entry.tier == Tier::User {
        let outer = Path::new("/proc").join(entry.outer.to_string());
        spaces.push((File::open(outer.join("ns/user"))?, CloneFlags::CLONE_NEWUSER));
    }
    for (name, flag) in [
        ("uts", CloneFlags::CLONE_NEWUTS),
        ("ipc", CloneFlags::CLONE_NEWIPC),
        ("pid", CloneFlags::CLONE_NEWPID),
        ("mnt", CloneFlags::CLONE_NEWNS),
    ] {
        spaces.push((File::open(process.join("ns").join(name))?, flag));
    }
    // All are opened before the first is joined: afterwards the paths mean something else.
    for (space, flag) in &spaces {
        setns(space, *flag)?;
    }
    fchdir(&root)?;
    chroot(".")?;
    chdir("/")?;
    Ok(())
}
