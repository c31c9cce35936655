//! Nodes: kubelets take their configuration from elsewhere now, so what names it is not kept.

use serde_json::Value;

use super::{Hooks, NONE};

pub(super) const HOOKS: Hooks = Hooks {
    create: |_, _, node| {
        forget(node, "/spec", "configSource");
        forget(node, "/status", "config");
        Ok(())
    },
    update: |_, _, live, node| {
        // What is there from before may stay and change.
        if live.pointer("/spec/configSource").is_none() {
            forget(node, "/spec", "configSource");
        }
        Ok(())
    },
    part: |_, part, live, node| {
        if part == "status" && live.pointer("/status/config").is_none() {
            forget(node, "/status", "config");
        }
    },
    keeps_status: true,
    ..NONE
};

fn forget(node: &mut Value, parent: &str, field: &str) {
    if let Some(fields) = node.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.shift_remove(field);
    }
}
