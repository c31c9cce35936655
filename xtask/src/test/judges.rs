//! The independent judges: kube-apiserver, its controllers, the conformance suite, and every
//! kubectl at hand.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::stages::{Stage, Stages};
use crate::oracle::{self, Binaries, Oracle};
use crate::workspace::{cache, find, run_with};

/// Told to tests when no judge is missing: one that does not find its own then fails.
pub(super) const ALL_THERE: (&str, &str) = ("HOMEOSTAT_JUDGES", "all");

/// What was found or built.
pub(super) struct Programs {
    /// kube-apiserver, etcd and kubectl, or why there are none.
    servers: Result<Binaries>,
    /// The real controllers and the conformance suite, or why there are none.
    clients: Result<Binaries>,
    kubectls: Vec<PathBuf>,
}

impl Programs {
    /// Builds what is missing; without it, an error if it is `required`.
    pub(super) fn find(required: bool) -> Result<Self> {
        let installed = find("kubectl");
        let servers = oracle::binaries();
        let clients = match &servers {
            Ok(_) => oracle::clients(),
            // What could not be built is not tried twice.
            Err(error) => Err(anyhow!("{error:#}")),
        };
        if required && let Err(error) = clients {
            return Err(error).context("the oracle is required");
        }
        // Where none can be built, whatever is installed is asked.
        let kubectls: Vec<PathBuf> = match &servers {
            Ok(built) => vec![built.kubectl(), oracle::older_kubectl(installed)?],
            Err(_) => installed.into_iter().collect(),
        };
        if required && kubectls.is_empty() {
            bail!("no kubectl was found or built");
        }
        Ok(Self { servers, clients, kubectls })
    }
}

/// The judges, ready.
pub(super) struct Judges {
    pub(super) oracle: Option<Oracle>,
    programs: Programs,
    /// Nothing failed, so nobody wants to read the oracle's logs.
    pub(super) content: bool,
}

impl Judges {
    pub(super) fn start(programs: Programs, stages: &Stages) -> Result<Self> {
        let oracle = match &programs.servers {
            Ok(_) => {
                let folder = cache()?.join("oracle");
                forget_earlier_runs(&folder);
                Some(Oracle::start(&folder.join(format!("test-{}", std::process::id())))?)
            }
            Err(error) => {
                stages.leave_out(Stage::OnKubeApiserver, &format!("{error:#}"));
                stages.miss(&format!("the tests that look at both servers: {error:#}"));
                None
            }
        };
        if let Err(error) = &programs.clients {
            stages.leave_out(Stage::Conformance, &format!("{error:#}"));
            stages.miss(&format!("the tests with the real controllers: {error:#}"));
        }
        if programs.kubectls.is_empty() {
            stages.miss(
                "the tests of the binary, which are driven through kubectl: install kubectl, or Go \
                 to build one",
            );
        }
        Ok(Self { oracle, programs, content: false })
    }

    /// Whether there is any kubectl.
    pub(super) fn has_kubectl(&self) -> bool {
        !self.programs.kubectls.is_empty()
    }

    /// The real controllers and the conformance suite.
    pub(super) fn clients(&self) -> Option<&Binaries> {
        self.programs.clients.as_ref().ok()
    }

    /// Runs tests that may ask for the judges.
    pub(super) fn test(&self, cargo: &str, arguments: &[&str]) -> Result<()> {
        let kubectls = std::env::join_paths(&self.programs.kubectls)?;
        let mut environment = vec![("HOMEOSTAT_KUBECTL", kubectls.as_os_str())];
        if let Some(oracle) = &self.oracle {
            environment.push(("HOMEOSTAT_ORACLE_KUBECONFIG", oracle.kubeconfig.as_os_str()));
        }
        if let Some(clients) = self.clients() {
            environment.push(("HOMEOSTAT_ORACLE_PROGRAMS", clients.folder().as_os_str()));
        }
        if self.oracle.is_some() && self.clients().is_some() {
            let (name, value) = ALL_THERE;
            environment.push((name, OsStr::new(value)));
        }
        run_with(cargo, arguments, &environment)
    }
}

impl Drop for Judges {
    fn drop(&mut self) {
        if let Some(oracle) = self.oracle.take() {
            let folder = oracle.kubeconfig.parent().map(PathBuf::from);
            drop(oracle);
            match folder {
                Some(folder) if self.content => drop(std::fs::remove_dir_all(folder)),
                Some(folder) => println!("kube-apiserver's logs are in {}", folder.display()),
                None => {}
            }
        }
    }
}

/// Removes what failed and killed runs have left: the last failure is the one to look at.
fn forget_earlier_runs(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix("test-")?.parse::<i32>().ok());
        if process.is_some_and(|process| kill(Pid::from_raw(process), None).is_err()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
