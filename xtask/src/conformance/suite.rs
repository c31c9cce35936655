//! Runs the suite: Ginkgo shares the specs out among processes.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};

use crate::oracle::Binaries;
use crate::workspace::command;

/// No run takes longer; a spec that hangs must not hang the judge.
const TIMEOUT: &str = "40m";

/// Runs the chosen specs and leaves `report.json` and `suite.log` in `folder`. That specs fail is
/// no error here: the report says which.
pub(super) fn run(
    binaries: &Binaries,
    kubeconfig: &Path,
    chosen: &[&str],
    procs: u32,
    folder: &Path,
) -> Result<()> {
    let report = folder.join("report.json");
    if report.exists() {
        std::fs::remove_file(&report)?;
    }
    let log_path = folder.join("suite.log");
    let log = File::create(&log_path)?;
    println!("running {} specs, {procs} at a time; see {}", chosen.len(), log_path.display());
    // Specs leave files behind, and nobody knows whose they are.
    let scratch = folder.join("tmp");
    std::fs::create_dir_all(&scratch)?;
    // Ginkgo looks for the expression in the names of suite and spec together.
    let focus: Vec<String> = chosen.iter().map(|name| regex::escape(name)).collect();
    command(binaries.path("ginkgo"))
        .current_dir(folder)
        .env("TMPDIR", &scratch)
        .arg(format!("--procs={procs}"))
        .arg(format!("--timeout={TIMEOUT}"))
        .arg("--no-color")
        .arg(format!("--focus={}", focus.join("|")))
        .args(["--json-report=report.json", "--output-dir"])
        .arg(folder)
        .arg(binaries.path("e2e.test"))
        .arg("--")
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--kubectl-path={}", binaries.kubectl().display()))
        .args([
            "--provider=skeleton",
            // One node is there and no Pod of the system: neither is waited for.
            "--allowed-not-ready-nodes=-1",
            "--minStartupPods=-1",
            "--num-nodes=1",
            "--disable-log-dump",
            "--dump-logs-on-failure=false",
        ])
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .context("ginkgo could not be started")?;
    std::fs::remove_dir_all(&scratch)?;
    Ok(())
}
