//! DaemonSets: an annotation counts the versions of the template, as it did before `generation`. Clients
//! may write it and own it then, but what it says is up to the server.

use serde_json::{Value, json};

use super::{Hooks, NONE};

/// The annotation.
pub(crate) const TEMPLATE_COUNT: &str = "deprecated.daemonset.template.generation";

pub(super) const HOOKS: Hooks = Hooks {
    complete: |_, object| set(object, count(object)),
    create: |_, _, object| {
        set(object, count(object).max(1));
        Ok(())
    },
    update: |_, _, live, object| {
        let same = live.pointer("/spec/template") == object.pointer("/spec/template");
        set(object, count(live) + i64::from(!same));
        Ok(())
    },
    part: |_, _, live, object| set(object, count(live)),
    ..NONE
};

/// How many versions the annotation counts.
fn count(object: &Value) -> i64 {
    let annotations = object.pointer("/metadata/annotations");
    annotations.and_then(|all| all.get(TEMPLATE_COUNT)?.as_str()?.parse().ok()).unwrap_or_default()
}

/// Takes the annotation away.
pub(crate) fn take_count(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.shift_remove(TEMPLATE_COUNT);
        if annotations.is_empty() {
            metadata.shift_remove("annotations");
        }
    }
}

fn set(object: &mut Value, count: i64) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[TEMPLATE_COUNT] = count.to_string().into();
}
