//! `rbac.json.gz`: the roles and bindings that every cluster begins with.
//!
//! Kubernetes keeps the policy its API server installs as golden files, which are what the running
//! server shows.

use anyhow::Context as _;
use serde_json::Value;

use super::{Modules, Output, gzip};

const FOLDER: &str = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata";
/// In the order in which the API server makes them.
const FILES: [&str; 6] = [
    "cluster-roles.yaml",
    "controller-roles.yaml",
    "cluster-role-bindings.yaml",
    "controller-role-bindings.yaml",
    "namespace-roles.yaml",
    "namespace-role-bindings.yaml",
];

/// All of them, as one list.
pub(super) fn policy(modules: &Modules) -> anyhow::Result<Output> {
    let folder = modules.dir("k8s.io/kubernetes")?.join(FOLDER);
    let mut objects = Vec::new();
    for file in FILES {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let list: Value = serde_saphyr::from_str(&text)?;
        let items = list["items"].as_array().with_context(|| format!("{file} is no list"))?;
        objects.extend(items.iter().cloned().map(tidy));
    }
    Ok(("rbac.json.gz".to_owned(), gzip(&serde_json::to_vec(&objects)?)?))
}

/// The form in which the API shows objects: the type first, and no empty time.
fn tidy(object: Value) -> Value {
    let Value::Object(mut fields) = object else { return object };
    for field in ["apiVersion", "kind"] {
        if let Some(value) = fields.shift_remove(field) {
            fields.shift_insert(0, field.to_owned(), value);
        }
    }
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("creationTimestamp");
    }
    Value::Object(fields)
}
