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
    if !body.value.is_object() {
        let why = format!("{parse_error}: json: cannot unmarshal into an object");
        return Err(unrecognized(kind, bytes, &why));
    }
    Ok(body)
}

/// A patch.
pub(crate) fn patch(kind: &Kind, headers: &HeaderMap, bytes: &[u8]) -> Result<Patch, Status> {
    let strategic = kind.custom.is_none();
    match content_type(headers) {
        "application/json-patch+json" => Ok(Patch::Json(patch_json(bytes)?)),
        "application/merge-patch+json" => Ok(Patch::Merge(patch_json(bytes)?)),
        "application/strategic-merge-patch+json" if strategic => {
            Ok(Patch::Strategic(patch_json(bytes)?))
        }
        "application/apply-patch+yaml" => match yaml(bytes) {
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
        _ if strategic => {
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
