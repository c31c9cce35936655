//! Builds the oracle's programs with Go, once per version, into the user's cache.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::{Binaries, ETCD, KUBERNETES, modules, must_exist};
use crate::workspace::{cache, find};

/// One program: its name, the module that pins it, its package.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    ("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    ("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
];

pub(super) fn ensure() -> Result<Binaries> {
    let folder = cache()?.join("oracle").join(format!("v{KUBERNETES}-etcd{ETCD}"));
    std::fs::create_dir_all(&folder)?;
    let binaries = Binaries { folder };
    for (name, module, package) in PROGRAMS {
        if !binaries.path(name).is_file() {
            build(&binaries, name, module, package)?;
        }
        must_exist(&binaries.path(name))?;
    }
    Ok(binaries)
}

fn build(binaries: &Binaries, name: &str, module: &str, package: &str) -> Result<()> {
    let Some(go) = find("go") else {
        bail!("Go is missing: install Go 1.26 or newer to build {name} {KUBERNETES}");
    };
    println!("building {name} (once; the cache keeps it)");
    let started = Instant::now();
    // Built beside its final name and moved there whole: a build that dies leaves nothing half-made.
    let unfinished = binaries.path(&format!(".{name}.unfinished"));
    let status = Command::new(go)
        .current_dir(modules().join(module))
        .env("CGO_ENABLED", "0")
        .args(["build", "-trimpath", "-ldflags", &linker_flags()?, "-o"])
        .arg(&unfinished)
        .arg(package)
        .status()
        .context("go could not be started")?;
    ensure!(status.success(), "building {name} failed ({status})");
    std::fs::rename(&unfinished, binaries.path(name))?;
    println!("built {name} in {} s", started.elapsed().as_secs());
    Ok(())
}

/// Stamps the version: an unstamped server says v0.0.0, and clients skip what they think it lacks.
fn linker_flags() -> Result<String> {
    let mut parts = KUBERNETES.split('.');
    let (major, minor) = (parts.next(), parts.next());
    let (Some(major), Some(minor)) = (major, minor) else { bail!("{KUBERNETES} is not a version") };
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion=v{KUBERNETES} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    ))
}
