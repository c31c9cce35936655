//! The oracle: the real kube-apiserver with etcd and kubectl, its controllers and the conformance
//! suite, built from published modules.
//!
//! The binaries live in the user's cache, so that a fresh clone finds them and a new machine
//! builds them. Everything listens on loopback only.

mod build;
mod start;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

pub(crate) use start::Oracle;

/// The version of Kubernetes that judges.
pub(crate) const KUBERNETES: &str = "1.36.4";
/// The version of the second kubectl: older clients send other requests.
const OLDER_KUBECTL: &str = "1.32.13";
/// The version of etcd below it.
pub(crate) const ETCD: &str = "3.6.16";

/// `cargo xtask oracle`
#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Build the binaries unless the cache has them.
    Build,
    /// Start etcd and kube-apiserver; prints the path of the kubeconfig.
    Up,
    /// Stop what `up` started.
    Down,
    /// Run etcd and kube-apiserver until standard input closes.
    #[command(hide = true)]
    Supervise {
        /// Where data, logs and the kubeconfig go.
        folder: PathBuf,
        /// Run until killed instead.
        #[arg(long)]
        detached: bool,
        /// Sync everything to disk, as a real cluster does.
        #[arg(long)]
        durable: bool,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::Build => println!("{}", build::clients()?.folder.display()),
        Verb::Up => println!("{}", start::up()?.display()),
        Verb::Down => start::down()?,
        Verb::Supervise { folder, detached, durable } => {
            start::supervise(folder, *detached, *durable)?;
        }
    }
    Ok(())
}

/// The built programs.
pub(crate) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Where they all are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The program of that name.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The kubectl of the same version.
    pub(crate) fn kubectl(&self) -> PathBuf {
        self.path("kubectl")
    }
}

/// Builds what is missing and gives the programs.
pub(crate) fn binaries() -> Result<Binaries> {
    build::servers()
}

/// The same, with the real controllers and the conformance suite.
pub(crate) fn clients() -> Result<Binaries> {
    build::clients()
}

/// A kubectl that is older than the server: `installed`, if it is of that version, or one that is built.
pub(crate) fn older_kubectl(installed: Option<PathBuf>) -> Result<PathBuf> {
    let (minor, _) = OLDER_KUBECTL.rsplit_once('.').unwrap_or((OLDER_KUBECTL, ""));
    let is_older = |path: &PathBuf| {
        let asked = Command::new(path).args(["version", "--client"]).output();
        let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        said.is_ok_and(|said| said.contains(&format!("Client Version: v{minor}.")))
    };
    match installed.filter(is_older) {
        Some(path) => Ok(path),
        None => build::older_kubectl(),
    }
}

/// The folder of the oracle's Go modules.
fn modules() -> PathBuf {
    crate::workspace::root().join("oracle")
}

fn must_exist(path: &Path) -> Result<()> {
    if path.is_file() {
        return Ok(());
    }
    bail!("{} is missing after the build", path.display())
}
