//! Nodes: kubelets take their configuration from elsewhere now, so what names it is not kept.

use serde_json::{Value, json};

use super::{Hooks, NONE};

pub(super) const HOOKS: Hooks = Hooks {
    complete: |_, node| sync_ranges(node),
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

/// Clients may write the one range or the list; the other follows.
fn sync_ranges(node: &mut Value) {
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let one = spec.get("podCIDR").filter(|one| **one != json!("")).cloned();
    let first = spec.get("podCIDRs").and_then(|list| list.get(0)).cloned();
    match (one, first) {
        (Some(one), first) if first.as_ref() != Some(&one) => {
            spec.insert("podCIDRs".to_owned(), json!([one]));
        }
        (None, Some(first)) => drop(spec.insert("podCIDR".to_owned(), first)),
        _ => {}
    }
}

fn forget(node: &mut Value, parent: &str, field: &str) {
    if let Some(fields) = node.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.shift_remove(field);
    }
}
