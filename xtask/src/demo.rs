//! `cargo xtask demo`: from a fresh clone to four operators on an embedded cluster.
//!
//! It builds the dev profile: half the wait, and the tests use the same build.

use std::os::unix::process::CommandExt;

use anyhow::{Context, Result};

use crate::postgres;
use crate::workspace::{cargo, command, run, target};

/// `cargo xtask demo`
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// Further arguments for `homeostat up`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Demo {
    pub(crate) fn run(&self) -> Result<()> {
        let mut arguments = vec!["up", "--demo"];
        if let Err(advice) = postgres::ensure() {
            eprintln!("{advice}\nGoing on without the two database operators.");
            arguments.extend(["--with", "at,webapp"]);
        }
        arguments.extend(self.arguments.iter().map(String::as_str));
        // Not by package: an operator that is run next shall find its dependencies built.
        run(cargo(), &["build", "--bin", "homeostat"])?;
        // In place of this process: whoever interrupts it waits until everything has ended.
        let error = command(target()?.join("debug").join("homeostat")).args(arguments).exec();
        Err(error).context("homeostat could not be started")
    }
}
