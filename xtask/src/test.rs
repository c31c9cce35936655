//! `cargo xtask test`: every check and every test, in the order that fails fastest.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::oracle::{self, Binaries, Oracle};
use crate::workspace::{cache, cargo, find, run, run_aside, run_with};
use crate::{conformance, postgres, tidy};

/// `cargo xtask test`
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Fail when the real kube-apiserver cannot be had, instead of saying so and going on.
    #[arg(long)]
    require_oracle: bool,
}

/// The test targets that run twice, on the embedded API and on the real kube-apiserver: the runtime, the cluster's
/// controllers, the operators, the example. (The operators' objects are also compared side by side, in one test.)
/// Each line has a kube-apiserver of its own, and both run at the same time: most of it is waiting.
const ON_BOTH: [&[&str]; 2] = [
    &["runtime", "webhooks", "fixed_fields", "silent_server"],
    &["garbage", "workloads", "any_cluster", "converged", "deletion", "missing_secret", "troubled"],
];

impl Test {
    pub(crate) fn run(&self) -> Result<()> {
        let mut left_out = Vec::new();
        let ended = self.judge(&mut left_out);
        if !left_out.is_empty() {
            println!("\nNOT RUN:\n  - {}", left_out.join("\n  - "));
        }
        ended?;
        let all = if left_out.is_empty() { "Everything" } else { "Everything else" };
        println!("\n{all} ran and passed.");
        Ok(())
    }

    /// Runs what can run and says what cannot.
    fn judge(&self, left_out: &mut Vec<String>) -> Result<()> {
        let cargo = cargo();
        if let Err(advice) = postgres::ensure() {
            left_out.push(format!("tests of the Database and LogicalDatabase operators: {advice}"));
        }
        let mut judge = Judge::find(self.require_oracle, left_out)?;

        run(&cargo, &["fmt", "--all", "--check"])?;
        tidy::run()?;
        run(&cargo, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
        if find("cargo-deny").is_some() {
            run(&cargo, &["deny", "--locked", "check", "bans", "licenses", "sources"])?;
        } else {
            left_out.push(
                "licences and bans of dependencies: cargo install --locked cargo-deny".to_owned(),
            );
        }
        run_with(
            &cargo,
            &["doc", "--workspace", "--no-deps", "--quiet"],
            &[("RUSTDOCFLAGS", OsStr::new("-D warnings"))],
        )?;
        if find("go").is_some() {
            run(std::env::current_exe()?, &["generate", "--check"])?;
        }
        judge.test(&cargo, &["test", "--workspace"])?;
        if let Some(oracle) = &judge.oracle {
            println!("\nOnce more, on kube-apiserver:");
            once_more(&cargo, oracle)?;
        }
        match &judge.programs {
            Some(programs) => conformance::passing(programs)?,
            None => left_out.push(
                "the real controllers and the conformance suite on the embedded server: \
                 `cargo xtask oracle build` builds them, in a quarter of an hour"
                    .to_owned(),
            ),
        }
        judge.content = true;
        Ok(())
    }
}

/// Runs the tests that are for both clusters on kube-apiserver.
fn once_more(cargo: &str, oracle: &Oracle) -> Result<()> {
    let folder = oracle.kubeconfig.parent().context("a kubeconfig is in a folder")?.join("second");
    let second = Oracle::start(&folder)?;
    let arguments = ON_BOTH.map(|targets| {
        // The whole workspace is named, so that nothing is built anew with other features; one test
        // at a time, because a cluster has one set of controllers.
        let targets = targets.iter().flat_map(|name| ["--test", name]);
        let all = ["test", "--workspace"].into_iter().chain(targets);
        all.chain(["--", "--test-threads=1"]).collect::<Vec<_>>()
    });
    let on = |oracle: &Oracle| [("HOMEOSTAT_TEST_KUBECONFIG", oracle.kubeconfig.clone())];
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run_aside(cargo, &arguments[1], &on(&second)));
        let first = on(oracle);
        let first = first.each_ref().map(|(name, value)| (*name, value.as_os_str()));
        let ended = run_with(cargo, &arguments[0], &first);
        let (told, other) = other.join().map_err(|_| anyhow!("a thread panicked"))??;
        println!("{told}");
        ended.and(other)
    })
}

/// The independent judges: the oracle and every kubectl at hand.
struct Judge {
    oracle: Option<Oracle>,
    /// The real controllers and the conformance suite.
    programs: Option<Binaries>,
    kubectls: Vec<PathBuf>,
    /// Nothing failed, so nobody wants to read the oracle's logs.
    content: bool,
}

impl Judge {
    fn find(required: bool, left_out: &mut Vec<String>) -> Result<Self> {
        let installed = find("kubectl");
        let (oracle, built) = match oracle::binaries() {
            Ok(binaries) => {
                let folder = cache()?.join("oracle");
                forget_earlier_runs(&folder);
                let folder = folder.join(format!("test-{}", std::process::id()));
                (Some(Oracle::start(&folder)?), Some(binaries.kubectl()))
            }
            Err(error) if required => return Err(error).context("the oracle is required"),
            Err(error) => {
                left_out.push(format!("everything judged by the real kube-apiserver: {error:#}"));
                (None, None)
            }
        };
        let programs = if required { Some(oracle::clients()?) } else { oracle::built_clients()? };
        let kubectls: Vec<PathBuf> = built.into_iter().chain(installed).collect();
        if kubectls.is_empty() {
            if required {
                bail!("no kubectl was found or built");
            }
            left_out.push(
                "everything driven through kubectl: install kubectl, or Go to build one".to_owned(),
            );
        }
        Ok(Self { oracle, programs, kubectls, content: false })
    }

    /// Runs tests that may ask for the judges.
    fn test(&self, cargo: &str, arguments: &[&str]) -> Result<()> {
        let kubectls = std::env::join_paths(&self.kubectls)?;
        let mut environment = vec![("HOMEOSTAT_KUBECTL", kubectls.as_os_str())];
        if let Some(oracle) = &self.oracle {
            environment.push(("HOMEOSTAT_ORACLE_KUBECONFIG", oracle.kubeconfig.as_os_str()));
        }
        if let Some(programs) = &self.programs {
            environment.push(("HOMEOSTAT_ORACLE_PROGRAMS", programs.folder().as_os_str()));
        }
        run_with(cargo, arguments, &environment)
    }
}

impl Drop for Judge {
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
