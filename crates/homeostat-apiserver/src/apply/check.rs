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
            | (Type::IntOrString, Value::Number(_) | Value::String(_)) => None,
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
            self.fault(&format!("expected {expected}, got {value}"));
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
                        self.fault("field not declared in schema");
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
                        self.fault(&format!("duplicate entries for key {element}"));
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
