//! The published OpenAPI v3 documents of the stable group-versions, as they are to be served.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::{Modules, Output, gzip};
use crate::oracle::KUBERNETES;

/// Documents that no group has.
const ROOTS: &[&str] = &[".well-known/openid-configuration", "apis", "openid/v1/jwks", "version"];

/// One stable group-version and its document.
pub(crate) struct Version {
    /// `api/v1`, `apis/apps/v1`: the path below the server, which is also its key in the index.
    pub(crate) path: String,
    /// The OpenAPI v3 document.
    pub(crate) document: Value,
}

impl Version {
    /// The named types of the document.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document["components"]["schemas"].as_object().into_iter().flatten()
    }

    /// The published name of the type of that kind.
    pub(crate) fn type_of(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        self.schemas()
            .find(|(_, schema)| {
                let kinds = schema["x-kubernetes-group-version-kind"].as_array();
                kinds.is_some_and(|kinds| {
                    kinds.len() == 1
                        && kinds[0]["group"] == group
                        && kinds[0]["version"] == version
                        && kinds[0]["kind"] == kind
                })
            })
            .map(|(name, _)| name.as_str())
    }
}

/// `v1` and `v2` are stable, `v1beta1` is not.
pub(crate) fn is_stable(version: &str) -> bool {
    version
        .strip_prefix('v')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Reads a JSON file.
pub(crate) fn read_json(path: &Path) -> anyhow::Result<Value> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("parsing {}", path.display()))
}

/// All stable group-versions, the core group first, the others by name.
pub(crate) fn read(modules: &Modules) -> anyhow::Result<Vec<Version>> {
    let folder = modules.dir("k8s.io/kubernetes")?.join("api/openapi-spec/v3");
    let mut versions = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(path) = name.strip_suffix("_openapi.json").map(|stem| stem.replace("__", "/"))
        else {
            continue;
        };
        let mut parts = path.rsplit('/');
        let stable = parts.next().is_some_and(is_stable);
        if !stable || !(path.starts_with("apis/") || path == "api/v1") {
            continue;
        }
        versions.push(Version { document: read_json(&folder.join(&name))?, path });
    }
    versions.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(versions)
}

/// The documents of what is no group-version: which groups and versions there are, and a few more.
pub(crate) fn roots(modules: &Modules, versions: &[Version]) -> anyhow::Result<Vec<Version>> {
    let folder = modules.dir("k8s.io/kubernetes")?.join("api/openapi-spec/v3");
    let mut paths: BTreeSet<String> = ROOTS.iter().map(|&path| path.to_owned()).collect();
    for version in versions {
        paths.extend(version.path.rsplit_once('/').map(|(group, _)| group.to_owned()));
    }
    let read = |path: String| {
        let file = format!("{}_openapi.json", path.replace('/', "__"));
        Ok(Version { document: read_json(&folder.join(file))?, path })
    };
    paths.into_iter().map(read).collect()
}

/// `openapi/registered.txt`: the group-versions that know the types which every group has.
pub(crate) fn registered(modules: &Modules) -> anyhow::Result<Output> {
    let file = modules.dir("k8s.io/kubernetes")?.join("api/openapi-spec/swagger.json");
    let options = "/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
    let document = read_json(&file)?;
    let kinds = document.pointer(options).context("no options of deletions")?;
    let kinds = kinds["x-kubernetes-group-version-kind"].as_array().context("without kinds")?;
    let line = |kind: &Value| match (kind["group"].as_str(), kind["version"].as_str()) {
        (Some(group), Some(version)) => format!("{group}/{version}\n"),
        _ => String::new(),
    };
    let text: String = kinds.iter().map(line).collect();
    Ok(("openapi/registered.txt".to_owned(), text.into_bytes()))
}

/// Makes of the published documents what kube-apiserver serves: with its version, and without the
/// media types that it offers only where a feature gate is on.
pub(crate) fn as_served(versions: &mut [Version]) {
    let minor = KUBERNETES.rsplit_once('.').map_or(KUBERNETES, |(minor, _)| minor);
    for version in versions {
        version.document["info"]["version"] = minor.into();
        without_cbor(&mut version.document["paths"]);
    }
}

fn without_cbor(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.starts_with("application/") || !name.contains("cbor"));
            fields.values_mut().for_each(without_cbor);
        }
        Value::Array(items) => items.iter_mut().for_each(without_cbor),
        _ => {}
    }
}

/// One gzip file per document.
pub(crate) fn documents(versions: &[Version]) -> anyhow::Result<Vec<Output>> {
    versions
        .iter()
        .map(|version| {
            let bytes = gzip(&serde_json::to_vec(&version.document)?)?;
            let name = version.path.trim_start_matches('.').replace('/', "__");
            Ok((format!("openapi/{name}.json.gz"), bytes))
        })
        .collect()
}
