//! Where the engine meets the schemas: shaping, defaulting, validating and tracking an object.
//!
//! The order on every write is: shape (drop what the kind does not know) → default → admission →
//! validate → track ownership. The modules called here are pure; this one only picks and words.

use serde_json::Value;

use super::options::{FieldValidation, WriteOptions};
use super::update::Area;
use super::{Body, Patch, Writer, metadata};
use crate::kinds::Kind;
use crate::status::Status;

/// Checks `apiVersion` and `kind` of a body against the kind of the URL.
pub(crate) fn check_type(kind: &Kind, object: &Value) -> Result<(), Status> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
    if !object.is_object() {
        return Err(Status::bad_request("the body is not a JSON object"));
    }
    if text("kind").is_empty() {
        return Err(Status::bad_request(format!("Object 'Kind' is missing in '{object}'")));
    }
    let version = kind.api_version();
    if text("apiVersion") != version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({version})",
            text("apiVersion")
        )));
    }
    if text("kind") != kind.kind {
        return Err(Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: the kind in the data does not match",
            text("kind"),
            kind.version,
            kind.kind
        )));
    }
    Ok(())
}

/// Drops what the kind does not know; says so, or refuses.
pub(crate) fn shape(
    _kind: &Kind,
    body: Body,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let Body { value, duplicates } = body;
    let messages: Vec<String> =
        duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
    match validation {
        FieldValidation::Strict if !messages.is_empty() => {
            let words = format!("strict decoding error: {}", messages.join(", "));
            return Err(Status::bad_request(words));
        }
        FieldValidation::Warn => warnings.extend(messages),
        _ => {}
    }
    Ok(value)
}

/// Fills in what the client left to the server.
pub(crate) fn default(_kind: &Kind, _object: &mut Value) {}

/// Refuses an object that breaks its kind's rules.
pub(crate) fn validate(_kind: &Kind, _object: &Value, _old: Option<&Value>) -> Result<(), Status> {
    Ok(())
}

/// Records who owns the fields that changed.
pub(crate) fn track(
    _writer: &Writer<'_>,
    _kind: &Kind,
    _live: Option<&Value>,
    object: &mut Value,
    _manager: &str,
    _subresource: &str,
) {
    if object.pointer("/metadata/managedFields").is_some_and(Value::is_null) {
        metadata::set(object, "managedFields", Value::Null);
    }
}

/// The live object with the patch applied.
pub(crate) fn patched(kind: &Kind, live: &Value, patch: &Patch) -> Result<Value, Status> {
    let mut object = live.clone();
    match patch {
        Patch::Json(patch) => {
            let operations: json_patch::Patch = serde_json::from_value(patch.clone())
                .map_err(|error| Status::bad_request(error.to_string()))?;
            json_patch::patch(&mut object, &operations).map_err(|error| {
                let mut status = Status::new(422, "Invalid", error.to_string());
                status.details = Some(serde_json::json!({"kind": kind.kind}));
                status
            })?;
        }
        Patch::Merge(patch) | Patch::Strategic(patch) => json_patch::merge(&mut object, patch),
        Patch::Apply(_) => {
            return Err(Status::internal("an apply is not a patch of the live object"));
        }
    }
    Ok(object)
}

/// The live object (or none) with the applied configuration merged in.
pub(crate) fn applied(
    _writer: &Writer<'_>,
    _kind: &Kind,
    live: Option<&Value>,
    config: &Value,
    _options: &WriteOptions,
    _area: Area,
) -> Result<Value, Status> {
    let mut object = live.cloned().unwrap_or_else(|| config.clone());
    json_patch::merge(&mut object, config);
    Ok(object)
}
