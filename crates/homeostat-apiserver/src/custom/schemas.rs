//! The schema of a version, or of all: what it may say at its root, whether it is structural, its
//! defaults and its rules.

use serde_json::Value;

use super::{SCHEMA, default_values, flag, rules, structural, text, wellformed};
use crate::field::{FieldError, Reason};
use crate::go::internal;

/// What a root may say where the status is a resource of its own: the schema of `status` is judged
/// alone then, and nothing may be lost by that.
const AT_THE_ROOT: &[&str] = &[
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// All that is wrong with a schema. Rules that are known already (`is_known`) may cost what they
/// cost.
pub(super) fn check(
    stanza: &Value,
    has_status: bool,
    is_known: bool,
    path: &str,
) -> Vec<FieldError> {
    let Some(document) = stanza.get("openAPIV3Schema").filter(|schema| schema.is_object()) else {
        return Vec::new();
    };
    let path = format!("{path}.openAPIV3Schema");
    let mut errors = Vec::new();
    if has_status {
        errors.extend(root(document, &path));
    }
    if flag(document, "nullable") {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(format!("{path}.nullable"), detail));
    }
    let unreadable = structural::unreadable(document);
    let mut is_structural = false;
    if unreadable.is_none() {
        let mut found = structural::check(document, &path);
        if found.is_empty() {
            found = default_values::check(document, &path);
        }
        is_structural = found.is_empty();
        errors.append(&mut found);
    }
    let found = wellformed::check(document, &path);
    let costs = is_structural.then(|| rules::check(document, &path, is_known, &found));
    errors.extend(found);
    errors.extend(costs.into_iter().flatten());
    if let Some(why) = unreadable.filter(|_| errors.is_empty()) {
        errors.push(FieldError::new(path, Reason::Invalid, "".into(), why));
    }
    errors
}

/// The first thing at the root that may not be there.
fn root(document: &Value, path: &str) -> Option<FieldError> {
    let is_wrong = |shown: &str| match shown {
        "Type" => text(document, "/type") != "object",
        other => !AT_THE_ROOT.contains(&other),
    };
    let mut fields = internal::fields(SCHEMA).iter();
    let field = fields.find(|field| is_wrong(field.shown) && field.is_set(document))?;
    if field.shown == "Type" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                      status subresource is enabled";
        let ty = text(document, "/type").into();
        return Some(FieldError::new(format!("{path}.type"), Reason::Invalid, ty, detail));
    }
    let detail = format!(
        "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
        AT_THE_ROOT.join(" ")
    );
    Some(FieldError::new(path, Reason::Invalid, internal::form(SCHEMA, document), detail))
}
