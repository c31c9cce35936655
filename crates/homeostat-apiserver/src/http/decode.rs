//! Request bodies by their media type.

use http::HeaderMap;
use serde_json::Value;

use super::negotiate::content_type;
use crate::aside;
use crate::decode::{self, DecodeError, Decoded};
use crate::kinds::Kind;
use crate::proto;
use crate::registry::{Body, named};
use crate::status::Status;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// An object (or options) in any encoding the API reads; protobuf may leave out what type it is of.
pub(crate) fn object(
    headers: &HeaderMap,
    bytes: &[u8],
    (api_version, kind): (&str, &str),
) -> Result<Body, Status> {
    match content_type(headers) {
        JSON => json(bytes),
        YAML => yaml(bytes),
        PROTOBUF => match proto::decode(bytes, (api_version, kind)) {
            Ok(value) => Ok(value.into()),
            Err(error) => Err(Status::bad_request(error.to_string())),
        },
        _ => Err(Status::unsupported_media_type(
            "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

pub(super) fn json(bytes: &[u8]) -> Result<Body, Status> {
    decoded(decode::json(bytes))
}

/// A body of some megabytes takes a second or two.
pub(super) fn yaml(bytes: &[u8]) -> Result<Body, Status> {
    decoded(aside::read(bytes, || decode::yaml(bytes)))
}

fn decoded(result: Result<Decoded, DecodeError>) -> Result<Body, Status> {
    result.map(Body::from).map_err(|error| Status::bad_request(error.to_string()))
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

fn protobuf(kind: &Kind, bytes: &[u8]) -> Result<Body, Status> {
    use proto::ProtoError;
    let error = match proto::decode(bytes, (&kind.api_version(), &kind.kind)) {
        Ok(value) => return Ok(value.into()),
        Err(error) => error,
    };
    let words = error.to_string();
    Err(match error {
        ProtoError::Empty
        | ProtoError::NotEnveloped
        | ProtoError::EmptyEnvelope
        | ProtoError::BadEnvelope(_) => unrecognized(kind, bytes, &words),
        ProtoError::UnknownKind { api_version, kind: given } => {
            let named = serde_json::json!({"apiVersion": api_version, "kind": given});
            named::check_type(kind, &named).err().unwrap_or_else(|| Status::bad_request(words))
        }
        ProtoError::Malformed { api_version, kind: given, .. } => {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let wanted = &kind.kind;
            Status::bad_request(format!(
                "{given} in version {version:?} cannot be handled as a {wanted}: {words}"
            ))
        }
        ProtoError::NotJson { .. } | ProtoError::TimeOutOfRange(_) => Status::bad_request(words),
    })
}

/// Refuses what no object of that kind is written in.
pub(crate) fn check_type(kind: &Kind, headers: &HeaderMap) -> Result<(), Status> {
    let binary = ", application/vnd.kubernetes.protobuf";
    match content_type(headers) {
        JSON | YAML => Ok(()),
        PROTOBUF if kind.custom.is_none() => Ok(()),
        media => {
            let binary = if media == PROTOBUF { "" } else { binary };
            let accepted = format!("application/json, application/yaml{binary}");
            Err(Status::unsupported_media_type(&accepted))
        }
    }
}

/// An object of that kind.
pub(crate) fn object_of(kind: &Kind, headers: &HeaderMap, bytes: &[u8]) -> Result<Body, Status> {
    let parse_error = "couldn't get version/kind; json parse error";
    check_type(kind, headers)?;
    let body = match content_type(headers) {
        PROTOBUF => protobuf(kind, bytes)?,
        media => object(headers, bytes, ("", "")).map_err(|status| match media {
            JSON if status.code == 400 => {
                unrecognized(kind, bytes, &format!("{parse_error}: {}", status.message))
            }
            _ => status,
        })?,
    };
    if let Some(why) = named::unreadable_type(&body.value) {
        return Err(unrecognized(kind, bytes, &why));
    }
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
        let why = format!("{parse_error}: {}", named::not_an_object(&body.value));
        return Err(unrecognized(kind, bytes, &why));
    }
    Ok(body)
}

/// The options of a delete.
pub(crate) fn delete_options(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, Status> {
    let parse_error = "couldn't get version/kind; json parse error";
    let value = match object(headers, bytes, ("v1", "DeleteOptions")) {
        Ok(body) => body.value,
        Err(status) if status.code == 400 && content_type(headers) == JSON => {
            return Err(Status::bad_request(format!("{parse_error}: {}", status.message)));
        }
        Err(status) => return Err(status),
    };
    if value.is_object() || value.is_null() {
        return Ok(value);
    }
    Err(Status::bad_request(format!("{parse_error}: {}", named::not_an_object(&value))))
}
