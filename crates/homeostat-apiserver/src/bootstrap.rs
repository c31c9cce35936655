//! The objects every cluster begins with. What controllers own is left to them.

use serde_json::{Value, json};

use crate::registry::options::WriteOptions;
use crate::registry::{Body, Registry, Target};

/// Priorities that nothing a user makes may exceed.
const PRIORITY_CLASSES: &[(&str, i64, &str)] = &[
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

/// Creates what is missing.
pub(crate) fn run(registry: &Registry) {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        create(
            registry,
            "namespaces",
            "",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
    }
    for (name, value, description) in PRIORITY_CLASSES {
        create(
            registry,
            "priorityclasses",
            "",
            json!({
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "description": description,
            }),
        );
    }
    create(
        registry,
        "services",
        "default",
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "type": "ClusterIP",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            },
        }),
    );
}

fn create(registry: &Registry, plural: &str, namespace: &str, object: Value) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let Some(kind) = registry.catalogue().find(group, version, plural).cloned() else { return };
    let target = Target { kind, namespace: namespace.to_owned(), name: String::new() };
    let options = WriteOptions { manager: "homeostat".to_owned(), ..WriteOptions::default() };
    let body = Body { value: object, duplicates: Vec::new() };
    if let Err(status) = registry.create(&target, body, &options)
        && status.reason != "AlreadyExists"
    {
        tracing::error!(%status, plural, "an object that every cluster has could not be made");
    }
}
