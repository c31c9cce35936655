//! Dropping what the schema of a custom resource does not name.

use std::fmt::Write as _;

use serde_json::Value;

use crate::decode::MOST_COMPLAINTS;
use crate::schema::{Schema, Type};

/// What every object has.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes fields without a schema, except below `x-kubernetes-preserve-unknown-fields`, and gives
/// the paths of what went, up to a hundred.
pub fn prune(schema: Schema<'_>, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    walk(schema, value, &mut String::new(), &mut dropped);
    dropped
}

fn walk(schema: Schema<'_>, value: &mut Value, path: &mut String, dropped: &mut Vec<String>) {
    let (node, length) = (schema.node(), path.len());
    match value {
        Value::Object(object) => {
            object.retain(|name, value| {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                let kept = match schema.field(name) {
                    // Whoever reads them brings them into shape.
                    _ if node.embedded_resource && META.contains(&name.as_str()) => true,
                    Some(field) => {
                        walk(field, value, path, dropped);
                        true
                    }
                    None if node.preserve_unknown || is_free_form(schema) => true,
                    None => {
                        if dropped.len() < MOST_COMPLAINTS {
                            dropped.push(path.clone());
                        }
                        false
                    }
                };
                path.truncate(length);
                kept
            });
        }
        Value::Array(items) => {
            if let Some(item) = schema.items() {
                for (index, value) in items.iter_mut().enumerate() {
                    let _ = write!(path, "[{index}]");
                    walk(item, value, path, dropped);
                    path.truncate(length);
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
