//! What server-side apply promises.

mod conflicts;
mod laws;
mod lists;
mod recorded;
mod sets;
mod tracking;

use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{FieldSet, Manager};
use crate::kinds;
use crate::schema::KindSchema;

/// The schema of a built-in kind.
pub(crate) fn builtin(kind: &str) -> &'static KindSchema {
    &kinds::builtin().iter().find(|row| row.kind == kind).unwrap().schema
}

/// The schema of a custom resource with one of every kind of list and map.
pub(crate) fn thing() -> &'static KindSchema {
    static THING: OnceLock<KindSchema> = OnceLock::new();
    THING.get_or_init(|| {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                          "additionalProperties": {"type": "string"}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "rows": {"type": "array", "x-kubernetes-list-type": "map",
                         "x-kubernetes-list-map-keys": ["name", "port"],
                         "items": {"type": "object", "required": ["name"], "properties": {
                             "name": {"type": "string"},
                             "port": {"type": "integer", "default": 80},
                             "note": {"type": "string"}}}},
                "plain": {"type": "array", "items": {"type": "string"}},
            }},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        }});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        crate::custom::rows(&definition).remove(0).schema
    })
}

pub(super) fn status() -> FieldSet {
    FieldSet::of_fields([&["status"][..]])
}

/// A manager at a second of its own.
pub(super) fn at<'a>(name: &'a str, api_version: &'a str, second: i64) -> Manager<'a> {
    let now = Timestamp::from_second(1_700_000_000 + second).unwrap();
    Manager { name, api_version, subresource: "", now }
}

/// The fields that a manager owns, `None` when it owns nothing.
pub(super) fn owned(object: &Value, manager: &str) -> Option<Value> {
    object["metadata"]["managedFields"]
        .as_array()?
        .iter()
        .find(|entry| entry["manager"] == manager)
        .map(|entry| entry["fieldsV1"].clone())
}
