//! `cargo xtask bench`: figures beside kube-apiserver and etcd, written to `bench/RESULTS.md`.

use anyhow::{Context, Result};

use crate::oracle;
use crate::workspace::{root, run};

/// `cargo xtask bench`
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// How many objects are held at most.
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        oracle::binaries()?;
        let xtask = std::env::current_exe()?;
        let xtask = xtask.to_str().context("this program's path is not text")?;
        let results = root().join("bench/RESULTS.md");
        let results = results.to_str().context("the project's path is not text")?;
        let objects = self.objects.to_string();
        let program = ["run", "--release", "--package", "homeostat-bench", "--", "run"];
        let options = ["--xtask", xtask, "--results", results, "--objects", &objects];
        run(cargo, &[&program[..], &options[..]].concat())
    }
}
