//! What each version of a definition says besides its schema: selectable fields and deprecation.
//! And what may not change any more once a definition is there.

use serde_json::Value;

use super::{flag, is_established, list, text};
use crate::field::{FieldError, Reason};

const MOST_FIELDS: usize = 8;
const LONGEST_WARNING: usize = 256;

fn invalid(path: String, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, Reason::Invalid, value.into(), detail)
}

/// All that is wrong with the selectable fields and deprecation warnings of a definition.
pub(super) fn check(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions: Vec<&Value> = list(definition, "/spec/versions").collect();
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        deprecation(version, &format!("{path}.deprecationWarning"), &mut errors);
        // what all versions share is reported where it was before there were versions
        let path = if versions.len() == 1 { "spec".to_owned() } else { path };
        selectable(version, &format!("{path}.selectableFields"), &mut errors);
    }
    errors
}

fn deprecation(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(words) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut refuse = |detail: String| errors.push(invalid(path.to_owned(), words, detail));
    if !flag(version, "deprecated") {
        refuse("can only be set for deprecated versions".to_owned());
        return;
    }
    if words.len() > LONGEST_WARNING {
        refuse(format!("must be <= {LONGEST_WARNING} characters long"));
    }
    if words.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = words.char_indices().find(|(_, char)| char.is_control()) {
        refuse(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {at}"
        ));
    }
}

fn selectable(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let fields: Vec<&str> =
        list(version, "/selectableFields").map(|field| text(field, "/jsonPath")).collect();
    let mut found: Vec<&str> = Vec::new();
    let empty = Value::Null;
    let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&empty);
    for (index, field) in fields.iter().enumerate() {
        let path = format!("{path}[{index}].jsonPath");
        if field.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        match leads_to(schema, field) {
            Err(why) => {
                errors.push(invalid(path, *field, format!("is an invalid path: {why}")));
                continue;
            }
            Ok(schema) if !matches!(text(schema, "/type"), "string" | "boolean" | "integer") => {
                let detail = "must point to a field of type string, boolean or integer. Enum \
                              string fields and strings with formats are allowed.";
                errors.push(invalid(path.clone(), *field, detail));
            }
            Ok(_) if field.starts_with(".metadata.") => {
                errors.push(invalid(path.clone(), *field, "must not point to fields in metadata"));
            }
            Ok(_) => {}
        }
        if found.contains(field) {
            errors.push(FieldError::new(path, Reason::Duplicate, (*field).into(), ""));
        } else {
            found.push(field);
        }
    }
    if found.len() > MOST_FIELDS {
        errors.push(FieldError {
            path: path.to_owned(),
            reason: Reason::TooMany,
            value: Some(found.len().into()),
            detail: format!("must have at most {MOST_FIELDS} items"),
        });
    }
}

/// The schema of the field at a path like `.spec.a`.
fn leads_to<'a>(schema: &'a Value, path: &str) -> Result<&'a Value, String> {
    let Some(names) = path.strip_prefix('.') else {
        let first = path.split(['.', '[', ']']).next().unwrap_or_default();
        return Err(format!("expected [ or . but got: {first}"));
    };
    if path.contains('[') {
        return Err("array notation is not allowed".to_owned());
    }
    names.split('.').try_fold(schema, |schema, name| {
        let field = schema.get("properties").and_then(|fields| fields.get(name));
        field.ok_or_else(|| "does not refer to a valid field".to_owned())
    })
}

/// What an update may not change.
pub(super) fn check_change(definition: &Value, old: &Value) -> Vec<FieldError> {
    let served = is_established(old);
    let fixed = [
        ("/spec/scope", served),
        ("/spec/names/kind", served),
        ("/spec/group", true),
        ("/spec/names/plural", true),
    ];
    let changed = fixed
        .into_iter()
        .filter(|(pointer, fixed)| *fixed && definition.pointer(pointer) != old.pointer(pointer));
    changed
        .map(|(pointer, _)| {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            invalid(path, text(definition, pointer), "field is immutable")
        })
        .collect()
}
