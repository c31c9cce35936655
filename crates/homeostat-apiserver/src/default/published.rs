//! What a typed server always writes out: structs that are not optional appear as `{}`, required
//! numbers and flags as zero. The published schema says which ones by their defaults.

use serde_json::{Map, Value};

use crate::schema::{Schema, Type};

/// Fields of `metadata` are filled by nobody but the server.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Adds the empty structs and required zeros that the schema publishes as defaults.
pub(super) fn fill(schema: Schema<'_>, value: &mut Value) {
    let node = schema.node();
    if node.name == OBJECT_META {
        return;
    }
    match value {
        Value::Object(object) => {
            for (name, id) in &node.properties {
                let field = schema.sibling(*id).node();
                let Some(default) = &field.default else { continue };
                let wanted = match default {
                    Value::Object(map) => map.is_empty() && field.ty == Type::Object,
                    Value::Number(_) | Value::Bool(_) => node.required.contains(name),
                    _ => false,
                };
                if wanted && matches!(object.get(name), None | Some(Value::Null)) {
                    let empty = if default.is_object() {
                        Value::Object(Map::new())
                    } else {
                        default.clone()
                    };
                    object.insert(name.clone(), empty);
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
