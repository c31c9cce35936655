//! The errors found so far, and the checks that every kind needs.

use std::fmt;

use serde_json::Value;

use super::super::{invalid, name, not_supported};
use crate::field::{FieldError, Reason};
use crate::go::internal;

/// Collects what is refused.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) errors: Vec<FieldError>,
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

/// The entries of a map.
pub(super) fn entries<'a>(
    value: &'a Value,
    pointer: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    at(value, pointer).as_object().into_iter().flatten()
}

/// The field, or `null`. The names in the pointer are those of fields and need no unescaping, which
/// would make a copy of each.
pub(super) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    let mut found = value;
    for name in pointer.split('/').skip(1) {
        match found.get(name) {
            Some(below) => found = below,
            None => return &Value::Null,
        }
    }
    found
}

impl Report {
    pub(crate) fn invalid(
        &mut self,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.errors.push(invalid(path, value, detail));
    }

    pub(crate) fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    pub(crate) fn forbidden(&mut self, path: impl Into<String>, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        self.errors.push(FieldError::new(path, Reason::Duplicate, value.into(), ""));
    }

    /// The text is given and one of these.
    pub(super) fn one_of(
        &mut self,
        path: &(impl fmt::Display + ?Sized),
        value: &str,
        allowed: &[&str],
    ) {
        if value.is_empty() {
            self.required(path.to_string(), "");
        } else if !allowed.contains(&value) {
            self.unsupported(path, &Value::from(value), allowed);
        }
    }

    pub(super) fn unsupported(
        &mut self,
        path: &(impl fmt::Display + ?Sized),
        value: &Value,
        allowed: &[&str],
    ) {
        self.errors.push(not_supported(path.to_string(), value, allowed));
    }

    /// The text, where there is one, is one of these.
    pub(crate) fn known(
        &mut self,
        path: &(impl fmt::Display + ?Sized),
        value: &Value,
        allowed: &[&str],
    ) {
        if value.as_str().is_some_and(|text| !allowed.contains(&text)) {
            self.unsupported(path, value, allowed);
        }
    }

    /// What the form says of a text.
    pub(super) fn problems(
        &mut self,
        path: &(impl fmt::Display + ?Sized),
        value: &str,
        form: fn(&str) -> Vec<String>,
    ) {
        for problem in form(value) {
            self.invalid(path.to_string(), value, problem);
        }
    }

    pub(super) fn not_found(&mut self, path: impl Into<String>, value: &str) {
        self.errors.push(FieldError::new(path, Reason::NotFound, value.into(), ""));
    }

    pub(super) fn too_long(&mut self, path: impl Into<String>, most: usize) {
        let detail = format!("may not be more than {most} bytes");
        let (path, reason) = (path.into(), Reason::TooLong);
        self.errors.push(FieldError { path, reason, value: None, detail });
    }

    pub(super) fn too_many(&mut self, path: impl Into<String>, count: usize, most: usize) {
        let detail = format!("must have at most {most} items");
        self.errors.push(FieldError::new(path, Reason::TooMany, count.into(), detail));
    }

    /// The text is given and has the form.
    pub(super) fn name(
        &mut self,
        path: &(impl fmt::Display + ?Sized),
        value: &str,
        form: fn(&str) -> Vec<String>,
    ) {
        if value.is_empty() {
            self.required(path.to_string(), "");
            return;
        }
        self.problems(path, value, form);
    }

    pub(super) fn dns_label(&mut self, path: &(impl fmt::Display + ?Sized), value: &str) {
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
            self.invalid(path, internal::part(value, pointer), "field is immutable");
        }
    }

    pub(super) fn labels(&mut self, labels: &Value, path: &str) {
        self.errors.extend(super::super::metadata::labels(Some(labels), path));
    }
}
