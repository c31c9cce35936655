//! What server-side apply promises.

mod conflicts;
mod laws;
mod lists;
mod recorded;
mod sets;
mod tracking;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{FieldSet, Manager};
use crate::kinds;
use crate::schema::{KindSchema, ListType, Node, NodeId, Schemas, Type};

/// The schema of a built-in kind.
pub(crate) fn builtin(kind: &str) -> &'static KindSchema {
    &kinds::builtin().iter().find(|row| row.kind == kind).unwrap().schema
}

/// A schema written as in a CustomResourceDefinition; only what apply looks at is read.
pub(crate) fn custom(document: &Value) -> KindSchema {
    let mut schemas = Schemas::default();
    let root = read(&mut schemas, document);
    KindSchema { schemas: schemas.into(), root }
}

fn read(schemas: &mut Schemas, document: &Value) -> NodeId {
    let text = |name: &str| document[name].as_str().unwrap_or_default();
    let mut below = |name: &str| document.get(name).map(|document| read(schemas, document));
    let (items, additional) = (below("items"), below("additionalProperties"));
    let properties = document["properties"].as_object().into_iter().flatten();
    let properties =
        properties.map(|(name, document)| (name.clone(), read(schemas, document))).collect();
    let keys = document["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    schemas.add(Node {
        ty: match text("type") {
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "boolean" => Type::Boolean,
            _ => Type::Any,
        },
        list_type: match text("x-kubernetes-list-type") {
            "set" => ListType::Set,
            "map" => ListType::Map(keys.map(|key| key.as_str().unwrap().to_owned()).collect()),
            _ => ListType::Atomic,
        },
        atomic_map: text("x-kubernetes-map-type") == "atomic",
        preserve_unknown: document["x-kubernetes-preserve-unknown-fields"] == json!(true),
        default: document.get("default").cloned(),
        properties,
        items,
        additional,
        ..Node::default()
    })
}

/// One of every kind of list and map.
pub(crate) fn thing() -> KindSchema {
    custom(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                      "additionalProperties": {"type": "string"}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "rows": {"type": "array", "x-kubernetes-list-type": "map",
                     "x-kubernetes-list-map-keys": ["name", "port"],
                     "items": {"type": "object", "properties": {
                         "name": {"type": "string"},
                         "port": {"type": "integer", "default": 80},
                         "note": {"type": "string"}}}},
            "plain": {"type": "array", "items": {"type": "string"}},
        }},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    }}))
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
