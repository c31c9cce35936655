//! DaemonSets: an annotation counts the versions of the template, as it did before `generation`. Clients
//! may write it and own it then, but what it says is up to the server.

use serde_json::Value;

use super::{Hooks, NONE};
use crate::registry::metadata;

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

fn set(object: &mut Value, count: i64) {
    metadata::set_annotation(object, TEMPLATE_COUNT, &count.to_string());
}
