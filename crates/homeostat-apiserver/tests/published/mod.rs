//! Finds the published Kubernetes modules on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of a module at the version the oracle is built from; `None`, said aloud, without
/// Go or without the module in its cache.
pub(crate) fn module(path: &str) -> Option<PathBuf> {
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/kubernetes");
    let output = Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", path])
        .current_dir(oracle)
        .output()
        .ok()
        .filter(|output| output.status.success());
    let dir = output.and_then(|output| String::from_utf8(output.stdout).ok());
    let dir = dir.map(|dir| PathBuf::from(dir.trim())).filter(|dir| dir.is_dir());
    if dir.is_none() {
        assert!(std::env::var_os("HOMEOSTAT_JUDGES").is_none(), "{path} is not in Go's cache");
        eprintln!("NOT RUN: the published files of {path} are not on this machine");
    }
    dir
}
