//! A message as JSON, field by field, the way Go writes the same struct.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, ReflectMessage as _, Value as Proto};
use serde_json::{Map, Value};

use super::{Codec, Presence, ProtoError, special};

/// Writes the fields of a message into an object.
pub(super) fn fields(
    codec: &Codec,
    message: &DynamicMessage,
    object: &mut Map<String, Value>,
) -> Result<(), ProtoError> {
    let descriptor = message.descriptor();
    for field in descriptor.fields() {
        let presence = codec.presence(descriptor.full_name(), field.name());
        let sent = message.has_field(&field);
        let value = message.get_field(&field);
        if presence == Some(Presence::Spread) {
            if let Some(inner) = value.as_message() {
                fields(codec, inner, object)?;
            }
            continue;
        }
        let kept = match presence {
            Some(Presence::Always) => true,
            Some(Presence::WhenSet) => sent,
            _ if field.is_list() || field.is_map() || value.as_message().is_some() => sent,
            _ => sent && !value.is_default(&field.kind()),
        };
        if !kept {
            continue;
        }
        let value = whole(codec, &field, &value)?;
        if !value.is_null() {
            object.insert(field.json_name().to_owned(), value);
        }
    }
    Ok(())
}

/// A field's value, be it a list, a map or single.
fn whole(codec: &Codec, field: &FieldDescriptor, value: &Proto) -> Result<Value, ProtoError> {
    match value {
        Proto::List(items) => items.iter().map(|item| single(codec, item)).collect(),
        Proto::Map(entries) => {
            // The map has no order; JSON written from it must have one.
            let mut sorted: Vec<(String, &Proto)> =
                entries.iter().map(|(key, value)| (map_key(key), value)).collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            let pairs = sorted.into_iter().map(|(key, value)| Ok((key, single(codec, value)?)));
            pairs.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        Proto::Message(message) if field.kind().as_message().is_some() => {
            self::message(codec, message)
        }
        _ => single(codec, value),
    }
}

pub(super) fn single(codec: &Codec, value: &Proto) -> Result<Value, ProtoError> {
    Ok(match value {
        Proto::Bool(value) => (*value).into(),
        Proto::I32(value) | Proto::EnumNumber(value) => (*value).into(),
        Proto::I64(value) => (*value).into(),
        Proto::U32(value) => (*value).into(),
        Proto::U64(value) => (*value).into(),
        Proto::F32(value) => number(f64::from(*value)),
        Proto::F64(value) => number(*value),
        Proto::String(value) => value.as_str().into(),
        Proto::Bytes(value) => STANDARD.encode(value).into(),
        Proto::Message(value) => message(codec, value)?,
        // Protobuf has no lists or maps inside lists or maps.
        Proto::List(_) | Proto::Map(_) => Value::Null,
    })
}

/// A message: one of the types with a JSON form of its own, else an object.
pub(super) fn message(codec: &Codec, message: &DynamicMessage) -> Result<Value, ProtoError> {
    if let Some(value) = special::value(codec, message)? {
        return Ok(value);
    }
    let mut object = Map::new();
    fields(codec, message, &mut object)?;
    Ok(Value::Object(object))
}

/// Whole numbers are written without a fraction, as Go does.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "within the bounds just checked")]
    if value.fract() == 0.0 && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}

fn map_key(key: &MapKey) -> String {
    match key {
        MapKey::String(key) => key.clone(),
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
    }
}
