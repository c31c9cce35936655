//! `cargo xtask test`: every check and every test, in the order that fails fastest.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::oracle::{self, Binaries, Oracle};
use crate::workspace::{cache, find, run, run_with};
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
const ON_BOTH: [&str; 8] = [
    "runtime",
    "garbage",
    "workloads",
    "any_cluster",
    "converged",
    "deletion",
    "fixed_fields",
    "silent_server",
];

impl Test {
    pub(crate) fn run(&self) -> Result<()> {
        let mut left_out = Vec::new();
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        if let Err(advice) = postgres::ensure() {
            left_out.push(format!("tests of the Database and LogicalDatabase operators: {advice}"));
        }
        let judge = Judge::find(self.require_oracle, &mut left_out)?;

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
            let kubeconfig = oracle.kubeconfig.as_os_str();
            // The whole workspace is named, so that nothing is built anew with other features; one
            // test at a time, because a cluster has one set of controllers.
            let mut arguments = vec!["test", "--workspace"];
            arguments.extend(ON_BOTH.iter().flat_map(|name| ["--test", name]));
            arguments.extend(["--", "--test-threads=1"]);
            run_with(&cargo, &arguments, &[("HOMEOSTAT_TEST_KUBECONFIG", kubeconfig)])?;
        }
        match &judge.programs {
            Some(programs) => conformance::passing(programs)?,
            None => left_out.push(
                "the real controllers and the conformance suite on the embedded server: \
                 `cargo xtask oracle build` builds them, in a quarter of an hour"
                    .to_owned(),
            ),
        }
        if left_out.is_empty() {
            println!("\nEverything ran and passed.");
        } else {
            println!("\nWhat ran passed. NOT RUN:\n  - {}", left_out.join("\n  - "));
        }
        Ok(())
    }
}

/// The independent judges: the oracle and every kubectl at hand.
struct Judge {
    oracle: Option<Oracle>,
    /// The real controllers and the conformance suite.
    programs: Option<Binaries>,
    kubectls: Vec<PathBuf>,
}

impl Judge {
    fn find(required: bool, left_out: &mut Vec<String>) -> Result<Self> {
        let installed = find("kubectl");
        let (oracle, built) = match oracle::binaries() {
            Ok(binaries) => {
                let folder = cache()?.join("oracle").join(format!("test-{}", std::process::id()));
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
        Ok(Self { oracle, programs, kubectls })
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
            if let Some(folder) = folder {
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }
}
