//! What an update of a PersistentVolumeClaim may change: its volume and its class, once, and how
//! much it asks for, while it is bound.

use serde_json::Value;

use super::report::{Report, at, text};
use crate::decode::Quantity;
use crate::go;

const SPEC: &str = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";
/// Where the class was told before there was a field for it.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn check(value: &Value, old: &Value, report: &mut Report) {
    let (mut after, mut before) = (at(value, "/spec").clone(), at(old, "/spec").clone());
    if text(&before, "/volumeName").is_empty() {
        copy(&mut before, &after, "volumeName");
    }
    class(value, old, &mut after, report);
    if text(value, "/status/phase") == "Bound" {
        let pointer = "/resources/requests";
        if let Some(requests) = after.pointer_mut(pointer) {
            copy(requests, at(&before, pointer), "storage");
        }
        copy(&mut after, &before, "volumeAttributesClassName");
    }
    if after != before {
        let detail = format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n{}",
            go::difference(SPEC, &before, &after)
        );
        report.forbidden("spec", &detail);
    }
    let amount = |claim: &Value, pointer: &str| -> Quantity {
        text(claim, pointer).parse().unwrap_or(Quantity::ZERO)
    };
    let size = |claim: &Value| amount(claim, "/spec/resources/requests/storage");
    if size(value) < size(old) && size(value) <= amount(old, "/status/capacity/storage") {
        let detail = "field can not be less than status.capacity";
        report.forbidden("spec.resources.requests.storage", detail);
    }
    let mode = |claim: &Value| at(claim, "/spec/volumeMode").clone();
    if mode(value) != mode(old) {
        report.invalid("volumeMode", mode(value), "field is immutable");
    }
    attributes(value, old, report);
}

/// A claim may get its class when it had none, and may say in its field what its annotation said.
fn class(value: &Value, old: &Value, after: &mut Value, report: &mut Report) {
    let told = |claim: &Value| at(claim, "/metadata/annotations").get(CLASS).cloned();
    let named = |claim: &Value| at(claim, "/spec").get("storageClassName").cloned();
    let (annotation, before) = (told(old), named(old));
    let is_new = before.is_none() && named(value).is_some();
    let is_as_told = annotation.is_some() && named(value) == annotation;
    if is_new && is_as_told && told(value).is_none_or(|told| Some(told) == annotation) {
        copy(after, &Value::Null, "storageClassName");
        return;
    }
    let shown = |claim: &Value| told(claim).unwrap_or_else(|| "".into());
    if shown(value) != shown(old) {
        let path = format!("metadata.annotations.{CLASS}");
        report.invalid(path, shown(value), "field is immutable");
    }
    if is_new && (annotation.is_none() || is_as_told) {
        copy(after, &Value::Null, "storageClassName");
    }
}

/// A class of attributes that was applied may be replaced, not taken away.
fn attributes(value: &Value, old: &Value, report: &mut Report) {
    let name = |claim: &Value| at(claim, "/spec").get("volumeAttributesClassName").cloned();
    if name(value) == name(old) || at(old, "/status/currentVolumeAttributesClassName").is_null() {
        return;
    }
    let what = match name(value) {
        None => "nil",
        Some(name) if name == "" => "empty string",
        Some(_) => return,
    };
    let detail = format!(
        "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    );
    report.forbidden("spec.volumeAttributesClassName", &detail);
}

/// Sets a field to what the other value has.
fn copy(value: &mut Value, other: &Value, field: &str) {
    let Some(fields) = value.as_object_mut() else { return };
    match other.get(field) {
        Some(other) => drop(fields.insert(field.to_owned(), other.clone())),
        None => drop(fields.shift_remove(field)),
    }
}
