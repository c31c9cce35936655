//! How Go reads and writes what kube-apiserver shows in its answers: why bytes are no JSON, the types of
//! fields, values under the names of its internal types, objects in the order of their fields, and
//! how two values differ.
//!
//! It only writes; whether anything is right is judged elsewhere.

pub(crate) mod internal;
pub(crate) mod syntax;
pub(crate) mod types;
mod unified;
mod written;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use written::written;

/// JSON as Go writes it: safe inside HTML, and a whole number without a fraction.
pub(crate) fn json(value: &Value) -> String {
    safe(&value.to_string())
}

/// A text in quotes as Go writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match (char, u32::from(char)) {
            ('"' | '\\', _) => out.extend(['\\', char]),
            ('\n', _) => out.push_str("\\n"),
            ('\r', _) => out.push_str("\\r"),
            ('\t', _) => out.push_str("\\t"),
            (_, 7) => out.push_str("\\a"),
            (_, 8) => out.push_str("\\b"),
            (_, 11) => out.push_str("\\v"),
            (_, 12) => out.push_str("\\f"),
            (_, code @ (0..=31 | 127)) => out.push_str(&format!("\\x{code:02x}")),
            (_, code) if format!("{:?}", format!("a{char}")).contains('\\') => {
                let escaped =
                    if code > 0xffff { format!("\\U{code:08x}") } else { format!("\\u{code:04x}") };
                out.push_str(&escaped);
            }
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}

/// A value as Go prints it inside of a sentence: `map[a:b c:[1 2]]`.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(printed).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            let entries: Vec<String> = sorted
                .into_iter()
                .map(|(name, value)| format!("{name}:{}", printed(value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// What Go calls a JSON value that does not fit where it was to be read.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What Go calls the type of a JSON value that it keeps in memory.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// How two values of a published type differ, line by line.
pub(crate) fn difference(ty: &str, old: &Value, new: &Value) -> String {
    difference_of_forms(&internal::form(ty, old), &internal::form(ty, new))
}

/// The same of two values that are in their internal form already.
pub(crate) fn difference_of_forms(old: &Value, new: &Value) -> String {
    unified::difference(&pretty(old), &pretty(new))
}

/// JSON in lines, indented by one blank for each level.
fn pretty(value: &Value) -> String {
    let mut text = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut text, format);
    let written = serde::Serialize::serialize(value, &mut writer);
    debug_assert!(written.is_ok(), "a value in memory can be written");
    safe(&String::from_utf8_lossy(&text))
}

fn safe(text: &str) -> String {
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
