//! Request bodies by their media type.

use http::HeaderMap;

use super::negotiate::content_type;
use crate::kinds::Kind;
use crate::registry::{Body, Patch};
use crate::status::Status;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// An object (or options) in any encoding the API reads.
pub(crate) fn object(headers: &HeaderMap, bytes: &[u8]) -> Result<Body, Status> {
    match content_type(headers) {
        JSON => json(bytes),
        YAML => yaml(bytes),
        _ => Err(Status::unsupported_media_type(
            "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

fn json(bytes: &[u8]) -> Result<Body, Status> {
    let value = serde_json::from_slice(bytes)
        .map_err(|error| Status::bad_request(format!("the body is not valid JSON: {error}")))?;
    Ok(Body { value, duplicates: Vec::new() })
}

fn yaml(bytes: &[u8]) -> Result<Body, Status> {
    let value = serde_saphyr::from_slice(bytes)
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: {error}")))?;
    Ok(Body { value, duplicates: Vec::new() })
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
