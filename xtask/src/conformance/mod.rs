//! `cargo xtask conformance`: the official conformance suite judges the embedded server.
//!
//! The specs that are asked of it and the ones it passes are lists in `oracle/conformance`. A
//! listed spec that does not pass is a failure, so the second list only grows.

mod report;
mod specs;
mod suite;
mod world;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use report::Report;
use specs::Specs;
use world::World;

use crate::oracle::{self, Binaries};
use crate::workspace::root;

/// How many specs run at a time: most of them wait most of the time.
const PROCS: u32 = 4;

/// `cargo xtask conformance`
#[derive(clap::Args)]
pub(crate) struct Conformance {
    /// Only the specs whose name matches this regular expression.
    #[arg(long, value_name = "RE")]
    focus: Option<String>,
    /// Who is judged.
    #[arg(long, value_enum, default_value_t = Server::Homeostat)]
    server: Server,
    /// Only the specs that passed before.
    #[arg(long)]
    passing: bool,
    /// Add what passes now to the list of passing specs.
    #[arg(long)]
    update: bool,
    /// How many specs run at a time.
    #[arg(long, value_name = "N", default_value_t = PROCS)]
    procs: u32,
    /// Where logs and the report go.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Who can be judged.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Server {
    /// `homeostat up`.
    Homeostat,
    /// The real kube-apiserver with the real controllers: shows what the environment permits.
    KubeApiserver,
}

/// Runs what passed before, as `cargo xtask test` does.
pub(crate) fn passing(binaries: &Binaries) -> Result<()> {
    let only = Conformance {
        focus: None,
        server: Server::Homeostat,
        passing: true,
        update: false,
        procs: PROCS,
        output: None,
    };
    // The tests before have built it.
    only.judge_with(binaries, false)
}

impl Conformance {
    pub(crate) fn run(&self) -> Result<()> {
        self.judge_with(&oracle::clients()?, true)
    }

    fn judge_with(&self, binaries: &Binaries, build: bool) -> Result<()> {
        let specs = Specs::read(&root().join("oracle").join("conformance"))?;
        let chosen = specs.chosen(self.focus.as_deref(), self.passing)?;
        if chosen.is_empty() {
            bail!("no spec matches");
        }
        let folder =
            self.output.clone().unwrap_or_else(|| root().join("target").join("conformance"));
        std::fs::create_dir_all(&folder)?;
        let folder = folder.canonicalize()?;
        let world = match self.server {
            Server::Homeostat => World::embedded(&folder, build)?,
            Server::KubeApiserver => World::real(binaries, &folder)?,
        };
        suite::run(binaries, world.kubeconfig(), &chosen, self.procs, &folder)?;
        drop(world);
        let report = Report::read(&folder.join("report.json"))
            .with_context(|| format!("the suite left no report; see {}", folder.display()))?;
        self.judge(&specs, &chosen, &report)
    }

    /// Says what happened and whether it is enough.
    fn judge(&self, specs: &Specs, chosen: &[&str], report: &Report) -> Result<()> {
        let verdict = specs.compare(chosen, report);
        for (name, why) in &verdict.failed {
            println!("FAILED  {name}\n        {}", why.lines().next().unwrap_or_default());
        }
        for name in &verdict.skipped {
            println!("SKIPPED {name}");
        }
        for name in &verdict.missing {
            println!("ABSENT  {name}");
        }
        println!(
            "\n{} specs executed: {} passed, {} failed; {} skipped, {} absent",
            verdict.passed.len() + verdict.failed.len(),
            verdict.passed.len(),
            verdict.failed.len(),
            verdict.skipped.len(),
            verdict.missing.len()
        );
        if self.server == Server::KubeApiserver {
            return Ok(());
        }
        for name in &verdict.new {
            println!("NEW     {name}");
        }
        if self.update {
            specs.add(&verdict.new)?;
        }
        if verdict.lost.is_empty() {
            return Ok(());
        }
        bail!("specs that passed before did not pass:\n  {}", verdict.lost.join("\n  "))
    }
}
