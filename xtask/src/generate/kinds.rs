//! `kinds.json`: one row per stable resource, in the order of discovery.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

use super::openapi::{Version, is_stable, read_json};
use super::{Modules, Output};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    group: String,
    version: String,
    kind: String,
    plural: String,
    singular: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    namespaced: bool,
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<Below>,
    schema: String,
}

#[derive(Serialize)]
struct Below {
    name: String,
    group: String,
    version: String,
    kind: String,
    verbs: Vec<String>,
}

/// The table of kinds.
pub(crate) fn table(modules: &Modules, versions: &[Version]) -> anyhow::Result<Output> {
    let folder = modules.dir("k8s.io/kubernetes")?.join("api/discovery");
    let by_path: BTreeMap<&str, &Version> =
        versions.iter().map(|version| (version.path.as_str(), version)).collect();
    let mut rows = Vec::new();
    for (group, version) in group_versions(&read_json(&folder.join("apis.json"))?) {
        let path = match group.as_str() {
            "" => format!("api/{version}"),
            group => format!("apis/{group}/{version}"),
        };
        let document =
            by_path.get(path.as_str()).with_context(|| format!("no OpenAPI of {path}"))?;
        let list = read_json(&folder.join(format!("{}.json", path.replace('/', "__"))))?;
        rows.extend(resources(&list, &group, &version, document)?);
    }
    let mut text = String::from("[\n");
    for (index, row) in rows.iter().enumerate() {
        text.push_str(&serde_json::to_string(row)?);
        text.push_str(if index + 1 < rows.len() { ",\n" } else { "\n" });
    }
    text.push_str("]\n");
    Ok(("kinds.json".to_owned(), text.into_bytes()))
}

/// The stable group-versions in the order the server prefers them, the core group first.
fn group_versions(groups: &Value) -> Vec<(String, String)> {
    let mut order = vec![(String::new(), "v1".to_owned())];
    for group in groups["groups"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = text(&version["version"]);
            if is_stable(&version) {
                order.push((text(&group["name"]), version));
            }
        }
    }
    order
}

fn resources(
    list: &Value,
    group: &str,
    version: &str,
    document: &Version,
) -> anyhow::Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for resource in list["resources"].as_array().into_iter().flatten() {
        let name = text(&resource["name"]);
        let kind = text(&resource["kind"]);
        if let Some((plural, below)) = name.split_once('/') {
            let owner = rows.iter_mut().find(|row| row.plural == plural);
            let or = |field: &Value, own: &str| field.as_str().unwrap_or(own).to_owned();
            owner.with_context(|| format!("{name} comes before its resource"))?.subresources.push(
                Below {
                    name: below.to_owned(),
                    group: or(&resource["group"], group),
                    version: or(&resource["version"], version),
                    kind,
                    verbs: texts(&resource["verbs"]),
                },
            );
            continue;
        }
        let schema = document
            .type_of(group, version, &kind)
            .with_context(|| format!("no type of {group}/{version} {kind}"))?;
        rows.push(Row {
            group: group.to_owned(),
            version: version.to_owned(),
            schema: schema.to_owned(),
            kind,
            plural: name,
            singular: text(&resource["singularName"]),
            short_names: texts(&resource["shortNames"]),
            categories: texts(&resource["categories"]),
            namespaced: resource["namespaced"] == true,
            verbs: texts(&resource["verbs"]),
            subresources: Vec::new(),
        });
    }
    Ok(rows)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}
