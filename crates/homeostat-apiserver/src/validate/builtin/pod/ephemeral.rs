//! Containers that join a running Pod: what they may be, and that they stay as they came.

use serde_json::{Value, json};

use super::super::place::Place;
use super::super::report::{Report, list, text};
use super::{Inside, container, given, items};

/// What serves or lasts is not for a container that is for a look inside.
const FORBIDDEN: &[&str] = &[
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];
const CONTAINER: &str = "io.k8s.api.core.v1.EphemeralContainer";
const NOT_FOR_THESE: &str = "cannot be set for an Ephemeral Container";

/// The ephemeral containers of a spec.
pub(super) fn containers(inside: Inside<'_>, place: &Place<'_>, report: &mut Report) {
    let containers = items(inside.spec, "ephemeralContainers");
    let is_lasting = |name: &str| {
        let lasting = ["containers", "initContainers"].map(|field| items(inside.spec, field));
        lasting.concat().iter().any(|other| text(other, "/name") == name)
    };
    for (index, found) in containers.iter().enumerate() {
        let place = place.item(index);
        container::container(found, inside, &place, report);
        container::image(found, &place, report);
        let name = text(found, "/name");
        let before = &containers[..index];
        if is_lasting(name) || before.iter().any(|other| text(other, "/name") == name) {
            report.duplicate(place.field("name"), name);
        }
        let target = text(found, "/targetContainerName");
        if !target.is_empty() && !is_lasting(target) {
            report.not_found(place.field("targetContainerName"), target);
        }
        let is_set = |field: &&&str| found.get(field).is_some_and(|value| is_there(field, value));
        for field in FORBIDDEN.iter().filter(is_set) {
            report.forbidden(place.field(field), NOT_FOR_THESE);
        }
        let place = place.field("volumeMounts");
        for (index, mount) in items(found, "volumeMounts").iter().enumerate() {
            let place = place.item(index);
            for field in ["subPath", "subPathExpr"] {
                if given(mount, field).is_some() {
                    report.forbidden(place.field(field), NOT_FOR_THESE);
                }
            }
        }
    }
}

/// Whether a field was given. Resources are always there, and say something or nothing.
fn is_there(field: &str, value: &Value) -> bool {
    field != "resources" || *value != json!({})
}

/// Those that are there stay, unchanged.
pub(in super::super) fn change(value: &Value, old: &Value, report: &mut Report) {
    if old.pointer("/metadata/annotations/kubernetes.io~1config.mirror").is_some() {
        report.forbidden("[]", "static pods do not support ephemeral containers");
        return;
    }
    let path = "spec.ephemeralContainers";
    let new = list(value, "/spec/ephemeralContainers");
    for old in list(old, "/spec/ephemeralContainers") {
        let name = text(old, "/name");
        let what = match new.iter().rfind(|container| container["name"] == old["name"]) {
            Some(container) if container == old => continue,
            Some(new) => format!("changed\n{}", crate::go::difference(CONTAINER, old, new)),
            None => "removed\n".to_owned(),
        };
        let detail = format!("existing ephemeral containers {name:?} may not be {what}");
        report.forbidden(path, &detail);
    }
}
