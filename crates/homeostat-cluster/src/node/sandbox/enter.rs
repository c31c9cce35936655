//! Runs one more program inside a running container: `kubectl exec`, exec probes, lifecycle hooks.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{
    Gid, Uid, chdir, chroot, fchdir, geteuid, getppid, setgid, setgroups, setsid, setuid,
};

use super::{Entry, Program, Tier, exit_code, init, take_ports};

/// The way in which an ordinary user runs a program as another one: it is called so.
const CALLED: &str = "called";

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
    let mut child =
        bound(&entry).spawn().map_err(|error| Error::other(init::why(&entry.program, &error)))?;
    if entry.terminal {
        // Control-C is for the program: what it makes of it is the exit code. Only now, for what is
        // blocked before is blocked in the program too.
        SigSet::from_iter([Signal::SIGINT, Signal::SIGQUIT]).thread_block()?;
    }
    Ok(exit_code(child.wait()?))
}

/// The program, by way of [`bound_main`]: whoever ends this process, a client that hung up or a probe
/// whose time is over, ends the program with it.
fn bound(entry: &Entry) -> Command {
    let mut program = entry.program.clone();
    let id = |id: Option<u32>| id.map_or_else(String::new, |id| id.to_string());
    // From inside a pid namespace, a parent outside of it is 0.
    let parent = if entry.tier == Tier::Raw { std::process::id() } else { 0 };
    let how = ["sandbox".into(), "bound".into(), parent.to_string()];
    let who = [id(program.user.take()), id(program.group.take())];
    let way = if entry.tier == Tier::User { CALLED } else { "" };
    let argv = ["/proc/self/exe".into()].into_iter().chain(how).chain(who);
    let argv = argv.chain([way.into()]).chain(program.argv);
    program.argv = argv.collect();
    let mut command = init::command(&program);
    if !entry.terminal {
        command.process_group(0);
    }
    command
}

/// `sandbox bound PARENT USER GROUP WAY PROGRAM ARG…`: becomes the program, which ends with its parent.
pub(super) fn bound_main(args: &[String]) -> i32 {
    let error = become_program(args).err().unwrap_or_else(|| Error::other("nothing to run"));
    #[expect(clippy::print_stderr, reason = "standard error is the caller's terminal")]
    {
        eprintln!("{error}");
    }
    NOT_STARTED
}

fn become_program(args: &[String]) -> Result<()> {
    let [parent, user, group, way, argv @ ..] = args else { return Ok(()) };
    let (user, group) = (user.parse().ok(), group.parse().ok());
    if way == CALLED {
        // Here and not in the parent, which is in no pid namespace where it could find itself.
        init::become_user(user, group).map_err(|error| at("the user cannot be changed", &error))?;
    } else {
        renounce(user, group).map_err(|error| at("the user cannot be changed", &error))?;
    }
    // After the change of user, which would undo it.
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid().to_string() != *parent {
        return Err(Error::other("nobody waits for the program any more"));
    }
    let program =
        Program { argv: argv.to_vec(), env: Vec::new(), directory: None, user: None, group: None };
    let error =
        Command::new(argv.first().map_or("", String::as_str)).args(argv.iter().skip(1)).exec();
    Err(Error::other(init::why(&program, &error)))
}

fn renounce(user: Option<u32>, group: Option<u32>) -> Result<()> {
    if let Some(group) = group {
        setgid(Gid::from_raw(group))?;
    }
    if let Some(user) = user {
        if geteuid().is_root() {
            setgroups(&[])?;
        }
        setuid(Uid::from_raw(user))?;
    }
    Ok(())
}

fn join(entry: &Entry) -> Result<()> {
    let open =
        |path: PathBuf| File::open(&path).map_err(|error| at(&path.to_string_lossy(), &error));
    let process = Path::new("/proc").join(entry.init.to_string());
    let root = open(process.join("root"))?;
    let mut spaces = Vec::new();
    if entry.tier == Tier::User {
        let outer = Path::new("/proc").join(entry.outer.to_string());
        spaces.push((open(outer.join("ns/user"))?, CloneFlags::CLONE_NEWUSER));
    }
    for (name, flag) in [
        ("uts", CloneFlags::CLONE_NEWUTS),
        ("ipc", CloneFlags::CLONE_NEWIPC),
        ("pid", CloneFlags::CLONE_NEWPID),
        ("mnt", CloneFlags::CLONE_NEWNS),
    ] {
        spaces.push((open(process.join("ns").join(name))?, flag));
    }
    // All are opened before the first is joined: afterwards the paths mean something else.
    for (space, flag) in &spaces {
        setns(space, *flag).map_err(|error| at(&format!("{flag:?}"), &error.into()))?;
    }
    fchdir(&root)?;
    chroot(".")?;
    chdir("/")?;
    Ok(())
}

/// The error with what it is about; the system's own words are none for people.
fn at(what: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("{what}: {error}"))
}
