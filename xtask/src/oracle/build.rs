//! Builds the oracle's programs with Go, once per version, into the user's cache.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::{Binaries, ETCD, KUBERNETES, OLDER_KUBECTL, modules, must_exist};
use crate::workspace::{cache, command as start, find};

/// One program: its name, the module that pins it, its package.
struct Program {
    name: &'static str,
    module: &'static str,
    package: &'static str,
    /// The version it is stamped with.
    version: &'static str,
    /// How Go makes it: a command is built, the conformance suite is compiled as a test.
    verb: &'static [&'static str],
}

const fn command(name: &'static str, module: &'static str, package: &'static str) -> Program {
    Program { name, module, package, version: KUBERNETES, verb: &["build"] }
}

/// A client that is older than the server.
const OLDER: Program =
    Program { version: OLDER_KUBECTL, ..command("kubectl-1.32", "kubectl", ".") };

/// What every comparison needs.
const SERVERS: [Program; 3] = [
    command("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    command("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    command("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
];

/// The strictest clients: the real controllers and the official conformance suite.
const CLIENTS: [Program; 4] = [
    command(
        "kube-controller-manager",
        "kubernetes",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
    ),
    command("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    command("ginkgo", "kubernetes", "github.com/onsi/ginkgo/v2/ginkgo"),
    Program {
        name: "e2e.test",
        module: "kubernetes",
        package: "k8s.io/kubernetes/test/e2e",
        version: KUBERNETES,
        verb: &["test", "-c"],
    },
];

pub(super) fn servers() -> Result<Binaries> {
    ensure_all(&SERVERS)
}

/// The older kubectl.
pub(super) fn older_kubectl() -> Result<PathBuf> {
    Ok(ensure_all(&[OLDER])?.path(OLDER.name))
}

pub(super) fn clients() -> Result<Binaries> {
    servers()?;
    ensure_all(&CLIENTS)
}

/// Where the programs of these versions are, or will be.
fn place() -> Result<Binaries> {
    Ok(Binaries { folder: cache()?.join("oracle").join(format!("v{KUBERNETES}-etcd{ETCD}")) })
}

fn ensure_all(programs: &[Program]) -> Result<Binaries> {
    let binaries = place()?;
    std::fs::create_dir_all(&binaries.folder)?;
    for program in programs {
        if !binaries.path(program.name).is_file() {
            build(&binaries, program)?;
        }
        must_exist(&binaries.path(program.name))?;
    }
    Ok(binaries)
}

fn build(binaries: &Binaries, program: &Program) -> Result<()> {
    let name = program.name;
    let Some(go) = find("go") else {
        bail!("Go is missing: install Go 1.26 or newer to build {name} {}", program.version);
    };
    println!("building {name} (once; the cache keeps it)");
    let started = Instant::now();
    // Built beside its final name and moved there whole: a build that dies leaves nothing half-made.
    let unfinished = binaries.path(&format!(".{name}.unfinished"));
    let status = start(go)
        .current_dir(modules().join(program.module))
        .env("CGO_ENABLED", "0")
        .args(program.verb)
        // Nobody looks at these programs with a debugger, and what one needs takes long to make.
        .args([
            "-trimpath",
            "-gcflags=all=-dwarf=false",
            "-ldflags",
            &linker_flags(program.version)?,
            "-o",
        ])
        .arg(&unfinished)
        .arg(program.package)
        .status()
        .context("go could not be started")?;
    ensure!(status.success(), "building {name} failed ({status})");
    std::fs::rename(&unfinished, binaries.path(name))?;
    println!("built {name} in {} s", started.elapsed().as_secs());
    Ok(())
}

/// Stamps the version: an unstamped server says v0.0.0, and clients skip what they think it lacks.
fn linker_flags(version: &str) -> Result<String> {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next(), parts.next());
    let (Some(major), Some(minor)) = (major, minor) else { bail!("{version} is not a version") };
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    ))
}
