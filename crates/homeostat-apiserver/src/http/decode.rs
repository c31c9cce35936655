//! Request bodies by their media type.

use http::HeaderMap;

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

/// A patch.
pub(crate) fn patch(kind: &Kind, headers: &HeaderMap, bytes: &[u8]) -> Result<Patch, Status> {
    let strategic = kind.custom.is_none();
    match content_type(headers) {
        "application/json-patch+json" => Ok(Patch::Json(json(bytes)?.value)),
        "application/merge-patch+json" => Ok(Patch::Merge(json(bytes)?.value)),
        "application/strategic-merge-patch+json" if strategic => {
            Ok(Patch::Strategic(json(bytes)?.value))
        }
        "application/apply-patch+yaml" => Ok(Patch::Apply(yaml(bytes)?)),
        _ if strategic => Err(Status::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, application/strategic-merge-patch+json",
        )),
        _ => Err(Status::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
    }
}
