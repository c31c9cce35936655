//! `schemas.jsonl`: every published type as nodes of one arena, without descriptions. A line per node, those of
//! types first and with the name at the end, not compressed: the server reads a line when somebody comes to it.
//!
//! Equal nodes are written once. A field that refers to a type and says more about it (a default,
//! a merge key) is a node with `ref`: the type's node, with what the field says laid over it. So is
//! what becomes of the field when it is empty, unless it is a struct: those never count as empty, and are published with a default.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

use super::Output;
use super::go_types::{Field, Fields};
use super::openapi::Version;

const PREFIX: &str = "#/components/schemas/";
/// The key for what becomes of a field when it is empty.
const EMPTY: &str = "empty";

/// Types whose published schema says less than the server knows of them.
fn special(name: &str) -> Option<Value> {
    let short = name.rsplit('.').next().unwrap_or(name);
    match short {
        "IntOrString" => Some(json!({"type": "int-or-string", "format": "int-or-string"})),
        "Quantity" => Some(json!({"format": "quantity"})),
        "RawExtension" | "FieldsV1" => Some(json!({"type": "object", "open": true})),
        "JSON"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray" => Some(json!({"open": true})),
        _ => None,
    }
}

struct Arena {
    types: BTreeMap<String, usize>,
    nodes: Vec<Value>,
    known: BTreeMap<String, usize>,
}

/// The arena of all types of all documents.
pub(super) fn arena(versions: &[Version], go: &Fields) -> anyhow::Result<Output> {
    let mut types: BTreeMap<&String, &Value> = BTreeMap::new();
    for version in versions {
        for (name, schema) in version.schemas() {
            let first = types.entry(name).or_insert(schema);
            // The two option types list the kinds they are registered for, which differ.
            ensure!(first["properties"] == schema["properties"], "{name} is published twice");
        }
    }
    let mut arena = Arena {
        types: types.keys().enumerate().map(|(index, name)| ((*name).clone(), index)).collect(),
        nodes: vec![Value::Null; types.len()],
        known: BTreeMap::new(),
    };
    for (index, (name, schema)) in types.iter().enumerate() {
        let mut node = match special(name) {
            Some(node) => node,
            None => arena.node(&with_empties(schema, &types, go.get(*name)))?,
        };
        node["name"] = json!(name);
        arena.nodes[index] = node;
    }
    let lines: String = arena.nodes.iter().map(|node| format!("{node}\n")).collect();
    Ok(("schemas.jsonl".to_owned(), lines.into_bytes()))
}

impl Arena {
    /// The index of a field's or an item's schema.
    fn index(&mut self, schema: &Value) -> anyhow::Result<usize> {
        let reference = reference(schema);
        let mut node = self.node(schema)?;
        if let Some(reference) = reference {
            let name =
                reference.strip_prefix(PREFIX).context("a reference outside the document")?;
            let target = *self.types.get(name).with_context(|| format!("no type {name}"))?;
            if node.as_object().is_some_and(Map::is_empty) {
                return Ok(target);
            }
            node["ref"] = json!(target);
        }
        let key = node.to_string();
        if let Some(index) = self.known.get(&key) {
            return Ok(*index);
        }
        let index = self.nodes.len();
        self.known.insert(key, index);
        self.nodes.push(node);
        Ok(index)
    }

    fn node(&mut self, schema: &Value) -> anyhow::Result<Value> {
        let mut node = Map::new();
        let mut keep = |key: &str, value: &Value| {
            if !value.is_null() {
                node.insert(key.to_owned(), value.clone());
            }
        };
        keep("type", &schema["type"]);
        keep("format", &schema["format"]);
        keep("default", &schema["default"]);
        keep("required", &schema["required"]);
        keep("enum", &schema["enum"]);
        keep("patch", &schema["x-kubernetes-patch-strategy"]);
        keep("mergeKey", &schema["x-kubernetes-patch-merge-key"]);
        keep("listType", &schema["x-kubernetes-list-type"]);
        keep("listKeys", &schema["x-kubernetes-list-map-keys"]);
        keep("mapType", &schema["x-kubernetes-map-type"]);
        keep("empty", &schema[EMPTY]);
        if let Some(properties) = schema["properties"].as_object() {
            let mut sorted: Vec<_> = properties.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            let mut fields = Map::new();
            for (name, property) in sorted {
                fields.insert(name.clone(), json!(self.index(property)?));
            }
            node.insert("fields".to_owned(), Value::Object(fields));
        }
        if !schema["additionalProperties"].is_null() {
            let values = self.index(&without_default(&schema["additionalProperties"]))?;
            node.insert("values".to_owned(), json!(values));
        }
        if !schema["items"].is_null() {
            let items = self.index(&without_default(&schema["items"]))?;
            node.insert("items".to_owned(), json!(items));
        }
        Ok(Value::Object(node))
    }
}

/// The default of an item is the zero value that stands for `null`; no list has one by default.
fn without_default(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("default");
    }
    schema
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str())
}

/// A type whose fields say what becomes of them when they are empty.
fn with_empties(
    schema: &Value,
    types: &BTreeMap<&String, &Value>,
    fields: Option<&BTreeMap<String, Field>>,
) -> Value {
    let mut schema = schema.clone();
    let properties = schema["properties"].as_object_mut().into_iter().flatten();
    for (name, property) in properties {
        let name_of = reference(property).and_then(|reference| reference.strip_prefix(PREFIX));
        let target = name_of.and_then(|name| types.get(&name.to_owned()));
        let is_struct = target.is_some_and(|target| target["properties"].is_object());
        let empty = fields.and_then(|fields| fields.get(name)).and_then(|go| go.empty.as_deref());
        if let Some(empty) = empty.filter(|empty| !is_struct || *empty == "null") {
            property[EMPTY] = empty.into();
        }
    }
    schema
}
