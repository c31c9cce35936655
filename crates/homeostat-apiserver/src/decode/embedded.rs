//! Objects inside of custom ones, as far as they are read: what they are is text, and their metadata is
//! brought into the shape that all metadata has.

use serde_json::{Map, Value};

use super::{Shaped, typed};
use crate::custom::OBJECT_META;
use crate::field::{FieldError, Reason};
use crate::go::internal::in_order;
use crate::go::json_type;
use crate::schema::{Schema, builtin};

/// Shapes the objects in a value that is found at `path`; notes the fields that metadata does not have.
///
/// # Errors
/// The first field that holds what it cannot hold.
pub(crate) fn embedded(
    schema: Schema<'_>,
    value: &mut Value,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), Box<FieldError>> {
    let node = schema.node();
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                let is_key = !node.properties.contains_key(name);
                let path = match path {
                    _ if is_key => format!("{path}[{name}]"),
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                if node.embedded_resource && matches!(name.as_str(), "apiVersion" | "kind") {
                    if !value.is_string() {
                        return Err(refused(path, value, "must be a string"));
                    }
                } else if node.embedded_resource && name == "metadata" {
                    if value.is_null() && !restricts_metadata(schema) {
                        // Where it is declared, it is left out like any other field.
                        *value = Value::Object(Map::new());
                    }
                    let given = value.clone();
                    match object_meta(value, &path) {
                        Ok(dropped) => unknown.extend(dropped.unknown),
                        Err(why) => return Err(refused(path, &given, &why)),
                    }
                } else if let Some(field) = schema.field(name) {
                    embedded(field, value, &path, unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                embedded(schema, item, &format!("{path}[{index}]"), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether a schema says more of metadata than that it is metadata.
fn restricts_metadata(schema: Schema<'_>) -> bool {
    let common = schema.named(OBJECT_META).map(Schema::id);
    schema.node().properties.get("metadata").copied() != common
}

/// Brings metadata that is found at `path` into its shape.
///
/// # Errors
/// What it cannot hold.
pub(crate) fn object_meta(value: &mut Value, path: &str) -> Result<Shaped, String> {
    let Some(schema) = builtin::schemas().named(OBJECT_META) else { return Ok(Shaped::default()) };
    match value {
        Value::Object(_) => typed::shape(schema, value, path, false),
        // Nothing is left out later.
        Value::Null => Ok(Shaped::default()),
        other => {
            let found = json_type(other);
            Err(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"))
        }
    }
}

fn refused(path: String, value: &Value, why: &str) -> Box<FieldError> {
    Box::new(FieldError::new(path, Reason::Invalid, in_order(value), why))
}
