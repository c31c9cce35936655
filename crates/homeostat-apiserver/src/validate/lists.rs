//! Lists of custom resources that are sets, or maps by some keys (`x-kubernetes-list-type`): nothing
//! stands in them twice.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{invalid, join};
use crate::alike;
use crate::custom::OBJECT_META;
use crate::field::{FieldError, Reason};
use crate::schema::{ListType, Schema};

/// What stands twice in the lists of a value. Where that was so before, anywhere, nobody minds.
pub(crate) fn repeated(schema: Schema<'_>, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let found = |value: &Value| {
        let mut errors = Vec::new();
        walk(schema, value, "", &mut errors);
        errors
    };
    if old.is_some_and(|old| !found(old).is_empty()) {
        return Vec::new();
    }
    found(value)
}

fn walk(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node();
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                // Nobody minds what is in a list of metadata twice.
                let field = schema.field(name).filter(|field| field.node().name != OBJECT_META);
                let Some(field) = field else { continue };
                let is_key = !node.properties.contains_key(name);
                let path = if is_key { format!("{path}[{name}]") } else { join(path, name) };
                walk(field, value, &path, errors);
            }
        }
        Value::Array(items) => {
            match &node.list_type {
                ListType::Atomic => {}
                ListType::Set => duplicates(items, path, errors),
                ListType::Map(keys) => keyed(keys, items, path, errors),
            }
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                walk(schema, item, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

fn keyed(keys: &[String], items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let is_other = |item: &Value| !item.is_object() && !item.is_null();
    if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| is_other(item)) {
        let detail = "must be an object for an array of list-type map";
        errors.push(invalid(format!("{path}[{index}]"), item.clone(), detail));
        return;
    }
    let key_of = |item: &Value| {
        let entries = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(entries.collect::<Map<_, _>>())
    };
    duplicates(&items.iter().map(key_of).collect::<Vec<_>>(), path, errors);
}

/// What stands in the list several times is told of once.
fn duplicates(items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let mut told = BTreeSet::new();
    for index in alike::repeated(items) {
        if told.insert(alike::key(&items[index])) {
            let item = items[index].clone();
            errors.push(FieldError::new(format!("{path}[{index}]"), Reason::Duplicate, item, ""));
        }
    }
}
