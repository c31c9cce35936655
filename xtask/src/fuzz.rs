//! `cargo xtask fuzz`: random requests to the embedded server, for as long as asked.

use std::ffi::OsString;

use anyhow::Result;

use crate::workspace::run_with;

/// `cargo xtask fuzz`
#[derive(clap::Args)]
pub(crate) struct Fuzz {
    /// For how long; ten minutes, or with a seed its one round, by default.
    #[arg(long)]
    minutes: Option<u64>,
    /// Where to begin; a new place each time by default.
    #[arg(long)]
    seed: Option<u64>,
}

impl Fuzz {
    pub(crate) fn run(&self) -> Result<()> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let test = ["test", "--package", "homeostat-apiserver", "--test", "fuzz"];
        let arguments: Vec<&str> = test.into_iter().chain(["--", "--nocapture"]).collect();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let seed = self.seed.unwrap_or(now.as_secs()).to_string();
        let minutes = if self.seed.is_some() { self.minutes } else { self.minutes.or(Some(10)) };
        let length = match minutes {
            Some(minutes) => ("HOMEOSTAT_FUZZ_MINUTES", minutes.to_string()),
            None => ("HOMEOSTAT_FUZZ_ROUNDS", "1".to_owned()),
        };
        let environment = [("HOMEOSTAT_FUZZ_SEED", seed), length];
        let environment = environment.map(|(name, value)| (name, OsString::from(value)));
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| (*name, value.as_os_str())).collect();
        run_with(cargo, &arguments, &environment)
    }
}
