//! `cargo xtask generate`: the API server's tables, written from the published Kubernetes API.
//!
//! Reads the OpenAPI, discovery, protobuf and Go type files of the Kubernetes modules that the
//! oracle is built from, and writes data under `crates/homeostat-apiserver/data`; what CEL knows (for
//! `crates/homeostat-cel/data`), what is said about columns, how Go reads and writes fields and how
//! values look inside of kube-apiserver is printed by Kubernetes itself. The same input gives the same
//! bytes, so `--check` can tell whether the committed data is up to date. What every cluster begins
//! with is made from the tables by the server's own code, in one of its tests, which also checks it.

mod cel;
mod columns;
mod enums;
mod go_tags;
mod go_types;
mod internal_types;
mod kinds;
mod openapi;
mod proto;
mod rbac;
mod schemas;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::Deserialize;

use crate::workspace::command;

/// What `cargo xtask generate` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Generate {
    /// Write nothing; fail when the committed data differs from what would be written.
    #[arg(long)]
    check: bool,
}

/// A file to write: its name below the data directory, and its bytes.
type Output = (String, Vec<u8>);

/// Where the Kubernetes modules lie on this machine.
pub(crate) struct Modules(BTreeMap<String, PathBuf>);

const MODULES: [&str; 5] = [
    "k8s.io/kubernetes",
    "k8s.io/api",
    "k8s.io/apimachinery",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/kube-aggregator",
];

impl Modules {
    /// Asks Go for the modules at the versions of `oracle/kubernetes/go.mod`.
    fn locate(root: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Module {
            path: String,
            dir: PathBuf,
        }
        let output = command("go")
            .args(["mod", "download", "-json"])
            .args(MODULES)
            .current_dir(root.join("oracle/kubernetes"))
            .output()
            .context("Go is needed to find the Kubernetes modules: install it and try again")?;
        ensure!(
            output.status.success(),
            "go mod download failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::Deserializer::from_slice(&output.stdout)
            .into_iter::<Module>()
            .map(|module| module.map(|module| (module.path, module.dir)))
            .collect::<Result<_, _>>()
            .map(Self)
            .context("reading the answer of go mod download")
    }

    /// The directory of a module, which must be one of [`MODULES`].
    pub(crate) fn dir(&self, module: &str) -> anyhow::Result<&Path> {
        self.0.get(module).map(PathBuf::as_path).with_context(|| format!("no module {module}"))
    }
}

impl Generate {
    /// Writes the tables, or compares them.
    ///
    /// # Errors
    /// When Go or the modules are missing, when the published files are not as expected, and with
    /// `--check` when the committed data differs.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let data = root.join("crates/homeostat-apiserver/data");
        let modules = Modules::locate(&root)?;
        let mut outputs = Vec::new();
        let mut versions = openapi::read(&modules)?;
        outputs.push(kinds::table(&modules, &versions)?);
        let go_types = go_types::read(&root)?;
        outputs.push(schemas::arena(&versions, &go_types)?);
        outputs.push(go_types::table(&go_types, &versions)?);
        outputs.push(internal_types::table(&root)?);
        outputs.extend(proto::descriptors(&modules, &versions)?);
        // Only for readers: what is refused, and how, is said by the rules of each kind.
        enums::add(&modules, &mut versions)?;
        versions.extend(openapi::roots(&modules, &versions)?);
        openapi::as_served(&mut versions);
        outputs.extend(openapi::documents(&versions)?);
        outputs.push(openapi::registered(&modules)?);
        outputs.push(rbac::policy(&modules)?);
        outputs.push(columns::descriptions(&root)?);
        outputs.extend(cel::tables(&root)?);
        let mut drift = Vec::new();
        for (name, bytes) in &outputs {
            let path = data.join(name);
            if std::fs::read(&path).is_ok_and(|old| same_content(&old, bytes)) {
                continue;
            }
            if self.check {
                drift.push(name.as_str());
                continue;
            }
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
        }
        if !drift.is_empty() {
            bail!(
                "generated data is out of date, run `cargo xtask generate`: {}",
                drift.join(", ")
            );
        }
        if self.check { Ok(()) } else { finish_texts(&root) }
    }
}

/// Writes the objects that every cluster begins with, as the tables make them now.
fn finish_texts(root: &Path) -> anyhow::Result<()> {
    let status = command("cargo")
        .args(["test", "--package", "homeostat-apiserver", "--lib", "finished_texts"])
        .env("HOMEOSTAT_WRITE_DATA", "1")
        .current_dir(root)
        .status()
        .context("cargo test")?;
    ensure!(status.success(), "the objects that every cluster begins with could not be made");
    Ok(())
}

/// What a program of the oracle's module prints.
pub(crate) fn printed(root: &Path, program: &str, input: Stdio) -> anyhow::Result<Vec<u8>> {
    // With the flags of the oracle's programs, what those are made of is there already.
    let output = command("go")
        .args(["run", "-trimpath", "-gcflags=all=-dwarf=false", program])
        .env("CGO_ENABLED", "0")
        .current_dir(root.join("oracle/kubernetes"))
        .stdin(input)
        .output()
        .with_context(|| format!("go run {program}"))?;
    ensure!(
        output.status.success(),
        "go run {program} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

/// Whether two files say the same. What a compressor makes of it differs from version to version.
fn same_content(old: &[u8], new: &[u8]) -> bool {
    let unpack = |bytes: &[u8]| {
        let mut text = Vec::new();
        GzDecoder::new(bytes).read_to_end(&mut text).ok().map(|_| text)
    };
    old == new || unpack(old).is_some_and(|old| Some(old) == unpack(new))
}

/// Gzip without a time stamp or file name, so that equal input gives equal bytes.
fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
