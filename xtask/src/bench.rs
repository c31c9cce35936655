//! `cargo xtask bench`: figures beside the peers, written to `bench/RESULTS.md`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::oracle;
use crate::workspace::{cargo, output, root, run, target};

/// `cargo xtask bench`
#[derive(clap::Subcommand)]
pub(crate) enum Bench {
    /// The API server beside kube-apiserver and etcd.
    Api {
        /// How many objects are held at most.
        #[arg(long, default_value_t = 100_000)]
        objects: usize,
    },
    /// Our API server alone, for whoever works on it.
    Ours,
    /// The work queue alone, for whoever works on it.
    Queue,
    /// How soon our controller reconciles what changes, for whoever works on it.
    Events,
    /// The runtime beside kube-rs and Go's controller-runtime.
    Runtime {
        /// How many Pods there are.
        #[arg(long, default_value_t = 20_000)]
        pods: usize,
        /// How many of them change once, for each controller.
        #[arg(long, default_value_t = 5000)]
        events: usize,
        /// Without optimisation: to try the bench itself, not for figures.
        #[arg(long)]
        dev: bool,
    },
}

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        let results = text(&root().join("bench/RESULTS.md"))?;
        match self {
            Self::Api { objects } => {
                oracle::binaries()?;
                let (xtask, objects) = (text(&std::env::current_exe()?)?, objects.to_string());
                let options = ["--xtask", &xtask, "--results", &results, "--objects", &objects];
                bench("api", &options, false)
            }
            Self::Ours => bench("ours", &[], false),
            Self::Queue => bench("queue", &[], false),
            Self::Events => bench("events", &[], false),
            Self::Runtime { pods, events, dev } => {
                let kube_rs = text(&kube_rs(*dev)?)?;
                let controller_runtime = text(&controller_runtime()?)?;
                let (pods, events) = (pods.to_string(), events.to_string());
                let peers = ["--kube-rs", &kube_rs, "--controller-runtime", &controller_runtime];
                let sizes = ["--results", &results, "--pods", &pods, "--events", &events];
                bench("runtime", &[&peers[..], &sizes[..]].concat(), *dev)
            }
        }
    }
}

fn bench(what: &str, options: &[&str], dev: bool) -> Result<()> {
    let profile = if dev { "--profile=dev" } else { "--profile=release" };
    // The server that is measured is a program of its own.
    run(cargo(), &["build", profile, "--package", "homeostat-bench", "--bins"])?;
    let program = ["run", profile, "--package", "homeostat-bench", "--", what];
    run(cargo(), &[&program[..], options].concat())
}

/// Builds the controller on kube-rs, which is no member of the workspace.
fn kube_rs(dev: bool) -> Result<PathBuf> {
    let manifest = text(&root().join("bench/peers/kube-rs/Cargo.toml"))?;
    let target = text(&target()?.join("bench-peers"))?;
    let profile = if dev { "dev" } else { "release" };
    let options = ["--locked", "--profile", profile, "--manifest-path", &manifest];
    run(cargo(), &[&["build"], &options[..], &["--target-dir", &target]].concat())?;
    let folder = if dev { "debug" } else { "release" };
    Ok(Path::new(&target).join(folder).join("bench-peer-kube-rs"))
}

/// Builds the controller on controller-runtime.
fn controller_runtime() -> Result<PathBuf> {
    let program = target()?.join("bench-peers/controller-runtime");
    let folder = root().join("bench/peers/controller-runtime");
    output("go", &["build", "-o", &text(&program)?, "."], &folder)?;
    ensure!(program.is_file(), "go build has left no program");
    Ok(program)
}

fn text(path: &Path) -> Result<String> {
    Ok(path.to_str().context("a path that is not text")?.to_owned())
}
