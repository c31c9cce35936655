//! Whether an object may be stored: names and metadata, the schema, CEL rules, and the rules of
//! built-in kinds.
//!
//! Every function gives all it finds, in document order, and changes nothing. What is refused
//! here becomes the causes of one 422 answer.

mod builtin;
pub(crate) mod client_config;
mod compiled;
mod embedded;
mod format;
pub(crate) mod ip;
mod lists;
mod metadata;
pub(crate) mod name;
mod rules;
mod scale;
mod schema;

use serde_json::Value;

use crate::field::{FieldError, Reason};
use crate::kinds::Kind;

pub(crate) use builtin::{Report, device_of};
pub use builtin::{builtin, change};
pub use compiled::Rules;
pub(crate) use embedded::embedded;
pub use metadata::object_meta;
pub use rules::rules;
pub(crate) use rules::{Defaults, short_rules};
pub(crate) use schema::NOWHERE;
pub use schema::schema;

pub(crate) use metadata::{STANDARD_FINALIZERS, annotations, labels};
pub(crate) use name::{
    dns_label, dns_label_1035, dns_subdomain, label_value as label_value_problems,
    qualified as qualified_name_problems,
};

/// What is wrong in these ways hides what CEL rules rely on.
const BLOCKING: &[Reason] = &[
    Reason::NotSupported,
    Reason::Required,
    Reason::TooLong,
    Reason::TooMany,
    Reason::TypeInvalid,
];

/// Everything that must hold for an object of this kind, old or new. For custom resources CEL
/// rules run only when types and bounds are right, because they may assume them.
#[must_use]
pub fn object(kind: &Kind, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    judged(kind, value, old, &mut || rules(kind, value, old, &mut Vec::new()))
}

/// The same, with somebody else who asks the CEL rules.
pub(crate) fn judged(
    kind: &Kind,
    value: &Value,
    old: Option<&Value>,
    ask_rules: &mut dyn FnMut() -> Vec<FieldError>,
) -> Vec<FieldError> {
    // Finalizers of these may have any name.
    let lenient = matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "Event") | ("policy", "PodDisruptionBudget")
    );
    let misnamed = misnamed(kind, value);
    let mut errors = match old {
        None if !misnamed.is_empty() => Vec::new(),
        old => object_meta(kind, value, old),
    };
    if lenient {
        // The metadata of new ones is looked at last, that of others together with the rest.
        let first = if old.is_none() { builtin(kind, value, None) } else { Vec::new() };
        if !first.is_empty() {
            return first;
        }
        errors.retain(|error| !error.detail.starts_with("name is neither"));
    }
    if kind.custom.is_some() {
        custom(kind, value, old, misnamed, &mut errors, ask_rules);
    } else if rules::judge_definition(kind, value) {
        errors.extend(ask_rules());
    } else {
        errors.extend(builtin(kind, value, old));
    }
    errors
}

/// What is wrong with what a custom object calls itself. It is known by that, but for its schema.
fn misnamed(kind: &Kind, value: &Value) -> Vec<FieldError> {
    if kind.custom.is_none() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (field, wanted) in [("kind", kind.kind.clone()), ("apiVersion", kind.api_version())] {
        let given = value.get(field).and_then(Value::as_str).unwrap_or_default();
        if given != wanted {
            errors.push(invalid(field, given, format!("must be {wanted}")));
        }
    }
    errors
}

/// Adds what the schema and the rules of a custom resource refuse to what is wrong with its metadata.
/// One that is `misnamed` is not asked for what its schema says, but for all that rules rely on.
fn custom(
    kind: &Kind,
    value: &Value,
    old: Option<&Value>,
    misnamed: Vec<FieldError>,
    errors: &mut Vec<FieldError>,
    ask_rules: &mut dyn FnMut() -> Vec<FieldError>,
) {
    let root = kind.schema.root();
    let is_blocking = |error: &FieldError| BLOCKING.contains(&error.reason);
    let mut blocked = misnamed.is_empty() && errors.iter().any(is_blocking);
    let mut found = misnamed;
    if found.is_empty() {
        found.extend(schema(root, value, old));
        found.extend(scale::paths(kind, value));
    }
    found.extend(embedded(root, value, ""));
    found.extend(lists::repeated(root, value, old));
    blocked |= found.iter().any(is_blocking);
    errors.append(&mut found);
    if !blocked {
        errors.extend(ask_rules());
    } else if rules::has_rules(kind) {
        let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
        errors.push(invalid(NOWHERE, Value::Null, detail));
    }
}

/// `path.name`, or `name` at the root.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn invalid(
    path: impl Into<String>,
    value: impl Into<Value>,
    detail: impl Into<String>,
) -> FieldError {
    FieldError::new(path, Reason::Invalid, value.into(), detail)
}

/// A value outside a list of allowed ones.
fn not_supported(path: impl Into<String>, value: &Value, allowed: &[&str]) -> FieldError {
    let allowed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
    let detail = format!("supported values: {}", allowed.join(", "));
    FieldError::new(path, Reason::NotSupported, value.clone(), detail)
}
