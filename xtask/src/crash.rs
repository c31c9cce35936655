//! `cargo xtask crash`: kills the store in the middle of its work, as often as asked.

use anyhow::Result;

use crate::workspace::{cargo, run_with};

/// `cargo xtask crash`
#[derive(clap::Args)]
pub(crate) struct Crash {
    /// How often the process is killed.
    #[arg(long, default_value_t = 1000)]
    runs: u64,
    /// What the runs are drawn from, to have a failing schedule again; a new one each time by
    /// default, which is printed.
    #[arg(long)]
    seed: Option<u64>,
}

impl Crash {
    pub(crate) fn run(&self) -> Result<()> {
        let cargo = cargo();
        let test = ["test", "--package", "homeostat-apiserver", "--test", "crash"];
        let arguments: Vec<&str> = test.into_iter().chain(["--", "--nocapture"]).collect();
        let runs = self.runs.to_string();
        let seed = self.seed.map(|seed| seed.to_string());
        let mut environment = vec![("HOMEOSTAT_CRASH_RUNS", runs.as_ref())];
        environment.extend(seed.as_ref().map(|seed| ("HOMEOSTAT_CRASH_SEED", seed.as_ref())));
        run_with(cargo, &arguments, &environment)
    }
}
