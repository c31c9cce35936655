//! `cargo xtask demo`: from a fresh clone to four operators on an embedded cluster.
//!
//! It builds the dev profile: half the wait, and the tests use the same build.

use std::os::unix::process::CommandExt;

use anyhow::{Context, Result};

use crate::postgres;
use crate::workspace::{announce_first_build, cargo, command, run, target};

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
        let chosen = chosen(&self.arguments);
        let needed = chosen.as_ref().is_none_or(|names| names.contains("database"));
        if needed && let Err(advice) = postgres::ensure() {
            eprintln!("{advice}");
            // Whoever chose the operators keeps them: their objects say what is missing.
            if chosen.is_none() {
                eprintln!("Going on without the two database operators.");
                arguments.extend(["--with", "at,webapp"]);
            }
        }
        arguments.extend(self.arguments.iter().map(String::as_str));
        announce_first_build()?;
        // Not by package: an operator that is run next shall find its dependencies built.
        run(cargo(), &["build", "--bin", "homeostat"])?;
        // In place of this process: whoever interrupts it waits until everything has ended.
        let error = command(target()?.join("debug").join("homeostat")).args(arguments).exec();
        Err(error).context("homeostat could not be started")
    }
}

/// The operators that the arguments choose, as they were written; `None` when they choose none.
fn chosen(arguments: &[String]) -> Option<String> {
    let mut lists = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--with" {
            lists.push(rest.next().map_or("", String::as_str));
        } else if let Some(list) = argument.strip_prefix("--with=") {
            lists.push(list);
        }
    }
    (!lists.is_empty()).then(|| lists.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_that_somebody_chose_are_heard_in_either_form() {
        let chosen =
            |words: &[&str]| chosen(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(chosen(&["--with", "at"]).as_deref(), Some("at"));
        assert_eq!(chosen(&["--port", "1", "--with=at,database"]).as_deref(), Some("at,database"));
        assert_eq!(chosen(&["--port", "1"]), None);
    }
}
