//! Discovery as one document per path: `/api`, `/apis`, `/apis/G`, `/api/v1`, `/apis/G/V`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Group, arrange, group_version};
use crate::kinds::Kind;

/// `/api`: the versions of the core group, and the address clients should use.
#[must_use]
pub fn core_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}
        ],
    })
}

/// `/apis`: every named group.
#[must_use]
pub fn groups(kinds: &[Arc<Kind>]) -> Value {
    let groups: Vec<Value> = arrange(kinds)
        .iter()
        .filter(|group| !group.name.is_empty())
        .map(|group| Value::Object(describe(group)))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/G`: one group; `None` when it is not served.
#[must_use]
pub fn group(kinds: &[Arc<Kind>], name: &str) -> Option<Value> {
    let groups = arrange(kinds);
    let group = groups.iter().find(|group| group.name == name && !name.is_empty())?;
    let mut document = Map::new();
    document.insert("kind".to_owned(), "APIGroup".into());
    document.insert("apiVersion".to_owned(), "v1".into());
    document.extend(describe(group));
    Some(Value::Object(document))
}

fn describe(group: &Group<'_>) -> Map<String, Value> {
    let version =
        |name: &str| json!({"groupVersion": group_version(group.name, name), "version": name});
    let versions: Vec<Value> =
        group.versions.iter().map(|candidate| version(candidate.name)).collect();
    let mut fields = Map::new();
    let preferred = versions.first().cloned().unwrap_or_default();
    fields.insert("name".to_owned(), group.name.into());
    fields.insert("versions".to_owned(), versions.into());
    fields.insert("preferredVersion".to_owned(), preferred);
    fields
}

/// `/api/v1` and `/apis/G/V`: the resources of one version; `None` when it is not served.
#[must_use]
pub fn resources(kinds: &[Arc<Kind>], group: &str, version: &str) -> Option<Value> {
    let groups = arrange(kinds);
    let found = groups.iter().find(|candidate| candidate.name == group)?;
    let found = found.versions.iter().find(|candidate| candidate.name == version)?;
    let resources: Vec<Value> = found.kinds.iter().flat_map(|kind| rows(kind)).collect();
    let mut document = Map::new();
    document.insert("kind".to_owned(), "APIResourceList".into());
    if !group.is_empty() {
        document.insert("apiVersion".to_owned(), "v1".into());
    }
    document.insert("groupVersion".to_owned(), group_version(group, version).into());
    document.insert("resources".to_owned(), resources.into());
    Some(Value::Object(document))
}

/// A name for the form that objects are stored in: tools notice when it changes.
fn storage_version_hash(kind: &Kind) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let (group, version) = match (kind.group.as_str(), kind.plural.as_str()) {
        ("events.k8s.io", "events") => ("", "v1"),
        ("autoscaling", "horizontalpodautoscalers") => ("autoscaling", "v2"),
        // What published servers still write, because older ones must be able to read it.
        (
            group @ ("apiextensions.k8s.io" | "admissionregistration.k8s.io"),
            "customresourcedefinitions"
            | "mutatingadmissionpolicies"
            | "mutatingadmissionpolicybindings",
        ) => (group, "v1beta1"),
        (group, _) => (group, kind.version.as_str()),
    };
    let digest = sha2::Sha256::digest(format!("{group}/{version}/{}", kind.kind));
    base64::prelude::BASE64_STANDARD.encode(&digest[..8])
}

/// A resource and, after it, its subresources.
fn rows(kind: &Kind) -> Vec<Value> {
    let mut main = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        main["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        main["categories"] = json!(kind.categories);
    }
    if kind.is_stored() {
        main["storageVersionHash"] = storage_version_hash(kind).into();
    }
    let mut rows = vec![main];
    for below in &kind.subresources {
        let mut row = json!({
            "name": format!("{}/{}", kind.plural, below.name),
            "singularName": "",
            "namespaced": kind.namespaced,
        });
        if (below.group.as_str(), below.version.as_str()) != (&kind.group, &kind.version) {
            row["group"] = json!(below.group);
            row["version"] = json!(below.version);
        }
        row["kind"] = json!(below.kind);
        row["verbs"] = json!(below.verbs);
        rows.push(row);
    }
    rows
}
