//! Whether an applied configuration can be merged: every field declared, every item with a name
//! of its own, every container of the declared kind.
//!
//! This is not validation: bounds and formats are looked at elsewhere, once the object is whole.

use std::collections::BTreeSet;

use serde_json::Value;

use super::path::PathElement;
use super::set::display_path;
use super::shape::{Place, Shape};
use crate::schema::Type;

/// What is wrong with the configuration; one line, or one line per fault below `errors:`.
///
/// # Errors
/// The faults, each with the path of its field.
pub(super) fn check(place: Place<'_>, config: &Value) -> Result<(), String> {
    let mut checker = Checker { path: Vec::new(), faults: Vec::new() };
    checker.visit(place, config);
    match checker.faults.as_slice() {
        [] => Ok(()),
        [fault] => Err(fault.clone()),
        faults => Err(format!("errors:\n  {}", faults.join("\n  "))),
    }
}

/// That an object has nothing that its schema does not know, or knows as something else; or what it has.
pub(crate) fn fits(schema: crate::schema::Schema<'_>, object: &Value) -> Result<(), String> {
    check(Place::root(schema), object)
}

/// Whether every value has the type that its schema declares; unknown fields, and items that are there
/// twice, aside.
pub(crate) fn is_typed(schema: crate::schema::Schema<'_>, value: &Value) -> bool {
    let mut checker = Checker { path: Vec::new(), faults: Vec::new() };
    checker.visit(Place::root(schema), value);
    checker.faults.iter().all(|fault| fault.ends_with(UNDECLARED) || fault.contains(TWICE))
}

const UNDECLARED: &str = "field not declared in schema";
const TWICE: &str = "duplicate entries for key";

struct Checker {
    path: Vec<PathElement>,
    faults: Vec<String>,
}

impl Checker {
    fn fault(&mut self, what: &str) {
        let path = display_path(&self.path);
        self.faults.push(if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") });
    }

    fn below(&mut self, element: PathElement, place: Place<'_>, value: &Value) {
        self.path.push(element);
        self.visit(place, value);
        self.path.pop();
    }

    fn visit(&mut self, place: Place<'_>, value: &Value) {
        let Place::Declared { schema, .. } = place else { return };
        let expected = match (schema.node().ty, value) {
            (_, Value::Null)
            | (Type::Any, _)
            | (Type::Object, Value::Object(_))
            | (Type::Array, Value::Array(_))
            | (Type::String, Value::String(_))
            | (Type::Integer | Type::Number, Value::Number(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::IntOrString, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
            (Type::Object, _) => Some("map"),
            (Type::Array, _) => Some("list"),
            (Type::Integer | Type::Number, _) => Some("numeric (int or float)"),
            // Strings with a format take any scalar: quantities are written as numbers too.
            (Type::String, Value::Number(_) | Value::Bool(_))
                if schema.node().bounds.format.is_some() || !schema.node().name.is_empty() =>
            {
                None
            }
            (Type::String, _) => Some("string"),
            (Type::Boolean, _) => Some("boolean"),
            (Type::IntOrString, _) => Some("any scalar"),
        };
        if let Some(expected) = expected {
            self.fault(&format!("expected {expected}, got {}", got(schema.node().ty, value)));
            return;
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    let element = PathElement::field(name);
                    if let Some(field) = place.declared_field(name) {
                        self.below(element, field.place, value);
                    } else {
                        self.path.push(element);
                        self.fault(UNDECLARED);
                        self.path.pop();
                    }
                }
            }
            Value::Array(list) => self.visit_list(place, value, list),
            _ => {}
        }
    }

    fn visit_list(&mut self, place: Place<'_>, value: &Value, list: &[Value]) {
        let mut seen = BTreeSet::new();
        for (position, item) in list.iter().enumerate() {
            let index = PathElement::Index(i64::try_from(position).unwrap_or(i64::MAX));
            let Shape::Items(items) = place.shape(value) else {
                self.below(index, place.item(), item);
                continue;
            };
            match items.element(item) {
                Ok(element) => {
                    if !seen.insert(element.clone()) {
                        self.fault(&format!("{TWICE} {element}"));
                    }
                    self.below(element, items.place, item);
                }
                Err(why) => {
                    self.fault(&format!("element {position}: {why}"));
                    return;
                }
            }
        }
    }
}

/// A value as clients of kube-apiserver know it from these messages: printed by Go.
fn got(wanted: Type, value: &Value) -> String {
    match (wanted, value) {
        (Type::Integer | Type::Number, value) => match value {
            Value::Array(_) => "[]interface {}".to_owned(),
            Value::Object(_) => "map[string]interface {}".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            _ => "string".to_owned(),
        },
        (Type::String, Value::Array(_) | Value::Object(_) | Value::Null) => {
            format!("&value.valueUnstructured{{Value:{}}}", go_syntax(value))
        }
        (Type::String, value) => format!("&value.valueUnstructured{{Value:{value}}}"),
        (_, value) => format!("&{{{}}}", go_words(value)),
    }
}

/// `%v`
pub(crate) fn go_words(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(go_words).collect::<Vec<_>>().join(" "))
        }
        Value::Object(fields) => {
            let fields: std::collections::BTreeMap<_, _> = fields.iter().collect();
            let entry = |(name, value): (&&String, &&Value)| format!("{name}:{}", go_words(value));
            format!("map[{}]", fields.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// `%#v`
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: std::collections::BTreeMap<_, _> = fields.iter().collect();
            let entry =
                |(name, value): (&&String, &&Value)| format!("{name:?}:{}", go_syntax(value));
            let fields: Vec<String> = fields.iter().map(entry).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
