//! How objects of a version are presented: their columns, and where their scale is.

use serde_json::Value;

use super::{list, text};
use crate::field::{FieldError, Reason};

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

fn invalid(path: String, value: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, Reason::Invalid, value.into(), detail)
}

/// What is wrong with `additionalPrinterColumns`.
pub(super) fn columns(columns: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in list(columns, "").enumerate() {
        let path = format!("{path}.additionalPrinterColumns[{index}]");
        if text(column, "/name").is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        let ty = text(column, "/type");
        let one_of = |known: &[&str]| format!("must be one of {}", known.join(","));
        if ty.is_empty() {
            errors.push(FieldError::required(format!("{path}.type"), one_of(COLUMN_TYPES)));
        } else if !COLUMN_TYPES.contains(&ty) {
            errors.push(invalid(format!("{path}.type"), ty, one_of(COLUMN_TYPES)));
        }
        let format = text(column, "/format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            errors.push(invalid(format!("{path}.format"), format, one_of(COLUMN_FORMATS)));
        }
        let given = text(column, "/jsonPath");
        let path = format!("{path}.JSONPath");
        if given.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else {
            errors.extend(not_simple(given, path));
        }
    }
}

/// What is wrong with `subresources`.
pub(super) fn subresources(stanza: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = stanza.get("scale") else { return };
    let path = format!("{path}.subresources.scale");
    for (field, below) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let given = text(scale, &format!("/{field}"));
        let path = format!("{path}.{field}");
        if given.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if let Some(error) = not_simple(given, path.clone()) {
            errors.push(error);
        } else if !is_below(given, below) {
            errors.push(invalid(path, given, format!("should be a json path under {below}")));
        }
    }
    let selector = text(scale, "/labelSelectorPath");
    let path = format!("{path}.labelSelectorPath");
    if selector.is_empty() {
        return;
    }
    if let Some(error) = not_simple(selector, path.clone()) {
        errors.push(error);
    } else if !is_below(selector, ".spec") && !is_below(selector, ".status") {
        let detail = "should be a json path under either .spec or .status";
        errors.push(invalid(path, selector, detail));
    }
}

fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
}

fn not_simple(given: &str, path: String) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!given.starts_with('.')).then(|| invalid(path, given, detail))
}
