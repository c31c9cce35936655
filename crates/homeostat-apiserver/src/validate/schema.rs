//! A value against its schema: types, required fields, bounds, formats, uniqueness, junctors.
//!
//! On an update a part that did not change is not judged again (ratcheting): an object that was
//! stored under an older schema stays editable.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{format, invalid, join, not_supported};
use crate::alike;
use crate::custom::OBJECT_META;
use crate::field::{FieldError, Reason};
use crate::schema::{ListType, Node, Schema, Type};

/// The path of what is wrong with no field in particular.
pub(super) const NOWHERE: &str = "<nil>";

/// All that the schema refuses in the value.
#[must_use]
pub fn schema(schema: Schema<'_>, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(schema, value, old, "", &mut errors);
    errors
}

fn check(
    schema: Schema<'_>,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if old == Some(value) {
        return;
    }
    let node = schema.node();
    if value.is_null() && node.nullable {
        return;
    }
    if let Some(wanted) = wrong_type(node, value) {
        let found = json_type(value);
        let detail = format!("{path} in body must be of type {wanted}: {found:?}");
        errors.push(FieldError::new(path, Reason::TypeInvalid, Value::from(found), detail));
        allowed(node, value, path, errors);
        return;
    }
    bounds(node, value, path, errors);
    allowed(node, value, path, errors);
    match value {
        Value::Object(object) => fields(schema, object, old, path, errors),
        Value::Array(items) => {
            unique(node, items, path, errors);
            let Some(item_schema) = schema.items() else { return };
            let before = OldItems::of(node, old);
            for (index, item) in items.iter().enumerate() {
                let before = before.find(item);
                check(item_schema, item, before, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
    junctors(schema, value, path, errors);
}

fn fields(
    schema: Schema<'_>,
    object: &Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let node = schema.node();
    for name in node.required.iter().filter(|name| !object.contains_key(name.as_str())) {
        errors.push(FieldError::required(join(path, name), ""));
    }
    if node.embedded_resource {
        for name in ["apiVersion", "kind"] {
            if object.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
                errors.push(FieldError::required(join(path, name), ""));
            }
        }
    }
    for (name, value) in object {
        if let Some(field) = schema.field(name) {
            let before = old.and_then(|old| old.get(name));
            let known = errors.len();
            check(field, value, before, &join(path, name), errors);
            if field.node().name == OBJECT_META {
                // Nobody minds what is in a list of metadata twice.
                let found = errors.split_off(known).into_iter();
                errors.extend(found.filter(|error| error.reason != Reason::Duplicate));
            }
        }
    }
}

/// The items of an old list by their keys; a list without keys has none to find.
pub(super) struct OldItems<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    /// The items of `old`, a list that the node describes.
    pub(super) fn of(node: &'a Node, old: Option<&'a Value>) -> Self {
        let ListType::Map(keys) = &node.list_type else {
            return Self { keys: &[], items: BTreeMap::new() };
        };
        let items = old.and_then(Value::as_array).into_iter().flatten();
        let mut by_key = BTreeMap::new();
        for item in items {
            // Of several the first one counts.
            by_key.entry(key(keys, item)).or_insert(item);
        }
        Self { keys, items: by_key }
    }

    /// The item that is the same one.
    pub(super) fn find(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() { None } else { self.items.get(&key(self.keys, item)).copied() }
    }
}

/// What tells an item from the others.
fn key(keys: &[String], item: &Value) -> String {
    let values = keys.iter().map(|key| item.get(key).map_or(String::new(), Value::to_string));
    values.collect::<Vec<_>>().join("\n")
}

pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The type that was wanted, when the value has another one.
fn wrong_type(node: &Node, value: &Value) -> Option<&'static str> {
    let whole = |number: &serde_json::Number| number.as_f64().is_some_and(|n| n.fract() == 0.0);
    let (fits, wanted) = match node.ty {
        Type::Any => (true, ""),
        Type::Object => (value.is_object(), "object"),
        Type::Array => (value.is_array(), "array"),
        Type::String => (value.is_string(), "string"),
        Type::Boolean => (value.is_boolean(), "boolean"),
        Type::Number => (value.is_number(), "number"),
        Type::Integer => (matches!(value, Value::Number(n) if whole(n)), "integer"),
        Type::IntOrString => {
            (value.is_string() || matches!(value, Value::Number(n) if whole(n)), "integer,string")
        }
    };
    if fits { None } else { Some(wanted) }
}

fn too(path: &str, reason: Reason, value: Option<Value>, detail: String) -> FieldError {
    FieldError { path: path.to_owned(), reason, value, detail }
}

fn plural(most: u64, one: &str, many: &str) -> String {
    format!("{most} {}", if most == 1 { one } else { many })
}

fn bounds(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let bounds = &node.bounds;
    let mut refuse = |detail: String| {
        errors.push(invalid(path, value.clone(), format!("{path} in body {detail}")));
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            match bounds.minimum {
                Some((least, true)) if number <= least => {
                    refuse(format!("should be greater than {least}"));
                }
                Some((least, false)) if number < least => {
                    refuse(format!("should be greater than or equal to {least}"));
                }
                _ => {}
            }
            match bounds.maximum {
                Some((most, true)) if number >= most => {
                    refuse(format!("should be less than {most}"));
                }
                Some((most, false)) if number > most => {
                    refuse(format!("should be less than or equal to {most}"));
                }
                _ => {}
            }
            if let Some(factor) = bounds.multiple_of
                && (number / factor).fract() != 0.0
            {
                refuse(format!("should be a multiple of {factor}"));
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            // the first of these that is broken is the one reported
            if let Some(most) = bounds.length.1.filter(|most| length > *most) {
                let detail = format!("may not be more than {}", plural(most, "byte", "bytes"));
                errors.push(too(path, Reason::TooLong, None, detail));
            } else if let Some(least) = bounds.length.0.filter(|least| length < *least) {
                refuse(format!("should be at least {least} chars long"));
            } else if let Some(pattern) =
                bounds.pattern.as_ref().filter(|p| !format::matches(p, text))
            {
                refuse(format!("should match '{pattern}'"));
            }
            if let Some(name) = bounds.format.as_ref().filter(|name| !format::accepts(name, text)) {
                let detail = format!("{path} in body must be of type {name}: {text:?}");
                errors.push(FieldError::new(path, Reason::TypeInvalid, value.clone(), detail));
            }
        }
        Value::Array(items) => {
            let count = items.len() as u64;
            if let Some(least) = bounds.items.0.filter(|least| count < *least) {
                refuse(format!("should have at least {least} items"));
            }
            if let Some(most) = bounds.items.1.filter(|most| count > *most) {
                let detail = format!("must have at most {}", plural(most, "item", "items"));
                errors.push(too(path, Reason::TooMany, Some(Value::from(count)), detail));
            }
        }
        Value::Object(object) => {
            let count = object.len() as u64;
            if let Some(least) = bounds.properties.0.filter(|least| count < *least) {
                refuse(format!("should have at least {least} properties"));
            }
            if let Some(most) = bounds.properties.1.filter(|most| count > *most) {
                let detail = format!("must have at most {}", plural(most, "item", "items"));
                errors.push(too(path, Reason::TooMany, Some(Value::from(count)), detail));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn allowed(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let values = &node.bounds.one_of_values;
    if !values.is_empty() && !values.contains(value) {
        let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let values: Vec<String> = values.iter().map(words).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        errors.push(not_supported(path, value, &values));
    }
}

fn unique(node: &Node, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    match &node.list_type {
        ListType::Atomic if node.bounds.unique_items => {
            if !alike::repeated(items).is_empty() {
                let detail = format!("{path} in body shouldn't contain duplicates");
                errors.push(invalid(path, Value::from(items.to_vec()), detail));
            }
        }
        ListType::Atomic => {}
        ListType::Set => {
            for index in alike::repeated(items) {
                let (path, item) = (format!("{path}[{index}]"), items[index].clone());
                errors.push(FieldError::new(path, Reason::Duplicate, item, ""));
            }
        }
        ListType::Map(keys) => {
            let key_of = |item: &Value| -> Value {
                let entries =
                    keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                Value::Object(entries.collect())
            };
            let all: Vec<Value> = items.iter().map(key_of).collect();
            for index in alike::repeated(&all) {
                let (path, key) = (format!("{path}[{index}]"), all[index].clone());
                errors.push(FieldError::new(path, Reason::Duplicate, key, ""));
            }
        }
    }
}

fn junctors(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node();
    for id in &node.all_of {
        check(schema.sibling(*id), value, None, path, errors);
    }
    let tried = |ids: &[crate::schema::NodeId]| -> Vec<Vec<FieldError>> {
        let judge = |id: &crate::schema::NodeId| {
            let mut found = Vec::new();
            check(schema.sibling(*id), value, None, path, &mut found);
            found
        };
        ids.iter().map(judge).collect()
    };
    let any_of = tried(&node.any_of);
    if !any_of.is_empty() && !any_of.iter().any(Vec::is_empty) {
        let detail = format!("{path:?} must validate at least one schema (anyOf)");
        errors.push(invalid(NOWHERE, "", detail));
        errors.extend(any_of.into_iter().min_by_key(Vec::len).unwrap_or_default());
    }
    let one_of = tried(&node.one_of);
    let accepted = one_of.iter().filter(|found| found.is_empty()).count();
    if !one_of.is_empty() && accepted != 1 {
        let found = if accepted == 0 { "Found none valid" } else { "Found 2 valid alternatives" };
        let detail = format!("{path:?} must validate one and only one schema (oneOf). {found}");
        errors.push(invalid(NOWHERE, "", detail));
    }
    if let Some(id) = node.not {
        let mut found = Vec::new();
        check(schema.sibling(id), value, None, path, &mut found);
        if found.is_empty() {
            let detail = format!("{path:?} must not validate the schema (not)");
            errors.push(invalid(NOWHERE, "", detail));
        }
    }
}
