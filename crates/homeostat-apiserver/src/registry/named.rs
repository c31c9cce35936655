//! What an object says it is, `apiVersion` and `kind`, beside what its path says.

use serde_json::Value;

use crate::decode::{self, DecodeError};
use crate::go::json_type;
use crate::kinds::Kind;
use crate::status::Status;

/// Groups that are served by servers of their own, within kube-apiserver: they know no other kinds.
const APART: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Bodies of built-in kinds may leave out what the URL says already.
pub(crate) fn complete_type(kind: &Kind, object: &mut Value) {
    if kind.custom.is_some() {
        return;
    }
    let Some(fields) = object.as_object_mut() else { return };
    for (name, value) in [("apiVersion", kind.api_version()), ("kind", kind.kind.clone())] {
        if fields.get(name).and_then(Value::as_str).unwrap_or("").is_empty() {
            fields.insert(name.to_owned(), value.into());
        }
    }
}

/// What is said of a value that is no object.
pub(crate) fn not_an_object(value: &Value) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        json_type(value)
    )
}

/// Checks `apiVersion` and `kind` of a body against the kind of the URL.
pub(crate) fn check_type(kind: &Kind, object: &Value) -> Result<(), Status> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
    if !object.is_object() {
        let why = not_an_object(object);
        return Err(Status::bad_request(format!(
            "couldn't get version/kind; json parse error: {why}"
        )));
    }
    if text("kind").is_empty() {
        return Err(Status::bad_request(format!("Object 'Kind' is missing in '{object}'")));
    }
    let (given, version) = (text("kind"), text("apiVersion"));
    if given == kind.kind && version == kind.api_version() {
        return Ok(());
    }
    if kind.custom.is_some() {
        // Its version is looked at when it is read, and its kind is judged with all the rest.
        return Ok(());
    }
    let apart = |group: &str| APART.iter().find(|name| **name == group);
    let other = crate::kinds::builtin()
        .iter()
        .find(|other| other.kind == given && other.api_version() == version)
        .filter(|other| apart(&other.group) == apart(&kind.group));
    let short = version.rsplit('/').next().unwrap_or_default();
    let why = match other {
        Some(other) if other.kind == kind.kind => return Err(other_version(kind, version)),
        // It is read as what it calls itself first.
        Some(other) => match decode::typed(other, &mut object.clone()) {
            Err(DecodeError::Type { reason, .. }) => reason,
            _ => {
                let group = kind.group.split('.').next().filter(|group| !group.is_empty());
                format!(
                    "converting ({}.{given}) to ({}.{}): unknown conversion",
                    other.version,
                    group.unwrap_or("core"),
                    kind.kind
                )
            }
        },
        None => super::options::unregistered(given, version),
    };
    Err(Status::bad_request(format!(
        "{given} in version {short:?} cannot be handled as a {}: {why}",
        kind.kind
    )))
}

/// The refusal of an object in another version.
pub(super) fn other_version(kind: &Kind, version: &str) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({version}) does not match the expected API version ({})",
        kind.api_version()
    ))
}

/// Why what an object says it is cannot be read.
pub(crate) fn unreadable_type(object: &Value) -> Option<String> {
    for field in ["apiVersion", "kind"] {
        let other = object.get(field).filter(|value| !value.is_string() && !value.is_null());
        if let Some(other) = other {
            let found = json_type(other);
            return Some(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into \
                 Go struct field .{field} of type string"
            ));
        }
    }
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let is_odd = version.matches('/').count() > 1;
    is_odd.then(|| format!("unexpected GroupVersion string: {version}"))
}
