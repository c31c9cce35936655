//! Discovery in two documents: `apidiscovery.k8s.io/v2` lists for `/api` and `/apis`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Group, arrange};
use crate::kinds::{Kind, Subresource};

/// `/api` with `as=APIGroupDiscoveryList`: the core group.
#[must_use]
pub fn aggregated_core(kinds: &[Arc<Kind>]) -> Value {
    list(kinds, |group| group.name.is_empty())
}

/// `/apis` with `as=APIGroupDiscoveryList`: every named group.
#[must_use]
pub fn aggregated_groups(kinds: &[Arc<Kind>]) -> Value {
    list(kinds, |group| !group.name.is_empty())
}

fn list(kinds: &[Arc<Kind>], wanted: impl Fn(&Group<'_>) -> bool) -> Value {
    let items: Vec<Value> = arrange(kinds).iter().filter(|group| wanted(group)).map(item).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn item(group: &Group<'_>) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> = version.kinds.iter().map(|kind| resource(kind)).collect();
            json!({"version": version.name, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn resource(kind: &Kind) -> Value {
    let mut row = json!({
        "resource": kind.plural,
        "responseKind": response_kind(kind, &kind.group, &kind.version, &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        row["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        row["categories"] = json!(kind.categories);
    }
    if !kind.subresources.is_empty() {
        row["subresources"] =
            kind.subresources.iter().map(|below| subresource(kind, below)).collect();
    }
    row
}

fn subresource(kind: &Kind, below: &Subresource) -> Value {
    json!({
        "subresource": below.name,
        "responseKind": response_kind(kind, &below.group, &below.version, &below.kind),
        "verbs": below.verbs,
    })
}

/// Built-in kinds leave out the group and version that the enclosing version gives; custom
/// resources repeat them. Clients accept both, this is how kube-apiserver answers.
fn response_kind(owner: &Kind, group: &str, version: &str, kind: &str) -> Value {
    if owner.custom.is_none() && (owner.group.as_str(), owner.version.as_str()) == (group, version)
    {
        json!({"group": "", "version": "", "kind": kind})
    } else {
        json!({"group": group, "version": version, "kind": kind})
    }
}
