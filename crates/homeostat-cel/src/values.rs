//! Values while an expression runs: how JSON becomes them, how large they are, what they are
//! called.

use std::sync::Arc;

use base64::Engine as _;
use kube_cel::cel::Value;
use kube_cel::cel::common::ast::LiteralValue;
use kube_cel::cel::objects::{Key, Map, Opaque, OptionalValue};
use serde_json::Value as Json;

use super::decl::Decl;
use super::functions;
use super::lists::Lists;
use super::types::Type;

/// A type as a value: what `type(…)` gives.
#[derive(Debug, PartialEq, Eq)]
struct TypeName(String);

impl Opaque for TypeName {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}

/// JSON as an expression sees it that knows its declaration: fields under their escaped names. Those
/// that nobody declared are there, but cannot be named. Sets and maps among the lists are noted.
pub fn typed(json: &Json, decl: &Decl, lists: &mut Lists) -> Value {
    match (json, &decl.ty, &decl.element) {
        (Json::Number(number), Type::Double, _) => {
            Value::Float(number.as_f64().unwrap_or(f64::NAN))
        }
        (Json::String(text), Type::Timestamp, _) => read("timestamp", text),
        (Json::String(text), Type::Duration, _) => read("duration", text),
        (Json::String(text), Type::Bytes, _) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            bytes.map_or_else(|_| string(text), |bytes| Value::Bytes(Arc::new(bytes)))
        }
        (Json::Array(items), Type::List(_), Some(item)) => {
            let items: Vec<Value> = items.iter().map(|value| typed(value, item, lists)).collect();
            let items = Arc::new(items);
            lists.note(&items, &decl.listing);
            Value::List(items)
        }
        (Json::Object(fields), Type::Map(_), Some(element)) => {
            map(fields.iter().map(|(name, value)| (name.clone(), typed(value, element, lists))))
        }
        (Json::Object(fields), Type::Object(_), _) => map(fields.iter().map(|(name, value)| {
            let known =
                super::decl::escape(name).and_then(|escaped| decl.fields.get_key_value(&escaped));
            match known {
                Some((name, field)) => (name.clone(), typed(value, field, lists)),
                None => (name.clone(), untyped(value)),
            }
        })),
        _ => untyped(json),
    }
}

/// JSON as an expression sees it that knows nothing of its type: whole numbers are signed, and
/// names are as they are.
pub fn untyped(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(signed), _) => Value::Int(signed),
            (None, Some(unsigned)) => Value::UInt(unsigned),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => string(text),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(untyped).collect())),
        Json::Object(fields) => {
            map(fields.iter().map(|(name, field)| (name.clone(), untyped(field))))
        }
    }
}

/// A text in the form that a function reads; as it is where the function cannot.
fn read(function: &str, text: &str) -> Value {
    functions::delegate(function, None, vec![string(text)]).unwrap_or_else(|_| string(text))
}

pub(super) fn string(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn map(fields: impl IntoIterator<Item = (String, Value)>) -> Value {
    entries(fields.into_iter().map(|(name, field)| (Key::String(Arc::new(name)), field)))
}

pub(super) fn entries(entries: impl IntoIterator<Item = (Key, Value)>) -> Value {
    Value::Map(Map { map: Arc::new(entries.into_iter().collect()) })
}

pub(super) fn literal(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(flag) => Value::Bool(*flag.inner()),
        LiteralValue::Bytes(bytes) => Value::Bytes(Arc::new(bytes.inner().to_vec())),
        LiteralValue::Double(number) => Value::Float(*number.inner()),
        LiteralValue::Int(number) => Value::Int(*number.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(text) => string(text.inner()),
        LiteralValue::UInt(number) => Value::UInt(*number.inner()),
    }
}

/// Something that may be absent, as a value.
pub fn maybe(value: Option<Value>) -> Value {
    value.map_or_else(none, some)
}

pub(super) fn some(value: Value) -> Value {
    Value::Opaque(Arc::new(OptionalValue::of(value)))
}

pub(super) fn none() -> Value {
    Value::Opaque(Arc::new(OptionalValue::none()))
}

/// What is inside something optional; `None` for what is not optional at all.
pub(super) fn optional(value: &Value) -> Option<Option<&Value>> {
    let Value::Opaque(opaque) = value else { return None };
    opaque.downcast_ref::<OptionalValue>().map(OptionalValue::value)
}

/// What can be the name of an entry.
pub(super) fn key(value: &Value) -> Option<Key> {
    Some(match value {
        Value::Int(number) => Key::Int(*number),
        Value::UInt(number) => Key::Uint(*number),
        Value::Bool(flag) => Key::Bool(*flag),
        Value::String(text) => Key::String(Arc::clone(text)),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "compared with what it was made from"
        )]
        Value::Float(number) if (*number as i64) as f64 == *number => Key::Int(*number as i64),
        _ => return None,
    })
}

/// The entries of a map in the order of their names: nothing may depend on how they are kept.
pub(super) fn in_order(map: &Map) -> Vec<(Key, Value)> {
    let mut entries: Vec<(Key, Value)> =
        map.map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    entries
}

/// How large something is, as far as costs go.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(items) => items.len() as u64,
        Value::Map(map) => map.map.len() as u64,
        Value::Opaque(opaque) if matches!(opaque.runtime_type_name(), "net.CIDR" | "net.IP") => {
            let is_long = functions::delegate("string", None, vec![value.clone()])
                .is_ok_and(|text| matches!(text, Value::String(text) if text.contains(':')));
            if is_long { 16 } else { 4 }
        }
        other => match optional(other) {
            Some(Some(inner)) => size(inner),
            _ => 1,
        },
    }
}

/// The type with that name, as a value.
pub(super) fn type_named(name: &str) -> Value {
    Value::Opaque(Arc::new(TypeName(name.to_owned())))
}

/// The type of a value, as a value.
pub(super) fn type_of(value: &Value) -> Value {
    type_named(type_name(value))
}

/// What the type of a value is called.
pub(super) fn type_name(value: &Value) -> &str {
    match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Null => "null_type",
        Value::Opaque(opaque) => opaque.runtime_type_name(),
        Value::Function(..) => "function",
    }
}
