//! Whether the controllers that the bench measures beside ours still build: they are no members of the
//! workspace, so nothing else would notice. They are checked, never built for use and never run.

use anyhow::{Context, Result};

use super::stages::{Stage, Stages};
use crate::workspace::{cargo, find, output, root, run, target};

/// Checks those that can be checked here. Where the crates or modules of one cannot be had, it is an
/// error if that is `required`, and left out otherwise.
pub(super) fn check(required: bool, stages: &Stages) -> Result<()> {
    stages.begin(Stage::Peers);
    kube_rs(required, stages)?;
    controller_runtime(required, stages)
}

fn kube_rs(required: bool, stages: &Stages) -> Result<()> {
    let manifest = root().join("bench/peers/kube-rs/Cargo.toml");
    let manifest = manifest.to_str().context("a path that is not text")?;
    let target = target()?.join("bench-peers");
    let target = target.to_str().context("a path that is not text")?;
    let of = ["--locked", "--manifest-path", manifest];
    let fetched = output(&cargo(), &[&["fetch"], &of[..]].concat(), &root());
    if !had(fetched, "the bench's controller on kube-rs", required, stages)? {
        return Ok(());
    }
    run(cargo(), &[&["check"], &of[..], &["--target-dir", target]].concat())
}

fn controller_runtime(required: bool, stages: &Stages) -> Result<()> {
    let what = "the bench's controller on controller-runtime";
    if find("go").is_none() {
        stages.miss(&format!("{what}: install Go 1.26 or newer"));
        return Ok(());
    }
    let folder = root().join("bench/peers/controller-runtime");
    if had(output("go", &["mod", "download"], &folder), what, required, stages)? {
        println!("$ go vet . (in bench/peers/controller-runtime)");
        output("go", &["vet", "."], &folder)?;
    }
    Ok(())
}

/// Whether what it is made of could be had.
fn had(got: Result<String>, what: &str, required: bool, stages: &Stages) -> Result<bool> {
    match got {
        Ok(_) => Ok(true),
        Err(error) if required => Err(error).with_context(|| format!("{what} is required")),
        Err(error) => {
            stages.miss(&format!("{what}: {error:#}"));
            Ok(false)
        }
    }
}
