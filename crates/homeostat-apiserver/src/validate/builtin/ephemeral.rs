//! Containers that join a running Pod: what they may be, and that they stay as they came.

use serde_json::{Value, json};

use super::pod;
use super::report::{Report, list, text};
use crate::field::{FieldError, Reason};

/// All that a container for a look inside needs; what serves or lasts is not for it.
const ALLOWED: &[&str] = &[
    "name",
    "image",
    "command",
    "args",
    "workingDir",
    "envFrom",
    "env",
    "volumeMounts",
    "volumeDevices",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "imagePullPolicy",
    "securityContext",
    "stdin",
    "stdinOnce",
    "tty",
    "targetContainerName",
];
const NOT_FOR_THESE: &str = "cannot be set for an Ephemeral Container";

/// The ephemeral containers of a spec; `others` are the names of its lasting ones.
pub(super) fn containers(
    spec: &Value,
    path: &str,
    others: &[&str],
    volumes: &[&str],
    report: &mut Report,
) {
    let mut names = others.to_vec();
    for (index, container) in list(spec, "/ephemeralContainers").iter().enumerate() {
        let path = format!("{path}.ephemeralContainers[{index}]");
        pod::container(&allowed(container), &path, volumes, report);
        let name = text(container, "/name");
        if names.contains(&name) {
            report.duplicate(format!("{path}.name"), name);
        }
        names.push(name);
        let target = text(container, "/targetContainerName");
        if !target.is_empty() && !others.contains(&target) {
            let path = format!("{path}.targetContainerName");
            report.errors.push(FieldError::new(path, Reason::NotFound, target.into(), ""));
        }
        for field in disallowed(container) {
            report.forbidden(format!("{path}.{field}"), NOT_FOR_THESE);
        }
        for (index, mount) in list(container, "/volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, &format!("/{field}")).is_empty() {
                    let path = format!("{path}.volumeMounts[{index}].{field}");
                    report.forbidden(path, NOT_FOR_THESE);
                }
            }
        }
    }
}

fn disallowed(container: &Value) -> impl Iterator<Item = &str> {
    let is_set = |value: &Value| *value != json!({}) && *value != json!([]) && !value.is_null();
    let fields = container.as_object().into_iter().flatten();
    fields
        .filter(move |(name, value)| !ALLOWED.contains(&name.as_str()) && is_set(value))
        .map(|(name, _)| name.as_str())
}

/// The container without what it may not have: one word about each is enough.
fn allowed(container: &Value) -> Value {
    let mut container = container.clone();
    if let Some(fields) = container.as_object_mut() {
        fields.retain(|name, _| ALLOWED.contains(&name.as_str()));
    }
    container
}

/// Those that are there stay, unchanged.
pub(super) fn change(value: &Value, old: &Value, report: &mut Report) {
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
            Some(_) => "changed",
            None => "removed",
        };
        report.forbidden(
            path,
            &format!("existing ephemeral containers {name:?} may not be {what}\n"),
        );
    }
}
