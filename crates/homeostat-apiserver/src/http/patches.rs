//! Patches in request bodies. How strictly fields are validated decides which of Go's readers meets a
//! patch first, and so what is said of one that is none.

use http::HeaderMap;
use serde_json::{Value, json};

use super::decode as bodies;
use super::negotiate::content_type;
use crate::decode;
use crate::go::json_type;
use crate::kinds::Kind;
use crate::registry::options::FieldValidation;
use crate::registry::{Body, Patch};
use crate::status::Status;

const OPERATIONS: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// What the reader that knows only the form of merge patches says.
const NO_MERGE: &str = "Invalid JSON Patch";

/// Whether the body is a server-side apply.
pub(crate) fn is_apply(headers: &HeaderMap) -> bool {
    content_type(headers) == APPLY
}

/// Refuses what is no kind of patch here.
pub(crate) fn check_type(kind: &Kind, headers: &HeaderMap) -> Result<(), Status> {
    match content_type(headers) {
        OPERATIONS | MERGE | APPLY => Ok(()),
        STRATEGIC if kind.custom.is_none() => Ok(()),
        _ if kind.custom.is_none() => {
            let mut status =
                Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            status.details = Some(Box::new(json!({})));
            Err(status)
        }
        _ => Err(Status::unsupported_media_type(&[OPERATIONS, MERGE, APPLY].join(", "))),
    }
}

/// The patch in a body.
pub(crate) fn read(
    kind: &Kind,
    headers: &HeaderMap,
    bytes: &[u8],
    validation: FieldValidation,
) -> Result<Patch, Status> {
    check_type(kind, headers)?;
    let is_lenient = validation == FieldValidation::Ignore;
    match content_type(headers) {
        OPERATIONS => operations(bytes, is_lenient).map(Patch::Json),
        MERGE => merge(bytes, is_lenient).map(Patch::Merge),
        STRATEGIC => {
            let mut body = bodies::json(bytes)?;
            if body.value.is_null() {
                body.value = json!({});
            }
            Ok(Patch::Strategic(body))
        }
        _ => apply(bytes).map(Patch::Apply),
    }
}

/// The operations of a JSON patch.
fn operations(bytes: &[u8], is_lenient: bool) -> Result<Body, Status> {
    let (prefix, list, item) = if is_lenient {
        ("", "jsonpatch.Patch", "jsonpatch.Operation")
    } else {
        ("error decoding patch: ", "[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    };
    let refused = |why: &str| Status::bad_request(format!("{prefix}{why}"));
    let wrong = |value: &Value, place: &str| {
        refused(&format!("json: cannot unmarshal {} into Go {place}", json_type(value)))
    };
    let mut body = match decode::json(bytes) {
        Ok(decoded) => Body::from(decoded),
        Err(error) => return Err(refused(&error.to_string())),
    };
    match &body.value {
        Value::Null => body.value = json!([]),
        Value::Array(operations) => {
            for operation in operations {
                if !operation.is_object() && !operation.is_null() {
                    return Err(wrong(operation, &format!("value of type {item}")));
                }
                let fields = ["op", "path", "from"];
                let fields = fields.iter().filter_map(|name| Some((name, operation.get(name)?)));
                for (name, value) in fields {
                    if !is_lenient && !value.is_string() && !value.is_null() {
                        let place = format!("struct field jsonPatchOp.{name} of type string");
                        return Err(wrong(value, &place));
                    }
                }
            }
        }
        other => return Err(wrong(other, &format!("value of type {list}"))),
    }
    Ok(body)
}

/// A JSON merge patch. A lenient reader takes a list, too, and puts it in the object's place.
fn merge(bytes: &[u8], is_lenient: bool) -> Result<Body, Status> {
    let body = match decode::json(bytes) {
        Ok(decoded) => Body::from(decoded),
        Err(_) if is_lenient => return Err(Status::bad_request(NO_MERGE)),
        Err(error) => return Err(Status::bad_request(format!("error decoding patch: {error}"))),
    };
    match &body.value {
        Value::Object(_) => Ok(body),
        Value::Array(_) if is_lenient => Ok(body),
        other if other.is_null() || is_lenient => Err(Status::bad_request(NO_MERGE)),
        other => Err(Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type \
             map[string]interface {{}}",
            json_type(other)
        ))),
    }
}

/// The configuration of a server-side apply.
fn apply(bytes: &[u8]) -> Result<Body, Status> {
    match bodies::yaml(bytes) {
        Ok(body) if !body.value.is_object() && !body.value.is_null() => {
            Err(Status::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot \
                 unmarshal {} into Go value of type map[string]interface {{}}",
                json_type(&body.value)
            )))
        }
        Ok(mut body) => {
            // Told by line, not by path.
            body.duplicates = decode::yaml_complaint(bytes, &body.duplicates).into_iter().collect();
            Ok(body)
        }
        Err(status) => Err(Status::bad_request(format!("error decoding YAML: {}", status.message))),
    }
}
