//! The dozen types whose JSON is not an object with the message's fields.

use std::fmt::Write as _;

use jiff::Timestamp;
use prost_reflect::{DynamicMessage, ReflectMessage as _};
use serde_json::Value;

use super::{Codec, ProtoError, json};

const MACHINERY: &str = "k8s.io.apimachinery.pkg";
const EXTENSIONS: &str = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1";

/// The JSON of such a type, `null` where Go would write nothing; `None` for any other type.
pub(super) fn value(codec: &Codec, message: &DynamicMessage) -> Result<Option<Value>, ProtoError> {
    let descriptor = message.descriptor();
    let name = descriptor.full_name();
    if let Some(name) = name.strip_prefix(MACHINERY) {
        return Ok(Some(match name {
            ".api.resource.Quantity" => quantity(message),
            ".util.intstr.IntOrString" => int_or_string(message),
            ".apis.meta.v1.Time" => time(message, 0)?,
            ".apis.meta.v1.MicroTime" => time(message, 6)?,
            ".apis.meta.v1.Duration" => duration(integer(message, "duration")).into(),
            ".apis.meta.v1.FieldsV1" => raw(message, "Raw")?,
            ".apis.meta.v1.Verbs" => list(codec, message, "items")?,
            ".runtime.RawExtension" => raw(message, "raw")?,
            _ => return Ok(None),
        }));
    }
    if let Some(name) = name.strip_prefix(EXTENSIONS) {
        return Ok(Some(match name {
            ".JSON" => raw(message, "raw")?,
            ".JSONSchemaPropsOrArray" => {
                either(list(codec, message, "jSONSchemas")?, inner(codec, message)?)
            }
            ".JSONSchemaPropsOrStringArray" => {
                either(list(codec, message, "property")?, inner(codec, message)?)
            }
            ".JSONSchemaPropsOrBool" => match inner(codec, message)? {
                Value::Null => {
                    let allows = message.get_field_by_name("allows");
                    allows.and_then(|allows| allows.as_bool()).unwrap_or_default().into()
                }
                schema => schema,
            },
            _ => return Ok(None),
        }));
    }
    if descriptor.name() == "ExtraValue" {
        return list(codec, message, "items").map(Some);
    }
    Ok(None)
}

fn text(message: &DynamicMessage, field: &str) -> String {
    let value = message.get_field_by_name(field);
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn integer(message: &DynamicMessage, field: &str) -> i64 {
    message
        .get_field_by_name(field)
        .and_then(|value| value.as_i64().or_else(|| value.as_i32().map(i64::from)))
        .unwrap_or_default()
}

fn quantity(message: &DynamicMessage) -> Value {
    let text = text(message, "string");
    if text.is_empty() { "0".into() } else { text.into() }
}

fn int_or_string(message: &DynamicMessage) -> Value {
    match integer(message, "type") {
        0 => integer(message, "intVal").into(),
        _ => text(message, "strVal").into(),
    }
}

/// An empty message is the zero time, which Go writes as `null`.
fn time(message: &DynamicMessage, digits: usize) -> Result<Value, ProtoError> {
    if !message.has_field_by_name("seconds") && !message.has_field_by_name("nanos") {
        return Ok(Value::Null);
    }
    let seconds = integer(message, "seconds");
    let nanos = i32::try_from(integer(message, "nanos")).unwrap_or_default();
    let nanos = if digits == 0 { 0 } else { nanos };
    let instant =
        Timestamp::new(seconds, nanos).map_err(|_| ProtoError::TimeOutOfRange(seconds))?;
    Ok(match digits {
        0 => instant.to_string().into(),
        digits => format!("{instant:.digits$}").into(),
    })
}

/// A duration as Go prints it: `1h2m3.5s`, `15ms`, `0s`.
fn duration(nanos: i64) -> String {
    let size = nanos.unsigned_abs();
    let mut out = if nanos < 0 { "-".to_owned() } else { String::new() };
    let (unit, name) = match size {
        0 => return "0s".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (hours, minutes) = (size / 3_600_000_000_000, size / 60_000_000_000);
    if hours > 0 {
        let _ = write!(out, "{hours}h");
    }
    if minutes > 0 {
        let _ = write!(out, "{}m", minutes % 60);
    }
    let rest = size - minutes * 60_000_000_000;
    let fraction = format!("{:09}", (rest % unit) * (1_000_000_000 / unit));
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let _ = write!(out, "{}{point}{fraction}{name}", rest / unit);
    out
}

/// JSON text inside a field. An enveloped object there is refused: no client sends one, and reading
/// envelopes inside envelopes would have no bound.
fn raw(message: &DynamicMessage, field: &str) -> Result<Value, ProtoError> {
    let value = message.get_field_by_name(field);
    let Some(bytes) = value.as_ref().and_then(|value| value.as_bytes()) else {
        return Ok(Value::Null);
    };
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(bytes).map_err(|source| ProtoError::NotJson {
        field: format!("{}.{field}", message.descriptor().full_name()),
        source,
    })
}

fn list(codec: &Codec, message: &DynamicMessage, field: &str) -> Result<Value, ProtoError> {
    let value = message.get_field_by_name(field);
    let Some(items) = value.as_ref().and_then(|value| value.as_list()) else {
        return Ok(Value::Array(Vec::new()));
    };
    items.iter().map(|item| json::single(codec, item)).collect()
}

fn inner(codec: &Codec, message: &DynamicMessage) -> Result<Value, ProtoError> {
    if !message.has_field_by_name("schema") {
        return Ok(Value::Null);
    }
    let value = message.get_field_by_name("schema");
    match value.as_ref().and_then(|value| value.as_message()) {
        Some(schema) => json::message(codec, schema),
        None => Ok(Value::Null),
    }
}

/// The list if it has items, else the other form.
fn either(list: Value, other: Value) -> Value {
    if list.as_array().is_some_and(|items| !items.is_empty()) { list } else { other }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_read_as_in_go() {
        let cases = [
            (0, "0s"),
            (15_000_000, "15ms"),
            (1_500, "1.5µs"),
            (3_723_500_000_000, "1h2m3.5s"),
            (-60_000_000_000, "-1m0s"),
            (7_200_000_000_000, "2h0m0s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(duration(nanos), text);
        }
    }
}
