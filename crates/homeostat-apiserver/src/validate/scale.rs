//! What the scale subresource of a custom resource finds at its paths: numbers and a selector.

use serde_json::Value;

use super::invalid;
use crate::field::FieldError;
use crate::kinds::Kind;

/// What is wrong at the paths that the definition names for its scale.
pub(super) fn paths(kind: &Kind, value: &Value) -> Vec<FieldError> {
    let Some(scale) = kind.custom.as_ref().and_then(|custom| custom.scale.as_ref()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for path in [&scale.spec, &scale.status] {
        match find(value, path, "int64") {
            Err(detail) => errors.push(invalid(path, 0, detail)),
            Ok(Some(number)) => match number.as_i64().unwrap_or_default() {
                ..0 => {
                    errors.push(invalid(path, number.clone(), "should be a non-negative integer"));
                }
                0x8000_0000.. => {
                    let detail = format!("should be less than or equal to {}", i32::MAX);
                    errors.push(invalid(path, number.clone(), detail));
                }
                _ => {}
            },
            Ok(None) => {}
        }
    }
    if let Some(path) = &scale.selector
        && let Err(detail) = find(value, path, "string")
    {
        errors.push(invalid(path, "", detail));
    }
    errors
}

/// The value at the path, if there is one of that type (as Go names it).
fn find<'a>(value: &'a Value, path: &str, wanted: &str) -> Result<Option<&'a Value>, String> {
    let mut place = value;
    let mut walked = String::new();
    for name in path.trim_start_matches('.').split('.') {
        walked.push('.');
        walked.push_str(name);
        let Some(fields) = place.as_object() else {
            return Err(misfit(&walked, place, "map[string]interface{}"));
        };
        match fields.get(name) {
            None => return Ok(None),
            Some(next) => place = next,
        }
    }
    let fits = match wanted {
        "int64" => place.is_i64() || place.is_u64(),
        _ => place.is_string(),
    };
    if fits { Ok(Some(place)) } else { Err(misfit(&walked, place, wanted)) }
}

fn misfit(path: &str, value: &Value, wanted: &str) -> String {
    let (shown, ty) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::String(text) => (text.clone(), "string"),
        Value::Bool(value) => (value.to_string(), "bool"),
        Value::Number(number) if number.is_f64() => (number.to_string(), "float64"),
        Value::Number(number) => (number.to_string(), "int64"),
        Value::Array(_) => (crate::apply::go_words(value), "[]interface {}"),
        Value::Object(_) => (crate::apply::go_words(value), "map[string]interface {}"),
    };
    format!("{path} accessor error: {shown} is of the type {ty}, expected {wanted}")
}
