//! What a typed decoder does to a value of a built-in kind: unknown fields fall away, `null` means
//! absent, and a value that the field's type cannot hold is an error.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{MOST_COMPLAINTS, Quantity};
use crate::schema::{Node, Schema, Type};

/// Lists that mean something when they are empty, or that their kinds always show.
const KEPT: &[&str] = &["managedFields", "rules", "endpoints", "ports"];

/// Lists and maps that mean something else when they are empty than when they are not there.
const TELLING: &[&str] =
    &["spec.overhead", "spec.behavior.scaleUp.policies", "spec.behavior.scaleDown.policies"];

/// What belongs to somebody else may be anything.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Shapes the value found at `path` in place; gives the paths of what was dropped.
pub(super) fn shape(
    schema: Schema<'_>,
    value: &mut Value,
    path: &str,
) -> Result<Vec<String>, String> {
    let mut walk = Walk { path: path.to_owned(), fields: String::new(), unknown: Vec::new() };
    walk.value(schema, value, "")?;
    Ok(walk.unknown)
}

/// The paths of fields without a schema.
pub(super) fn unknown(
    schema: Schema<'_>,
    value: &Value,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let node = schema.node();
    let length = path.len();
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                push_field(path, name);
                match schema.field(name) {
                    Some(field) => unknown(field, value, path, found),
                    None if is_open(node) => {}
                    None if found.len() >= MOST_COMPLAINTS => {}
                    None => found.push(path.clone()),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                if let Some(item) = schema.items() {
                    path.push_str(&format!("[{index}]"));
                    unknown(item, value, path, found);
                    path.truncate(length);
                }
            }
        }
        _ => {}
    }
}

/// Whether fields without a schema belong there: free-form types of built-in kinds publish no
/// properties at all.
fn is_open(node: &Node) -> bool {
    node.preserve_unknown || (node.properties.is_empty() && node.additional.is_none())
}

fn push_field(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

struct Walk {
    path: String,
    /// The path without the keys of maps and the places in lists.
    fields: String,
    unknown: Vec<String>,
}

impl Walk {
    /// `owner` is the short name of the struct that the value is a field of.
    fn value(&mut self, schema: Schema<'_>, value: &mut Value, owner: &str) -> Result<(), String> {
        let node = schema.node();
        if node.name == QUANTITY {
            return quantity(value);
        }
        match (node.ty, &mut *value) {
            _ if node.name == RAW_EXTENSION => Ok(()),
            (Type::Object, Value::Object(object)) => self.object(schema, object, owner),
            (Type::Array, Value::Array(items)) => {
                let Some(item_schema) = schema.items() else { return Ok(()) };
                let length = self.path.len();
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    if item.is_null() {
                        *item = zero(item_schema.node());
                    }
                    self.value(item_schema, item, owner)?;
                    self.path.truncate(length);
                }
                Ok(())
            }
            (Type::String, Value::String(text)) => string(node, text),
            (Type::Integer, Value::Number(number)) => {
                let fits = match (number.as_i64(), node.bounds.format.as_deref()) {
                    (Some(n), Some("int32")) => i32::try_from(n).is_ok(),
                    (whole, _) => whole.is_some(),
                };
                if fits {
                    Ok(())
                } else {
                    Err(self.mismatch(&format!("number {number}"), node, owner))
                }
            }
            (Type::IntOrString, Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Ok(())
            }
            (Type::Any, _)
            | (Type::Number, Value::Number(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::IntOrString, Value::String(_)) => Ok(()),
            (_, other) => Err(self.mismatch(json_type(other), node, owner)),
        }
    }

    fn object(
        &mut self,
        schema: Schema<'_>,
        object: &mut Map<String, Value>,
        owner: &str,
    ) -> Result<(), String> {
        let node = schema.node();
        let own = node.name.rsplit('.').next().unwrap_or_default();
        // A plain map belongs to the struct it is a field of.
        let owner = if own.is_empty() { owner } else { own };
        let (length, fields) = (self.path.len(), self.fields.len());
        let mut dropped = BTreeSet::new();
        for (name, value) in object.iter_mut() {
            push_field(&mut self.path, name);
            let is_map_value = !node.properties.contains_key(name);
            if !is_map_value {
                push_field(&mut self.fields, name);
            }
            match schema.field(name) {
                Some(field) if value.is_null() && is_map_value => *value = zero(field.node()),
                Some(_) if value.is_null() => drop(dropped.insert(name.clone())),
                Some(field) => {
                    self.value(field, value, owner)?;
                    if !is_map_value
                        && !KEPT.contains(&name.as_str())
                        && !TELLING.contains(&self.path.as_str())
                        && is_empty(field.node(), value)
                        && !node.required.contains(name)
                    {
                        dropped.insert(name.clone());
                    }
                }
                None if is_open(node) => {}
                None => {
                    if self.unknown.len() < MOST_COMPLAINTS {
                        self.unknown.push(self.path.clone());
                    }
                    dropped.insert(name.clone());
                }
            }
            self.path.truncate(length);
            self.fields.truncate(fields);
        }
        if !dropped.is_empty() {
            object.retain(|name, _| !dropped.contains(name));
        }
        Ok(())
    }

    fn mismatch(&self, found: &str, node: &Node, owner: &str) -> String {
        let wanted = match (node.ty, node.bounds.format.as_deref()) {
            (Type::Integer, Some("int32")) => "int32",
            (Type::Integer, _) => "int64",
            (Type::Number, _) => "float64",
            (Type::Boolean, _) => "bool",
            (Type::String, _) => "string",
            (Type::Array, _) => "a list",
            _ => node.name.rsplit('.').next().filter(|name| !name.is_empty()).unwrap_or("a map"),
        };
        let dot = if owner.is_empty() { "" } else { "." };
        format!(
            "json: cannot unmarshal {found} into Go struct field {owner}{dot}{} of type {wanted}",
            self.fields
        )
    }
}

/// Lists and maps that hold nothing are written as if they were not there.
fn is_empty(node: &Node, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => {
            fields.is_empty() && node.properties.is_empty() && node.additional.is_some()
        }
        _ => false,
    }
}

/// What a typed decoder makes of `null` where something must be.
fn zero(node: &Node) -> Value {
    match node.ty {
        Type::Object => Value::Object(Map::new()),
        Type::Array => Value::Array(Vec::new()),
        Type::String => Value::String(String::new()),
        Type::Integer | Type::Number | Type::IntOrString => Value::from(0),
        Type::Boolean => Value::Bool(false),
        Type::Any => Value::Null,
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn string(node: &Node, text: &mut String) -> Result<(), String> {
    use base64::Engine as _;
    match node.bounds.format.as_deref() {
        Some("date-time") => {
            *text = super::moment::read(text, node.name.ends_with(".MicroTime"))?;
            Ok(())
        }
        Some("byte") => match base64::prelude::BASE64_STANDARD.decode(text.as_bytes()) {
            Ok(_) => Ok(()),
            Err(base64::DecodeError::InvalidByte(at, _)) => {
                Err(format!("illegal base64 data at input byte {at}"))
            }
            Err(_) => Err(format!("illegal base64 data at input byte {}", text.len())),
        },
        _ => Ok(()),
    }
}

fn quantity(value: &mut Value) -> Result<(), String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(homeostat_quota::NotAQuantity::Form.to_string()),
    };
    let amount: Quantity =
        text.trim().parse().map_err(|error: homeostat_quota::NotAQuantity| error.to_string())?;
    *value = Value::String(amount.to_string());
    Ok(())
}
