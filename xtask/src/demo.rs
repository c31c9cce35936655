//! `cargo xtask demo`: from a fresh clone to four operators on an embedded cluster.
//!
//! It builds the dev profile: half the wait, and the tests use the same build.

use anyhow::{Result, ensure};

use crate::postgres;
use crate::workspace::{command, root, run};

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
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        run(&cargo, &["build", "--package", "homeostat-cli"])?;
        // cargo knows where the binary is; it also hands on the terminal and its signals.
        let status = command(cargo)
            .args(["run", "--quiet", "--package", "homeostat-cli", "--"])
            .args(arguments)
            .current_dir(root())
            .status()?;
        ensure!(status.success() || status.code().is_none(), "homeostat up failed ({status})");
        Ok(())
    }
}
