//! What a typed server always writes out: fields that may not be left out appear with their zero value
//! or as `null`, structs that are not optional as `{}`.

use serde_json::{Map, Value};

use crate::schema::{Node, Schema, Type, WhenEmpty};

/// Adds what is never left out and was not given.
pub(super) fn fill(schema: Schema<'_>, value: &mut Value) {
    let node = schema.node();
    match value {
        Value::Object(object) => {
            for (name, id) in &node.properties {
                let field = schema.sibling(*id).node();
                if let Some(shown) = shown(field)
                    && object.get(name).is_none_or(Value::is_null)
                {
                    object.insert(name.clone(), shown);
                }
            }
            for (name, value) in object.iter_mut() {
                if let Some(field) = schema.field(name) {
                    fill(field, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.items() {
                items.iter_mut().for_each(|value| fill(item, value));
            }
        }
        _ => {}
    }
}

/// What stands for a field that was not given.
fn shown(field: &Node) -> Option<Value> {
    match field.when_empty {
        WhenEmpty::Null => Some(Value::Null),
        WhenEmpty::Zero => Some(field.zero()),
        // A struct that is no pointer is published with an empty default.
        WhenEmpty::Kept | WhenEmpty::Dropped => {
            let default = field.default.as_ref()?.as_object()?;
            (default.is_empty() && field.ty == Type::Object).then(|| Value::Object(Map::new()))
        }
    }
}

/// Makes lists and maps that are never left out `null` when they are empty, as they are once they
/// have been stored.
pub(super) fn empty_to_null(schema: Schema<'_>, value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                let Some(field) = schema.field(name) else { continue };
                let is_empty = match &*value {
                    Value::Array(items) => items.is_empty(),
                    Value::Object(fields) => fields.is_empty() && field.node().additional.is_some(),
                    _ => false,
                };
                if is_empty && field.node().when_empty == WhenEmpty::Null {
                    *value = Value::Null;
                } else {
                    empty_to_null(field, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.items() {
                items.iter_mut().for_each(|value| empty_to_null(item, value));
            }
        }
        _ => {}
    }
}
