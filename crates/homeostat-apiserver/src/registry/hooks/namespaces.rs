//! Namespaces: a finalizer in `spec`, a phase, a label of their own name, and some that must stay.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::registry::metadata;
use crate::status::Status;

const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];

pub(super) const HOOKS: Hooks = Hooks {
    complete: |_, object| {
        let name = metadata::name(object).to_owned();
        if !name.is_empty() {
            metadata::set_label(object, "kubernetes.io/metadata.name", &name);
        }
    },
    create: |_, _, object| {
        let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array);
        let mut finalizers = finalizers.cloned().unwrap_or_default();
        if !finalizers.contains(&json!("kubernetes")) {
            finalizers.push(json!("kubernetes"));
        }
        metadata::set_top(object, "spec", Some(json!({"finalizers": finalizers})));
        metadata::set_top(object, "status", Some(json!({"phase": "Active"})));
        Ok(())
    },
    update: |_, _, live, object| {
        // Finalizers in spec change only through the finalize subresource.
        metadata::set_top(object, "spec", live.get("spec").cloned());
        Ok(())
    },
    delete: |_, kind, object| {
        let name = metadata::name(object).to_owned();
        if IMMORTAL.contains(&name.as_str()) {
            return Err(Status::forbidden(kind, &name, "this namespace may not be deleted"));
        }
        object["status"]["phase"] = "Terminating".into();
        Ok(())
    },
    ..NONE
};
