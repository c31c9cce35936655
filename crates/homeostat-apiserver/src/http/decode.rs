//! Request bodies by their media type.

use http::HeaderMap;
use serde_json::Value;

use super::negotiate::content_type;
use crate::decode::{self, DecodeError, Decoded};
use crate::kinds::Kind;
use crate::proto;
use crate::registry::{Body, Patch};
use crate::status::Status;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// An object (or options) in any encoding the API reads.
pub(crate) fn object(headers: &HeaderMap, bytes: &[u8]) -> Result<Body, Status> {
    match content_type(headers) {
        JSON => json(bytes),
        YAML => yaml(bytes),
        PROTOBUF => match proto::decode(bytes) {
            Ok(value) => Ok(Body { value, duplicates: Vec::new() }),
            Err(error) => Err(Status::bad_request(error.to_string())),
        },
        _ => Err(Status::unsupported_media_type(
            "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

fn json(bytes: &[u8]) -> Result<Body, Status> {
    decoded(decode::json(bytes))
}

fn yaml(bytes: &[u8]) -> Result<Body, Status> {
    decoded(decode::yaml(bytes))
}

fn decoded(result: Result<Decoded, DecodeError>) -> Result<Body, Status> {
    match result {
        Ok(Decoded { value, duplicates }) => Ok(Body { value, duplicates }),
        Err(error) => Err(Status::bad_request(error.to_string())),
    }
}

fn patch_json(bytes: &[u8]) -> Result<Value, Status> {
    match decode::json(bytes) {
        Ok(decoded) => Ok(decoded.value),
        Err(error) => Err(Status::bad_request(format!("error decoding patch: {error}"))),
    }
}

/// The refusal of a body that is not even a value, with a glimpse of it.
pub(crate) fn unrecognized(kind: &Kind, bytes: &[u8], why: &str) -> Status {
    const GLIMPSE: usize = 30;
    let shown = &bytes[..bytes.len().min(GLIMPSE)];
    let more = if bytes.len() > GLIMPSE { " ..." } else { "" };
    let glimpse = match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{more}", hex.concat())
        }
    };
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({glimpse})",
        kind.kind
    ))
}

/// The words of kube-apiserver for a value that is no object.
fn not_an_object(value: &Value) -> String {
    let found = match value {
        Value::Array(_) => "array",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        _ => "string",
    };
    format!(
        "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

/// An object of that kind.
pub(crate) fn object_of(kind: &Kind, headers: &HeaderMap, bytes: &[u8]) -> Result<Body, Status> {
    let parse_error = "couldn't get version/kind; json parse error";
    let body = object(headers, bytes).map_err(|status| match content_type(headers) {
        JSON if status.code == 400 => {
            unrecognized(kind, bytes, &format!("{parse_error}: {}", status.message))
        }
        _ => status,
    })?;
    let named = body.value.get("kind").and_then(Value::as_str).is_some_and(|k| !k.is_empty());
    if kind.custom.is_some() && body.value.is_object() && !named {
        let text = String::from_utf8_lossy(bytes);
        let why = format!("Object 'Kind' is missing in '{text}'");
        return Err(unrecognized(kind, bytes, &why));
    }
    if body.value.is_null() && kind.custom.is_some() {
        let Kind { kind, version, .. } = kind;
        return Err(Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: Object 'Kind' is missing in \
             'null'"
        )));
    }
    if body.value.is_null() {
        return Ok(Body { value: serde_json::json!({}), ..body });
    }
    if !body.value.is_object() {
        let why = format!("{parse_error}: {}", not_an_object(&body.value));
        return Err(unrecognized(kind, bytes, &why));
    }
    Ok(body)
}

/// The options of a delete.
pub(crate) fn delete_options(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, Status> {
    let parse_error = "couldn't get version/kind; json parse error";
    let value = match object(headers, bytes) {
        Ok(body) => body.value,
        Err(status) if status.code == 400 && content_type(headers) == JSON => {
            return Err(Status::bad_request(format!("{parse_error}: {}", status.message)));
        }
        Err(status) => return Err(status),
    };
    if value.is_object() || value.is_null() {
        return Ok(value);
    }
    Err(Status::bad_request(format!("{parse_error}: {}", not_an_object(&value))))
}

/// Whether the body is a server-side apply.
pub(crate) fn is_apply(headers: &HeaderMap) -> bool {
    content_type(headers) == "application/apply-patch+yaml"
}

/// Refuses what is no kind of patch here.
pub(crate) fn check_patch_type(kind: &Kind, headers: &HeaderMap) -> Result<(), Status> {
    match content_type(headers) {
        "application/json-patch+json"
        | "application/merge-patch+json"
        | "application/apply-patch+yaml" => Ok(()),
        "application/strategic-merge-patch+json" if kind.custom.is_none() => Ok(()),
        _ if kind.custom.is_none() => {
            let mut status =
                Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            status.details = Some(Box::new(serde_json::json!({})));
            Err(status)
        }
        _ => Err(Status::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
    }
}

/// A patch.
pub(crate) fn patch(kind: &Kind, headers: &HeaderMap, bytes: &[u8]) -> Result<Patch, Status> {
    let strategic = kind.custom.is_none();
    match content_type(headers) {
        "application/json-patch+json" => Ok(Patch::Json(patch_json(bytes)?)),
        "application/merge-patch+json" => Ok(Patch::Merge(patch_json(bytes)?)),
        "application/strategic-merge-patch+json" if strategic => {
            Ok(Patch::Strategic(json(bytes)?.value))
        }
        "application/apply-patch+yaml" => match yaml(bytes) {
            Ok(body) if body.value.is_array() || body.value.is_string() => {
                let found = if body.value.is_array() { "array" } else { "string" };
                Err(Status::bad_request(format!(
                    "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot \
                     unmarshal {found} into Go value of type map[string]interface {{}}"
                )))
            }
            Ok(mut body) => {
                // Told by line, not by path.
                body.duplicates =
                    decode::yaml_complaint(bytes, &body.duplicates).into_iter().collect();
                Ok(Patch::Apply(body))
            }
            Err(status) => {
                Err(Status::bad_request(format!("error decoding YAML: {}", status.message)))
            }
        },
        _ => check_patch_type(kind, headers).and(Err(Status::unsupported_media_type(""))),
    }
}
