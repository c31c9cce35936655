//! The rules of built-in kinds that users meet most: one function per kind, chosen by a table.
//!
//! It judges values that have the right types already (see `decode::typed`) and the defaults
//! filled in. Rules that nobody meets are left out on purpose: an object that a real cluster
//! would refuse may pass here, never the other way round.

use serde_json::Value;

use crate::field::FieldError;
use crate::kinds::Kind;

/// What the rules of the kind refuse in the object, or in its change.
#[must_use]
pub fn builtin(kind: &Kind, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let _ = old;
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            crate::custom::definition(value).err().unwrap_or_default()
        }
        _ => Vec::new(),
    }
}
