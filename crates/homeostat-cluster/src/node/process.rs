//! A running container seen from the agent: started, signalled, waited for, entered.
//!
//! Dropping every handle cuts the cord and thereby ends the container.

use std::fmt;
use std::io::{Error, Result};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, watch};

use super::descriptor;
use super::input::{self, Ends, Keyboard};
use super::network::{OwnPorts, Reception};
use super::sandbox::{Down, Entry, Program, Spec, Tier, Up, began, exit_code};

/// The binary that plays the sandbox's parts, and what it may do on this host.
#[derive(Debug, Clone)]
pub struct Helper {
    program: PathBuf,
    tier: Tier,
    reception: Arc<Reception>,
}

/// A container whose program runs, or ran.
#[derive(Debug, Clone)]
pub struct Container {
    helper: Helper,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cord: Mutex<OwnedWriteHalf>,
    outer: i32,
    began: u64,
    init: i32,
    program: Program,
    ports: Option<OwnPorts>,
    exit: watch::Receiver<Option<i32>>,
    keyboard: Option<Arc<Keyboard>>,
    entries: AtomicU64,
    scratch: PathBuf,
}

/// What a container writes.
pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A container that just started, with the streams to read its output from.
pub struct Started {
    /// The handle.
    pub container: Container,
    /// Its standard output, and everything else where it writes to a terminal.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
    /// Why it shares the host's ports although it should have its own.
    pub shares_ports: Option<String>,
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { container, stdout: _, stderr: _, shares_ports } = self;
        f.debug_struct("Started")
            .field("container", container)
            .field("shares_ports", shares_ports)
            .finish_non_exhaustive()
    }
}

/// Why a container did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The sandbox could not be made.
    #[error("{0}")]
    Sandbox(String),
    /// The program could not be executed.
    #[error("{0}")]
    Program(String),
}

impl From<Error> for StartError {
    fn from(error: Error) -> Self {
        Self::Sandbox(error.to_string())
    }
}

impl Helper {
    /// Finds out what `program` (a binary whose `main` calls
    /// [`main_if_asked`](super::sandbox::main_if_asked)) can isolate here.
    ///
    /// # Errors
    /// When the program cannot be started at all.
    pub async fn probe(program: PathBuf) -> Result<Self> {
        let able = Command::new(&program)
            .args(["sandbox", "probe"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await?
            .success();
        let tier = match (able, nix::unistd::geteuid().is_root()) {
            (false, _) => Tier::Raw,
            (true, true) => Tier::Root,
            (true, false) => Tier::User,
        };
        let reception = Arc::new(Reception::open()?);
        Ok(Self { program, tier, reception })
    }

    /// The same helper without namespaces.
    #[must_use]
    pub fn without_namespaces(mut self) -> Self {
        self.tier = Tier::Raw;
        self
    }

    /// What it isolates.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Ports of its own for a container of the Pod with this address.
    #[must_use]
    pub fn ports(&self, address: Ipv4Addr) -> OwnPorts {
        self.reception.ports(address)
    }

    /// Starts a container and returns once its program runs.
    ///
    /// # Errors
    /// [`StartError`] says whether the sandbox or the program is at fault; nothing is left running.
    pub async fn start(&self, spec: Spec) -> std::result::Result<Started, StartError> {
        let (ours, theirs) = StdUnixStream::pair()?;
        let mut child = Command::new(&self.program)
            .args(["sandbox", "outer"])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (keyboard, screen) = match input::open(spec.input)? {
            Some(Ends { theirs, keyboard, screen }) => {
                descriptor::send(&ours, b"\n", Some(theirs.as_fd()))?;
                (Some(Arc::new(keyboard)), screen)
            }
            None => {
                descriptor::send(&ours, b"\n", None)?;
                (None, None)
            }
        };
        ours.set_nonblocking(true)?;
        let (reader, mut cord) = UnixStream::from_std(ours)?.into_split();
        let (program, scratch) = (spec.program.clone(), spec.scratch.clone());
        let ports = spec.ports.clone();
        send(&mut cord, &Down::Start(Box::new(spec))).await?;
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).await?;
        let (init, shares_ports) = match serde_json::from_str(&line) {
            Ok(Up::Started { init, shares_ports }) => (init, shares_ports),
            Ok(Up::Failed { message, program: true }) => return Err(StartError::Program(message)),
            Ok(Up::Failed { message, program: false }) => return Err(StartError::Sandbox(message)),
            Err(_) => return Err(StartError::Sandbox("the sandbox ended without a word".into())),
        };
        let outer = child.id().unwrap_or_default();
        // Nobody has waited for it yet, so the number is its own.
        let began = began(&Path::new("/proc").join(outer.to_string())).unwrap_or_default();
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(StartError::Sandbox("the output streams are missing".into()));
        };
        let inner = Inner {
            cord: Mutex::new(cord),
            outer: outer.cast_signed(),
            began,
            init,
            program,
            ports,
            exit: reap(child),
            keyboard,
            entries: AtomicU64::new(0),
            scratch,
        };
        let container = Container { helper: self.clone(), inner: Arc::new(inner) };
        let stdout = screen.unwrap_or_else(|| Box::new(stdout));
        Ok(Started { container, stdout, stderr: Box::new(stderr), shares_ports })
    }
}

/// Waits for the child in a task of its own, so that no zombie stays when nobody asks.
fn reap(mut child: Child) -> watch::Receiver<Option<i32>> {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let code = child.wait().await.map_or(255, exit_code);
        sender.send_replace(Some(code));
    });
    receiver
}

impl Container {
    /// Sends a signal to the program; SIGKILL ends everything inside. Does nothing once it ended.
    pub async fn signal(&self, number: i32) {
        let mut cord = self.inner.cord.lock().await;
        // The other end is gone exactly when there is nothing left to signal.
        let _ = send(&mut cord, &Down::Signal(number)).await;
    }

    /// Waits for the end: the exit code, or 128 plus the signal.
    pub async fn wait(&self) -> i32 {
        let mut exit = self.inner.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(code) => code.unwrap_or(255),
            Err(_) => 255,
        }
    }

    /// Where to type, if it reads what clients type.
    pub(crate) fn keyboard(&self) -> Option<Arc<Keyboard>> {
        self.inner.keyboard.clone()
    }

    /// The exit code, if it ended.
    #[must_use]
    pub fn exited(&self) -> Option<i32> {
        *self.inner.exit.borrow()
    }

    /// A command that runs `argv` inside, with the container's environment, user and directory.
    /// The caller sets the standard streams and starts it.
    ///
    /// # Errors
    /// When the entry file cannot be written.
    pub fn enter(&self, argv: Vec<String>, terminal: bool) -> Result<Command> {
        let inner = &self.inner;
        let mut program = Program { argv, ..inner.program.clone() };
        if terminal {
            program.env.retain(|(name, _)| name != "TERM");
            program.env.push(("TERM".into(), "xterm".into()));
        }
        let number = inner.entries.fetch_add(1, Ordering::Relaxed);
        let tier = self.helper.tier;
        let (outer, began, init) = (inner.outer, inner.began, inner.init);
        let ports = inner.ports.clone();
        let entry = Entry { tier, outer, began, init, terminal, ports, program };
        let file = entry_file(&inner.scratch, number);
        std::fs::write(&file, serde_json::to_vec(&entry)?)?;
        let mut command = Command::new(&self.helper.program);
        command
            .args(["sandbox", "enter"])
            .arg(file)
            .env_clear()
            .current_dir("/")
            .kill_on_drop(true);
        Ok(command)
    }
}

fn entry_file(scratch: &Path, number: u64) -> PathBuf {
    scratch.with_extension(format!("entry{number}"))
}

async fn send(cord: &mut OwnedWriteHalf, message: &Down) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    cord.write_all(&line).await
}
