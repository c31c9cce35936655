//! The group-versions that know the types which every group has: options of deletions and events.

use serde_json::{Value, json};

/// One line for each, `group/version`.
const LINES: &str = include_str!("../../data/openapi/registered.txt");
/// Groups that servers register and clients do not.
const FOR_SERVERS: &[&str] =
    &["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"];

/// The kinds that such a type stands for.
pub(super) fn everywhere(kind: &str) -> Value {
    kinds(kind, |_| true)
}

/// The same as clients know it; documents of custom resources are made of their types.
pub(super) fn for_clients(kind: &str) -> Value {
    kinds(kind, |group| !FOR_SERVERS.contains(&group))
}

fn kinds(kind: &str, known: impl Fn(&str) -> bool) -> Value {
    let versions = LINES.lines().map(|line| line.rsplit_once('/').unwrap_or(("", line)));
    versions
        .filter(|(group, _)| known(group))
        .map(|(group, version)| json!({"group": group, "version": version, "kind": kind}))
        .collect()
}
