//! The sandbox: how a container becomes processes that cannot outlive the agent.
//!
//! ```text
//! agent ──cord──▶ outer (new namespaces, new root) ──cord──▶ init (pid 1 inside) ──▶ the program
//! ```
//!
//! `outer` and `init` are the host binary started again ([`main_if_asked`]), because namespaces
//! need a process with one thread. The *cord* is a socket on standard input: the program's input as
//! a descriptor, JSON lines down (`Down`), one answer up (`Up`). When the agent dies, even by SIGKILL, the kernel closes the
//! cord, `outer` goes, and the pid namespace takes everything inside with it.
//!
//! Nothing here talks to the API or knows what a Pod is.

mod enter;
mod init;
mod outer;
mod root;
mod step;

use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::network::{Installed, OwnPorts};

/// What can be isolated on this host; probed once when the agent starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Only a process group: volumes are reached through `HOMEOSTAT_VOLUME_<NAME>`.
    Raw,
    /// Mount, pid, host name and IPC namespaces inside a user namespace of an ordinary user.
    User,
    /// The same namespaces, made by root.
    Root,
}

/// One bind mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// An absolute path of the host.
    pub source: PathBuf,
    /// An absolute path inside; made if it is missing.
    pub target: PathBuf,
    /// Whether writes are refused.
    pub read_only: bool,
}

/// Where a program reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// Nowhere: it is at the end at once.
    #[default]
    Nothing,
    /// What clients type.
    Pipe {
        /// Whether the first client that has no more to say is the last.
        once: bool,
    },
    /// A terminal, which it writes to as well.
    Terminal {
        /// As for a pipe.
        once: bool,
    },
}

/// What to run and where.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Program {
    /// The program and its arguments; `/proc/self/exe` is this binary.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// The working directory; `/` by default.
    pub directory: Option<PathBuf>,
    /// The user to become; stays who it is by default.
    pub user: Option<u32>,
    /// The group to become; stays what it is by default.
    pub group: Option<u32>,
    /// The groups to be in beside that one, where the agent is root; none by default.
    pub groups: Vec<u32>,
}

/// A container for `outer` to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// What to isolate.
    pub tier: Tier,
    /// The host name inside.
    pub hostname: String,
    /// An empty directory of the host on which the new root is built.
    pub scratch: PathBuf,
    /// What is mounted, in order.
    pub mounts: Vec<Mount>,
    /// Ports of its own; shares the host's by default.
    pub ports: Option<OwnPorts>,
    /// Where the program reads from.
    pub input: Input,
    /// What runs.
    pub program: Program,
}

/// A command for `kubectl exec` or a probe, run inside a running container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What the container is isolated by.
    pub tier: Tier,
    /// The pid of the container's `outer`, which stays in its first user namespace.
    pub outer: i32,
    /// When that process began, so that no other is taken for it.
    pub began: u64,
    /// The pid of the container's init.
    pub init: i32,
    /// Whether standard input is a terminal that must become the controlling one.
    pub terminal: bool,
    /// The ports of the container.
    pub ports: Option<OwnPorts>,
    /// What runs.
    pub program: Program,
}

/// What goes down the cord.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Down {
    /// The first line.
    Start(Box<Spec>),
    /// A signal for the program; SIGKILL for everything inside.
    Signal(i32),
}

/// What comes up the cord, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Up {
    /// The program runs; `init` is the pid to enter.
    Started {
        /// Pid of the container's first process, as `outer` sees it.
        init: i32,
        /// Why the program shares the host's ports although it should have its own.
        shares_ports: Option<String>,
    },
    /// Nothing runs.
    Failed {
        /// What could not be done, for a person.
        message: String,
        /// Whether the program itself could not be executed.
        program: bool,
    },
}

/// Runs the part of the sandbox, or the built-in image, that the command line asks for, and ends
/// the process; returns at once for any other command line. Call it first thing in `main`.
pub fn main_if_asked() {
    let mut args = std::env::args_os().skip(1);
    let verb = args.next();
    let part = args.next();
    let rest: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let code =
        match (verb.as_deref().and_then(OsStr::to_str), part.as_deref().and_then(OsStr::to_str)) {
            (Some("sandbox"), Some("outer")) => outer::main(),
            (Some("sandbox"), Some("init")) => init::main(),
            (Some("sandbox"), Some("enter")) => enter::main(&rest),
            (Some("sandbox"), Some("step")) => step::main(&rest),
            (Some("sandbox"), Some("probe")) => outer::probe(),
            (Some("image"), Some(image)) => super::image::builtin::main(image, &rest),
            _ => return,
        };
    std::process::exit(code);
}

/// Gives this process and what it starts the ports of the Pod; why not, when the host does not
/// allow it.
fn take_ports(ports: Option<&OwnPorts>) -> std::io::Result<Option<String>> {
    match ports.map(OwnPorts::install).transpose()? {
        None | Some(Installed::Yes) => Ok(None),
        Some(Installed::Refused(error)) => Ok(Some(error.to_string())),
    }
}

/// A second handle on the socket that standard input is.
fn cord() -> std::io::Result<UnixStream> {
    Ok(UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?))
}

fn send<T: Serialize>(stream: &mut impl Write, message: &T) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The next line, or `None` when the other end is gone.
fn receive<T: for<'de> Deserialize<'de>>(stream: &mut impl BufRead) -> std::io::Result<Option<T>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// When a process began, in ticks since the host did: with its number, who it is. `None` when it is
/// gone, and its number with it or somebody else's.
pub(crate) fn began(process: &Path) -> Option<u64> {
    stat(process, 19)
}

/// The parent of a process.
fn parent(process: &Path) -> Option<u64> {
    stat(process, 1)
}

/// A number that the kernel tells about a process, counted from its state (0).
fn stat(process: &Path, field: usize) -> Option<u64> {
    let all = std::fs::read_to_string(process.join("stat")).ok()?;
    // The name in parentheses comes first, and may hold anything.
    all.rsplit_once(") ")?.1.split(' ').nth(field)?.parse().ok()
}

/// The exit code a shell would show: the status, or 128 plus the signal.
pub(crate) fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
