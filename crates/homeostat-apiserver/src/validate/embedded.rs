//! Whole objects inside of custom ones (`x-kubernetes-embedded-resource`): they say what they are, and
//! their metadata is what any object's is. Nothing is forgiven here because it was there before.

use serde_json::{Map, Value};

use super::{invalid, join, metadata, name};
use crate::custom::OBJECT_META;
use crate::decode;
use crate::field::FieldError;
use crate::go::internal::in_order;
use crate::schema::Schema;

/// What is wrong with the objects in a value that is found at `path`.
pub(crate) fn embedded(schema: Schema<'_>, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, value, path, &mut errors);
    errors
}

fn walk(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(object) => {
            let node = schema.node();
            if node.embedded_resource {
                object_within(object, path, errors);
            }
            for (name, value) in object {
                let Some(field) = schema.field(name) else { continue };
                if field.node().name == OBJECT_META {
                    continue;
                }
                let is_key = !node.properties.contains_key(name);
                let path = if is_key { format!("{path}[{name}]") } else { join(path, name) };
                walk(field, value, &path, errors);
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                walk(schema, item, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

fn object_within(object: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for (field, problems) in
        [("apiVersion", version_problems as fn(&str) -> Vec<String>), ("kind", kind_problems)]
    {
        let place = join(path, field);
        match object.get(field) {
            None => errors.push(FieldError::required(place, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(invalid(place, "", "must not be empty"));
            }
            Some(Value::String(text)) => {
                let found = problems(text).into_iter();
                errors.extend(found.map(|why| invalid(place.as_str(), text.as_str(), why)));
            }
            Some(other) => errors.push(invalid(place, other.clone(), "must be a string")),
        }
    }
    let Some(meta) = object.get("metadata") else { return };
    let path = join(path, "metadata");
    match decode::object_meta(&mut meta.clone(), &path) {
        Ok(_) => errors.extend(metadata::of_any_object(meta, &path)),
        Err(why) => errors.push(invalid(path, in_order(meta), why)),
    }
}

fn version_problems(text: &str) -> Vec<String> {
    let is_wrong = text.matches('/').count() > 1;
    is_wrong.then(|| format!("unexpected GroupVersion string: {text}")).into_iter().collect()
}

fn kind_problems(text: &str) -> Vec<String> {
    let problems = name::dns_label_1035(&text.to_lowercase());
    if problems.is_empty() {
        return Vec::new();
    }
    let problems = problems.join(",");
    vec![format!("may have mixed case, but should otherwise match: {problems}")]
}
