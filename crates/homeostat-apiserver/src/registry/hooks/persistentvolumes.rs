//! Volumes and claims: a phase from the start, and the default class for claims that name none.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::registry::{Writer, metadata};
use crate::store::Range;

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) const HOOKS: Hooks = Hooks {
    create: |_, _, object| {
        metadata::set_top(object, "status", Some(json!({"phase": "Pending"})));
        Ok(())
    },
    ..NONE
};

pub(super) const CLAIM_HOOKS: Hooks = Hooks {
    create: |writer, _, object| {
        if object.pointer("/spec/storageClassName").is_none()
            && object.get("spec").is_some_and(Value::is_object)
            && let Some(class) = default_class(writer)
        {
            object["spec"]["storageClassName"] = class.into();
        }
        metadata::set_top(object, "status", Some(json!({"phase": "Pending"})));
        Ok(())
    },
    ..NONE
};

/// The youngest of the classes marked as default.
fn default_class(writer: &Writer<'_>) -> Option<String> {
    let classes = writer.registry.store.list("storageclasses.storage.k8s.io", &Range::default());
    let classes = classes.map(|page| page.items).unwrap_or_default();
    let marked = classes.iter().map(|stored| stored.value()).filter(|class| {
        let annotations = class.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(DEFAULT_CLASS)) == Some(&json!("true"))
    });
    let youngest = marked.max_by_key(|class| metadata::text(class, "creationTimestamp").to_owned());
    youngest.map(|class| metadata::name(&class).to_owned())
}
