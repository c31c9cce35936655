//! Dropping what the schema of a custom resource does not name.

use serde_json::Value;

use crate::schema::{Schema, Type};

/// Removes fields without a schema, except below `x-kubernetes-preserve-unknown-fields`, and gives
/// the paths of what went.
pub fn prune(schema: Schema<'_>, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    walk(schema, value, "", &mut dropped);
    dropped
}

fn walk(schema: Schema<'_>, value: &mut Value, path: &str, dropped: &mut Vec<String>) {
    let node = schema.node();
    match value {
        Value::Object(object) => {
            object.retain(|name, value| {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match schema.field(name) {
                    Some(field) => {
                        walk(field, value, &below, dropped);
                        true
                    }
                    None if node.preserve_unknown || is_free_form(schema) => true,
                    None => {
                        dropped.push(below);
                        false
                    }
                }
            });
        }
        Value::Array(items) => {
            if let Some(item) = schema.items() {
                for (index, value) in items.iter_mut().enumerate() {
                    walk(item, value, &format!("{path}[{index}]"), dropped);
                }
            }
        }
        _ => {}
    }
}

/// Published types without any field (`FieldsV1`) hold whatever they are given. A value where the
/// schema wants a scalar is left for validation to refuse.
fn is_free_form(schema: Schema<'_>) -> bool {
    let node = schema.node();
    (!node.name.is_empty() && node.properties.is_empty())
        || !matches!(node.ty, Type::Object | Type::Any)
}
