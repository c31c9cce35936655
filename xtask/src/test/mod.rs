//! `cargo xtask test`: every check and every test, in the order that fails fastest.
//!
//! On two cores a run from nothing has to stay short, so whatever waits has company: the oracle's
//! programs are built beside our own, the conformance suite runs beside the tests, and what is run
//! on kube-apiserver runs there in several shares at once.

mod again;
mod judges;

use std::ffi::OsStr;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use anyhow::Result;

use crate::workspace::{cargo, find, run, run_with};
use crate::{conformance, postgres, tidy};
use judges::{Judges, Programs};

/// `cargo xtask test`
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Fail when the real kube-apiserver cannot be had, instead of saying so and going on.
    #[arg(long)]
    require_oracle: bool,
}

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
        if let Err(advice) = postgres::ensure() {
            left_out.push(format!("tests of the Database and LogicalDatabase operators: {advice}"));
        }
        let (programs, checked) = beside(|| self.with_go(), || check(left_out));
        // The mistake in our own code is the one to tell first.
        checked?;
        let mut judges = Judges::start(programs?, left_out)?;
        let conforms = || judges.clients().map_or(Ok(()), conformance::passing);
        let (conforms, tested) = beside(conforms, || test(&judges));
        tested.and(conforms)?;
        if let Some(oracle) = &judges.oracle {
            again::on(oracle)?;
        }
        judges.content = true;
        Ok(())
    }

    /// What Go takes its time for: the judges' programs, and the sources of the generated tables.
    fn with_go(&self) -> Result<Programs> {
        let programs = Programs::find(self.require_oracle)?;
        if find("go").is_some() {
            run(std::env::current_exe()?, &["generate", "--check"])?;
        }
        Ok(programs)
    }
}

/// Every test, but for those that have their time beside others.
fn test(judges: &Judges) -> Result<()> {
    let mut how = again::without(&again::DIFFERENTIAL);
    // The slowest wait for real processes, so there are two for each processor.
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    how.push(format!("--test-threads={}", 2 * processors));
    let all = ["test", "--workspace", "--"].into_iter().chain(how.iter().map(String::as_str));
    judges.test(&cargo(), &all.collect::<Vec<_>>())
}

/// What needs no running judge, up to the tests as programs.
fn check(left_out: &mut Vec<String>) -> Result<()> {
    let cargo = cargo();
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
