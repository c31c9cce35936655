//! Definitions: formats that nobody knows accept everything.

use std::collections::BTreeMap;

use serde_json::Value;

/// The formats of strings that are known, without their dashes.
const FORMATS: &[&str] = &[
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Warns of formats that nobody knows and that were not there before.
pub(super) fn of_definition(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let before = old.map(unknown_formats).unwrap_or_default();
    let found = unknown_formats(object).into_iter().filter(|format| !before.contains(format));
    warnings.extend(found.map(|format| format!("unrecognized format {format:?}")));
}

fn unknown_formats(definition: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let mut before = None;
    for version in versions.into_iter().flatten() {
        let schema = version.pointer("/schema/openAPIV3Schema");
        // What versions share is looked at once.
        if schema != before {
            schema.into_iter().for_each(|schema| collect(schema, &mut found));
        }
        before = schema;
    }
    found
}

/// Whether a format means something for values of a type; the others are ignored.
pub(crate) fn is_known(ty: &str, format: &str) -> bool {
    match ty {
        "" | "string" => FORMATS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

fn collect<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    let format = text("format");
    if !format.is_empty() && !is_known(text("type"), format) {
        found.push(schema.get("format").and_then(Value::as_str).unwrap_or_default());
    }
    for name in ["items", "allOf", "anyOf", "oneOf", "not"] {
        match schema.get(name) {
            Some(Value::Array(schemas)) => schemas.iter().for_each(|below| collect(below, found)),
            Some(below) => collect(below, found),
            None => {}
        }
    }
    let fields: BTreeMap<_, _> =
        schema.get("properties").and_then(Value::as_object).into_iter().flatten().collect();
    fields.into_values().for_each(|below| collect(below, found));
    if let Some(below) = schema.get("additionalProperties") {
        collect(below, found);
    }
}
