//! Reading and writing `metadata` of an object in JSON form. Absent and empty mean the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A field of `metadata`.
pub(crate) fn field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(name)
}

/// A string of `metadata`; empty when absent.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    field(object, name).and_then(Value::as_str).unwrap_or("")
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

/// `metadata.namespace`.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// `metadata.generation`; 0 when it is not kept.
pub(crate) fn generation(object: &Value) -> i64 {
    field(object, "generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Whether a deletion is pending.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// `metadata.deletionGracePeriodSeconds`.
pub(crate) fn grace(object: &Value) -> Option<i64> {
    field(object, "deletionGracePeriodSeconds").and_then(Value::as_i64)
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    field(object, "finalizers")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Replaces `metadata.finalizers`; an empty list removes the field.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let value = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
    set(object, "finalizers", value);
}

/// `metadata.labels`.
pub(crate) fn labels(object: &Value) -> BTreeMap<&str, &str> {
    field(object, "labels")
        .and_then(Value::as_object)
        .map(|labels| labels.iter().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?))).collect())
        .unwrap_or_default()
}

/// Sets a field of `metadata`; null removes it.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    let Some(metadata) = metadata_mut(object) else { return };
    if value.is_null() {
        metadata.shift_remove(field);
    } else {
        metadata.insert(field.to_owned(), value);
    }
}

/// Makes a field of `metadata` what it is in `from`, absent included.
pub(crate) fn copy(object: &mut Value, from: &Value, name: &str) {
    set(object, name, field(from, name).cloned().unwrap_or(Value::Null));
}

/// Sets a label.
pub(crate) fn set_label(object: &mut Value, label: &str, value: &str) {
    set_entry(object, "labels", label, value);
}

/// Sets an annotation.
pub(crate) fn set_annotation(object: &mut Value, annotation: &str, value: &str) {
    set_entry(object, "annotations", annotation, value);
}

/// Takes annotations out of the metadata of an object.
pub(crate) fn take_annotations(metadata: &mut Value, names: &[&str]) -> Map<String, Value> {
    let mut taken = Map::new();
    let Some(metadata) = metadata.as_object_mut() else { return taken };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        for name in names {
            if let Some(value) = annotations.shift_remove(*name) {
                taken.insert((*name).to_owned(), value);
            }
        }
        if annotations.is_empty() && !taken.is_empty() {
            metadata.shift_remove("annotations");
        }
    }
    taken
}

fn set_entry(object: &mut Value, map: &str, name: &str, value: &str) {
    if let Some(metadata) = metadata_mut(object) {
        let entries = metadata.entry(map).or_insert_with(|| json!({}));
        if !entries.is_object() {
            *entries = json!({});
        }
        entries[name] = value.into();
    }
}

fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let object = object.as_object_mut()?;
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut()
}

/// Sets a top-level field, or removes it.
pub(crate) fn set_top(object: &mut Value, field: &str, value: Option<Value>) {
    if let Some(object) = object.as_object_mut() {
        match value {
            Some(value) => {
                object.insert(field.to_owned(), value);
            }
            None => {
                object.shift_remove(field);
            }
        }
    }
}
