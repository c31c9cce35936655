//! The objects every cluster begins with. What controllers own is left to them.

use serde_json::{Value, json};

use crate::registry::options::WriteOptions;
use crate::registry::{Body, Registry, Target};

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
