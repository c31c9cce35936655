//! DaemonSets: an annotation counts the versions of the template, as it did before `generation`.

use serde_json::{Value, json};

use super::{Hooks, NONE};

const ANNOTATION: &str = "deprecated.daemonset.template.generation";

pub(super) const HOOKS: Hooks = Hooks {
    complete: |live, object| {
        let count = live.map_or(1, |live| {
            let before = live
                .pointer("/metadata/annotations")
                .and_then(|all| all.get(ANNOTATION)?.as_str()?.parse::<i64>().ok())
                .unwrap_or_default();
            let same = live.pointer("/spec/template") == object.pointer("/spec/template");
            before + i64::from(!same)
        });
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[ANNOTATION] = count.to_string().into();
    },
    ..NONE
};
