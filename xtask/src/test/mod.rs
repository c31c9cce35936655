//! `cargo xtask test`: every check and every test, in the order that fails fastest.
//!
//! On two cores a run from nothing has to stay short, so whatever waits has company: the oracle's
//! programs are built beside our own, the conformance suite runs beside the tests, and what is run
//! on kube-apiserver runs there in several shares at once.

mod again;
mod judges;
mod peers;
mod stages;

use std::ffi::OsStr;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use anyhow::{Result, anyhow, bail};

use crate::workspace::{THIS_PROGRAM, announce_first_build, cargo, find, run, run_with};
use crate::{conformance, postgres, tidy};
use judges::{Judges, Programs};
use stages::{Stage, Stages};

/// `cargo xtask test`
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Fail when the real kube-apiserver or a PostgreSQL cannot be had, instead of saying so and going on.
    #[arg(long)]
    require_oracle: bool,
}

impl Test {
    pub(crate) fn run(&self) -> Result<()> {
        let stages = Stages::new();
        let ended = self.judge(&stages);
        let not_run = stages.not_run();
        if !not_run.is_empty() {
            println!("\nNOT RUN:\n  - {}", not_run.join("\n  - "));
        }
        ended?;
        let all = if not_run.is_empty() { "Everything" } else { "Everything else" };
        println!("\n{all} ran and passed.");
        Ok(())
    }

    /// Runs what can run and says what cannot.
    fn judge(&self, stages: &Stages) -> Result<()> {
        let has_postgresql = match postgres::ensure() {
            Ok(()) => true,
            Err(advice) if self.require_oracle => bail!(advice),
            Err(advice) => {
                stages.miss(&format!("the tests with a PostgreSQL ({POSTGRESQL}…): {advice}"));
                false
            }
        };
        let (programs, checked) = beside(|| self.with_go(stages), || self.check(stages));
        // The mistake in our own code is the one to tell first.
        let programs = both(checked, programs)?;
        let mut judges = Judges::start(programs, stages)?;
        let conforms = || match judges.clients() {
            Some(clients) => {
                stages.begin(Stage::Conformance);
                conformance::passing(clients)
            }
            None => Ok(()),
        };
        let (conforms, tested) = beside(conforms, || test(&judges, has_postgresql, stages));
        both(tested, conforms)?;
        if let Some(oracle) = &judges.oracle {
            stages.begin(Stage::OnKubeApiserver);
            again::on(oracle)?;
        }
        judges.content = true;
        Ok(())
    }

    /// What needs no running judge.
    fn check(&self, stages: &Stages) -> Result<()> {
        check(stages)?;
        peers::check(self.require_oracle, stages)
    }

    /// What Go takes its time for: the judges' programs, and the sources of the generated tables.
    fn with_go(&self, stages: &Stages) -> Result<Programs> {
        let programs = Programs::find(self.require_oracle)?;
        if find("go").is_some() {
            stages.begin(Stage::GeneratedTables);
            run(THIS_PROGRAM, &["generate", "--check"])?;
        } else {
            stages.leave_out(Stage::GeneratedTables, "install Go 1.26 or newer");
        }
        Ok(programs)
    }
}

/// The second of two that ran beside each other; when both failed, both are told.
fn both<T>(first: Result<()>, second: Result<T>) -> Result<T> {
    match (first, second) {
        (Ok(()), second) => second,
        (Err(first), Ok(_)) => Err(first),
        (Err(first), Err(second)) => Err(anyhow!("{first:#}; and {second:#}")),
    }
}

/// How the names begin of tests that need a PostgreSQL on this host: the module that they are in.
const POSTGRESQL: &str = "postgresql::";

/// Every test, but for those that have their time beside others, and those that cannot run here;
/// those after one that failed, too.
fn test(judges: &Judges, has_postgresql: bool, stages: &Stages) -> Result<()> {
    stages.begin(Stage::Tests);
    let mut how = again::without(&again::DIFFERENTIAL);
    if !has_postgresql {
        how.extend(again::without(&[POSTGRESQL]));
    }
    // The slowest wait for real processes, so there are two for each processor.
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    how.push(format!("--test-threads={}", 2 * processors));
    let driven_by_kubectl: &[&str] =
        if judges.has_kubectl() { &[] } else { &["--exclude", "homeostat-cli"] };
    let all = ["test", "--workspace", "--no-fail-fast"].iter().chain(driven_by_kubectl).copied();
    let all = all.chain(["--"]).chain(how.iter().map(String::as_str));
    judges.test(&cargo(), &all.collect::<Vec<_>>())
}

/// What our own code is checked for, up to the tests as programs.
fn check(stages: &Stages) -> Result<()> {
    let cargo = cargo();
    announce_first_build()?;
    stages.begin(Stage::Formatting);
    run(&cargo, &["fmt", "--all", "--check"])?;
    stages.begin(Stage::Tidy);
    tidy::run()?;
    stages.begin(Stage::Clippy);
    run(&cargo, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    if find("cargo-deny").is_some() {
        stages.begin(Stage::Dependencies);
        run(&cargo, &["deny", "--locked", "check", "bans", "licenses", "sources"])?;
    } else {
        stages.leave_out(Stage::Dependencies, "cargo install --locked cargo-deny");
    }
    stages.begin(Stage::Documentation);
    run_with(
        &cargo,
        &["doc", "--workspace", "--no-deps", "--quiet"],
        &[("RUSTDOCFLAGS", OsStr::new("-D warnings"))],
    )?;
    stages.begin(Stage::BuildOfTests);
    run(&cargo, &["test", "--workspace", "--no-run"])
}

/// Does both at once and waits for both.
fn beside<A: Send, B>(aside: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let aside = scope.spawn(aside);
        let here = here();
        (aside.join().unwrap_or_else(|panic| resume_unwind(panic)), here)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::POSTGRESQL;
    use crate::workspace::root;

    /// What only a test with a PostgreSQL does.
    const SIGNS: [&str; 3] = ["psql(", "postgresql_versions()", r#"Command::new("psql")"#];

    /// The files below that are tests with a PostgreSQL, and whether they say so.
    fn judge(path: &Path, found: &mut Vec<(String, bool)>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                judge(&entry.unwrap().path(), found);
            }
            return;
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let is_test = text.contains("#[test]") || text.contains("#[tokio::test]");
        if is_test && SIGNS.iter().any(|sign| text.contains(sign)) {
            let module = POSTGRESQL.trim_end_matches(':');
            let says = path.file_stem().is_some_and(|name| name == module)
                || text.contains(&format!("mod {module} {{"));
            found.push((path.display().to_string(), says));
        }
    }

    #[test]
    fn every_test_that_needs_a_postgresql_can_be_left_out_by_its_name() {
        let mut found = Vec::new();
        for folder in ["crates", "operators", "examples"] {
            for package in fs::read_dir(root().join(folder)).unwrap() {
                judge(&package.unwrap().path().join("tests"), &mut found);
            }
        }
        assert!(found.len() >= 5, "found only {found:?}");
        let hidden: Vec<_> = found.iter().filter(|(_, says)| !says).collect();
        assert!(hidden.is_empty(), "not in a module {POSTGRESQL}: {hidden:?}");
    }
}
