//! The v2 document as protobuf (`openapi.v2.Document`), the only form that kubectl reads it in.
//!
//! Tables say which field of a message has which number; what is in the JSON and in no table is
//! left out. Values of any shape are text in this format: JSON, which is YAML, too.

use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::Value;

/// How a field is written.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Texts,
    Flag,
    Whole,
    Float,
    /// Any value.
    Any,
    /// A list of any values.
    Anys,
    Message(fn(&Value) -> Vec<u8>),
    /// One message for each item of a list.
    Messages(fn(&Value) -> Vec<u8>),
}
use Shape::{Any, Anys, Flag, Float, Message, Messages, Text, Texts, Whole};

type Row = (&'static str, u32, Shape);

const DOCUMENT: &[Row] = &[
    ("swagger", 1, Text),
    ("info", 2, Message(|value| message(value, INFO, 7))),
    ("security", 12, Messages(|value| named(value, 1, |scopes| fields(scopes, SCOPES)))),
    ("securityDefinitions", 13, Message(|value| named(value, 1, security))),
];
const INFO: &[Row] = &[("title", 1, Text), ("version", 2, Text), ("description", 3, Text)];
/// A list that is a message: the list is its only field.
const SCOPES: &[Row] = &[("", 1, Texts)];
const API_KEY: &[Row] =
    &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)];

const PATH_ITEM: &[Row] = &[
    ("get", 2, Message(operation)),
    ("put", 3, Message(operation)),
    ("post", 4, Message(operation)),
    ("delete", 5, Message(operation)),
    ("options", 6, Message(operation)),
    ("head", 7, Message(operation)),
    ("patch", 8, Message(operation)),
    ("parameters", 9, Messages(listed)),
];
const OPERATION: &[Row] = &[
    ("tags", 1, Texts),
    ("summary", 2, Text),
    ("description", 3, Text),
    ("operationId", 5, Text),
    ("produces", 6, Texts),
    ("consumes", 7, Texts),
    ("parameters", 8, Messages(listed)),
    ("responses", 9, Message(|value| named(value, 1, |one| nested(&[1], response(one))))),
    ("schemes", 10, Texts),
    ("deprecated", 11, Flag),
];
const REFERENCE: &[Row] = &[("$ref", 1, Text)];
const BODY: &[Row] = &[
    ("description", 1, Text),
    ("name", 2, Text),
    ("in", 3, Text),
    ("required", 4, Flag),
    ("schema", 5, Message(schema)),
];
/// Parameters in the query and those in the path are alike but for one field, which moves all that
/// come after it.
const QUERY: &[Row] = &[
    ("required", 1, Flag),
    ("in", 2, Text),
    ("description", 3, Text),
    ("name", 4, Text),
    ("type", 6, Text),
    ("format", 7, Text),
    ("default", 10, Any),
    ("pattern", 17, Text),
    ("uniqueItems", 20, Flag),
    ("enum", 21, Anys),
];
const PATH: &[Row] = &[
    ("required", 1, Flag),
    ("in", 2, Text),
    ("description", 3, Text),
    ("name", 4, Text),
    ("type", 5, Text),
    ("format", 6, Text),
    ("default", 9, Any),
    ("pattern", 16, Text),
    ("uniqueItems", 19, Flag),
    ("enum", 20, Anys),
];
const RESPONSE: &[Row] =
    &[("description", 1, Text), ("schema", 2, Message(|value| nested(&[1], schema(value))))];
const SCHEMA: &[Row] = &[
    ("$ref", 1, Text),
    ("format", 2, Text),
    ("title", 3, Text),
    ("description", 4, Text),
    ("default", 5, Any),
    ("multipleOf", 6, Float),
    ("maximum", 7, Float),
    ("exclusiveMaximum", 8, Flag),
    ("minimum", 9, Float),
    ("exclusiveMinimum", 10, Flag),
    ("maxLength", 11, Whole),
    ("minLength", 12, Whole),
    ("pattern", 13, Text),
    ("maxItems", 14, Whole),
    ("minItems", 15, Whole),
    ("uniqueItems", 16, Flag),
    ("maxProperties", 17, Whole),
    ("minProperties", 18, Whole),
    ("required", 19, Texts),
    ("enum", 20, Anys),
    ("additionalProperties", 21, Message(additional)),
    ("type", 22, Message(|value| fields(&Value::from(vec![value.clone()]), SCOPES))),
    ("items", 23, Message(|value| nested(&[1], schema(value)))),
    ("allOf", 24, Messages(schema)),
    ("properties", 25, Message(|value| named(value, 1, schema))),
    ("readOnly", 27, Flag),
    ("externalDocs", 29, Message(|value| message(value, ELSEWHERE, 3))),
    ("example", 30, Any),
];

const ELSEWHERE: &[Row] = &[("description", 1, Text), ("url", 2, Text)];

/// The whole document from its head and from entries of [`path`], [`definition`] and [`shared`].
pub(super) fn document(
    head: &Value,
    paths: &[u8],
    definitions: &[u8],
    parameters: &[u8],
) -> Vec<u8> {
    let mut out = message(head, DOCUMENT, 16);
    bytes(&mut out, 8, paths);
    bytes(&mut out, 9, definitions);
    bytes(&mut out, 10, parameters);
    out
}

/// An entry of `paths`.
pub(super) fn path(name: &str, item: &Value) -> Vec<u8> {
    entry(2, name, &message(item, PATH_ITEM, 10))
}

/// An entry of `definitions`.
pub(super) fn definition(name: &str, value: &Value) -> Vec<u8> {
    entry(1, name, &schema(value))
}

/// An entry of `parameters`.
pub(super) fn shared(name: &str, value: &Value) -> Vec<u8> {
    entry(1, name, &parameter(value))
}

fn schema(value: &Value) -> Vec<u8> {
    message(value, SCHEMA, 31)
}

fn operation(value: &Value) -> Vec<u8> {
    message(value, OPERATION, 13)
}

fn response(value: &Value) -> Vec<u8> {
    message(value, RESPONSE, 5)
}

fn security(value: &Value) -> Vec<u8> {
    nested(&[2], message(value, API_KEY, 5))
}

/// A parameter in a list of them, or a reference to one that is said once.
fn listed(value: &Value) -> Vec<u8> {
    if value.get("$ref").is_some() {
        return nested(&[2], fields(value, REFERENCE));
    }
    nested(&[1], parameter(value))
}

fn parameter(value: &Value) -> Vec<u8> {
    match value["in"].as_str() {
        Some("body") => nested(&[1], message(value, BODY, 6)),
        Some("path") => nested(&[2, 4], message(value, PATH, 22)),
        _ => nested(&[2, 3], message(value, QUERY, 23)),
    }
}

/// Of which type the members without a name are, or only whether there may be any.
fn additional(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value.as_bool() {
        // A choice is written even when it is `false`.
        Some(flag) => {
            encode_key(2, WireType::Varint, &mut out);
            encode_varint(u64::from(flag), &mut out);
        }
        None => bytes(&mut out, 1, &schema(value)),
    }
    out
}

/// A message with its extensions (`x-…`).
fn message(value: &Value, rows: &[Row], extensions: u32) -> Vec<u8> {
    let mut out = fields(value, rows);
    let members = value.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| name.starts_with("x-")) {
        out.extend(entry(extensions, name, &any(value)));
    }
    out
}

fn fields(value: &Value, rows: &[Row]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, number, shape) in rows {
        let value = if name.is_empty() { Some(value) } else { value.get(name) };
        let Some(value) = value else { continue };
        let items = value.as_array().into_iter().flatten();
        match shape {
            Text => bytes(&mut out, *number, value.as_str().unwrap_or_default().as_bytes()),
            Texts => {
                for item in items.filter_map(Value::as_str) {
                    bytes(&mut out, *number, item.as_bytes());
                }
            }
            Flag if *value == Value::Bool(true) => {
                prost::encoding::bool::encode(*number, &true, &mut out);
            }
            Flag => {}
            // Zeros are left out, as everywhere in this format.
            Whole => {
                if let Some(whole) = value.as_i64().filter(|whole| *whole != 0) {
                    prost::encoding::int64::encode(*number, &whole, &mut out);
                }
            }
            Float => {
                if let Some(float) = value.as_f64().filter(|float| *float != 0.0) {
                    prost::encoding::double::encode(*number, &float, &mut out);
                }
            }
            Any => bytes(&mut out, *number, &any(value)),
            Anys => items.for_each(|item| bytes(&mut out, *number, &any(item))),
            Message(write) => bytes(&mut out, *number, &write(value)),
            Messages(write) => items.for_each(|item| bytes(&mut out, *number, &write(item))),
        }
    }
    out
}

/// A message whose only field is a list of the object's members.
fn named(value: &Value, number: u32, write: fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let members = value.as_object().into_iter().flatten();
    members.flat_map(|(name, value)| entry(number, name, &write(value))).collect()
}

/// One member of such a list.
fn entry(number: u32, name: &str, value: &[u8]) -> Vec<u8> {
    let (mut pair, mut out) = (Vec::new(), Vec::new());
    bytes(&mut pair, 1, name.as_bytes());
    bytes(&mut pair, 2, value);
    bytes(&mut out, number, &pair);
    out
}

fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, 2, format!("{value}\n").as_bytes());
    out
}

/// The message as the only field of another, and so on outwards.
fn nested(numbers: &[u32], inner: Vec<u8>) -> Vec<u8> {
    numbers.iter().rev().fold(inner, |inner, number| {
        let mut out = Vec::new();
        bytes(&mut out, *number, &inner);
        out
    })
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(content.len() as u64, out);
    out.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_becomes_the_message_of_the_published_definition() {
        let written = json!({
            "type": "string", "maxLength": 3, "additionalProperties": false,
            "properties": {"a": {"$ref": "#/b"}}, "x-more": [1],
        });
        let expected = [
            &[0x58, 3][..],         // maxLength = 11
            &[0xaa, 1, 2, 0x10, 0], // additional_properties = 21
            &[0xb2, 1, 8, 0x0a, 6],
            b"string",                                                 // type = 22
            &[0xca, 1, 12, 0x0a, 10, 0x0a, 1, b'a', 0x12, 5, 0x0a, 3], // properties = 25
            b"#/b",
            &[0xfa, 1, 16, 0x0a, 6],
            b"x-more",
            &[0x12, 6, 0x12, 4], // vendor_extension = 31
            b"[1]\n",
        ];
        assert_eq!(schema(&written), expected.concat());
    }
}
