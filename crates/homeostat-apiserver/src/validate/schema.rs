//! A value against its schema: types, required fields, bounds, formats, junctors.
//!
//! On an update a part that did not change is not judged again (ratcheting): an object that was
//! stored under an older schema stays editable.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{format, invalid, join, not_supported};
use crate::alike;
use crate::field::{FieldError, Reason};
use crate::go::internal::in_order;
use crate::schema::{ListType, Node, Schema, Type};

/// The path of what is wrong with no field in particular.
pub(crate) const NOWHERE: &str = "<nil>";

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
    if let Some((wanted, found)) = wrong_type(node, value) {
        let detail = format!("{path} in body must be of type {wanted}: {found:?}");
        errors.push(FieldError::new(path, Reason::TypeInvalid, Value::from(found), detail));
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
    for (name, value) in object {
        if let Some(field) = schema.field(name) {
            let before = old.and_then(|old| old.get(name));
            let is_key = !node.properties.contains_key(name);
            let path = if is_key { format!("{path}.{name}") } else { join(path, name) };
            check(field, value, before, &path, errors);
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

/// The type that was wanted and the one that was found, when they are not the same. Where there is a
/// format, its name stands for the type, unless a text or a list was found.
fn wrong_type<'n>(node: &'n Node, value: &Value) -> Option<(&'n str, &'static str)> {
    let whole = |number: &serde_json::Number| number.as_f64().is_some_and(|n| n.fract() == 0.0);
    let (fits, wanted) = match node.ty {
        Type::Any => match node.unknown_type.as_deref() {
            Some(odd) => (false, odd),
            None => (node.bounds.format.is_none(), ""),
        },
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
    let is_number = matches!(node.ty, Type::Number | Type::Integer | Type::IntOrString);
    let format = node.bounds.format.as_deref().filter(|_| !value.is_null());
    match (format, value) {
        _ if fits => None,
        (Some(_), Value::String(_) | Value::Array(_)) if !is_number => None,
        (None, _) | (_, Value::String(_) | Value::Array(_)) => Some((wanted, json_type(value))),
        (Some(format), value) => {
            let found = match json_type(value) {
                "integer" => "int64",
                "number" => "float64",
                _ => "",
            };
            (format != found).then_some((format, found))
        }
    }
}

fn too(path: &str, reason: Reason, value: Option<Value>, detail: String) -> FieldError {
    FieldError { path: path.to_owned(), reason, value, detail }
}

fn plural(most: i64, one: &str, many: &str) -> String {
    format!("{most} {}", if most == 1 { one } else { many })
}

fn at_most(most: i64) -> String {
    match most {
        ..0 => "has too many items".to_owned(),
        most => format!("must have at most {}", plural(most, "item", "items")),
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
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
            match bounds.multiple_of {
                Some(factor) if factor <= 0.0 => {
                    let detail =
                        format!("factor MultipleOf declared for {path} must be positive: {factor}");
                    errors.push(invalid(path, in_order(&factor.into()), detail));
                }
                Some(factor) if (number / factor).fract() != 0.0 => {
                    refuse(format!("should be a multiple of {factor}"));
                }
                _ => {}
            }
        }
        Value::String(text) => {
            let length = count(text.chars().count());
            // the first of these that is broken is the one reported
            if let Some(most) = bounds.length.1.filter(|most| length > *most) {
                let detail = match most {
                    ..0 => "value is too long".to_owned(),
                    most => format!("may not be more than {}", plural(most, "byte", "bytes")),
                };
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
            let count = count(items.len());
            if let Some(least) = bounds.items.0.filter(|least| count < *least) {
                let detail = format!("{path} in body should have at least {least} items");
                errors.push(invalid(path, count, detail));
            }
            if let Some(most) = bounds.items.1.filter(|most| count > *most) {
                let detail = at_most(most);
                errors.push(too(path, Reason::TooMany, Some(Value::from(count)), detail));
            }
        }
        Value::Object(object) => {
            let count = count(object.len());
            if let Some(least) = bounds.properties.0.filter(|least| count < *least) {
                let detail = format!("{path} in body should have at least {least} properties");
                errors.push(invalid(path, count, detail));
            }
            if let Some(most) = bounds.properties.1.filter(|most| count > *most) {
                let detail = at_most(most);
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
    if node.bounds.unique_items && !alike::repeated(items).is_empty() {
        let detail = format!("{path} in body shouldn't contain duplicates");
        errors.push(invalid(path, Value::from(items.to_vec()), detail));
    }
}

fn junctors(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node();
    if value.is_null() {
        return;
    }
    let tried = |ids: &[crate::schema::NodeId]| -> Vec<Vec<FieldError>> {
        let judge = |id: &crate::schema::NodeId| {
            let mut found = Vec::new();
            check(schema.sibling(*id), value, None, path, &mut found);
            found
        };
        ids.iter().map(judge).collect()
    };
    let refuse = |errors: &mut Vec<FieldError>, words: &str| {
        errors.push(invalid(NOWHERE, "", format!("{path:?} must {words}")));
    };
    // Of those that refuse it, the one that has least against it is heard.
    let mildest =
        |all: Vec<Vec<FieldError>>| all.into_iter().min_by_key(Vec::len).unwrap_or_default();
    let accepted = |all: &[Vec<FieldError>]| all.iter().filter(|found| found.is_empty()).count();
    let any_of = tried(&node.any_of);
    if !any_of.is_empty() && accepted(&any_of) == 0 {
        refuse(errors, "validate at least one schema (anyOf)");
        errors.extend(mildest(any_of));
    }
    let one_of = tried(&node.one_of);
    match accepted(&one_of) {
        _ if one_of.is_empty() => {}
        0 => {
            refuse(errors, "validate one and only one schema (oneOf). Found none valid");
            errors.extend(mildest(one_of));
        }
        1 => {}
        several => {
            let found = format!("Found {several} valid alternatives");
            refuse(errors, &format!("validate one and only one schema (oneOf). {found}"));
        }
    }
    let all_of = tried(&node.all_of);
    if accepted(&all_of) != all_of.len() {
        let none = if accepted(&all_of) == 0 { ". None validated" } else { "" };
        refuse(errors, &format!("validate all the schemas (allOf){none}"));
        errors.extend(all_of.into_iter().flatten());
    }
    if let Some(id) = node.not
        && accepted(&tried(&[id])) == 1
    {
        refuse(errors, "not validate the schema (not)");
    }
}
