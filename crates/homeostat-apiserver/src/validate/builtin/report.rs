//! The errors found so far, and the checks that every kind needs.

use serde_json::Value;

use super::super::{invalid, name, not_supported};
use crate::field::{FieldError, Reason};

/// Collects what is refused.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) errors: Vec<FieldError>,
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The field, or `null`.
pub(super) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

impl Report {
    pub(super) fn invalid(
        &mut self,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.errors.push(invalid(path, value, detail));
    }

    pub(super) fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    pub(super) fn forbidden(&mut self, path: impl Into<String>, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        self.errors.push(FieldError::new(path, Reason::Duplicate, value.into(), ""));
    }

    /// The text is given and one of these.
    pub(super) fn one_of(&mut self, path: &str, value: &str, allowed: &[&str]) {
        if value.is_empty() {
            self.required(path, "");
        } else if !allowed.contains(&value) {
            self.errors.push(not_supported(path, &Value::from(value), allowed));
        }
    }

    pub(super) fn unsupported(&mut self, path: &str, value: &Value, allowed: &[&str]) {
        self.errors.push(not_supported(path, value, allowed));
    }

    /// The text is given and has the form.
    pub(super) fn name(&mut self, path: &str, value: &str, form: fn(&str) -> Vec<String>) {
        if value.is_empty() {
            self.required(path, "");
            return;
        }
        for problem in form(value) {
            self.invalid(path, value, problem);
        }
    }

    pub(super) fn dns_label(&mut self, path: &str, value: &str) {
        self.name(path, value, name::dns_label);
    }

    /// A number of something, if it is given.
    pub(super) fn not_negative(&mut self, value: &Value, pointer: &str) {
        if let Some(number) = value.pointer(pointer).and_then(Value::as_i64).filter(|n| *n < 0) {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            self.invalid(path, number, "must be greater than or equal to 0");
        }
    }

    /// A port number.
    pub(super) fn port(&mut self, path: impl Into<String>, number: i64) {
        if !(1..=65535).contains(&number) {
            self.invalid(path, number, "must be between 1 and 65535, inclusive");
        }
    }

    /// A field that keeps its first value.
    pub(super) fn immutable(&mut self, value: &Value, old: Option<&Value>, pointer: &str) {
        let Some(old) = old else { return };
        if at(value, pointer) != at(old, pointer) {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            self.invalid(path, at(value, pointer).clone(), "field is immutable");
        }
    }

    pub(super) fn labels(&mut self, labels: &Value, path: &str) {
        self.errors.extend(super::super::metadata::labels(Some(labels), path));
    }
}
