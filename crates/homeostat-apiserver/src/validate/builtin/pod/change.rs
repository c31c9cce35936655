//! What an update of a Pod may change.

use serde_json::{Value, json};

use super::super::place::Place;
use super::super::report::{Report, at, list, text};
use super::scheduling::tolerations;
use crate::decode;
use crate::go;
use crate::go::internal::form;

const SPEC: &str = "io.k8s.api.core.v1.PodSpec";
const TERM: &str = "io.k8s.api.core.v1.NodeSelectorTerm";

/// What an update of a Pod may touch, in the API's words.
const UPDATABLE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What an update through the Pod itself may change.
pub(in super::super) fn update(value: &Value, old: &Value, report: &mut Report) {
    let (spec, old) = (at(value, "/spec"), at(old, "/spec"));
    for field in ["containers", "initContainers"] {
        if !images(spec, old, field, report) {
            return;
        }
    }
    if !deadline(at(spec, "/activeDeadlineSeconds"), at(old, "/activeDeadlineSeconds"), report) {
        return;
    }
    added_tolerations(spec, old, report);
    gates(list(spec, "/schedulingGates"), list(old, "/schedulingGates"), report);
    let mut rest = with_what_may_change(spec, old);
    if !list(old, "/schedulingGates").is_empty() {
        while_gated(&mut rest, old, report);
    }
    if rest != *old && plain(&rest) != *old {
        let detail = format!("{UPDATABLE}\n{}", go::difference(SPEC, old, &rest));
        report.forbidden("spec", &detail);
    }
}

/// The spec without what is given and is empty, which is no change.
fn plain(spec: &Value) -> Value {
    let mut plain = spec.clone();
    decode::drop_empty_of(SPEC, &mut plain);
    plain
}

/// Containers stay, and have images. Says whether there is more to look at.
fn images(spec: &Value, old: &Value, field: &str, report: &mut Report) -> bool {
    let pointer = format!("/{field}");
    let containers = list(spec, &pointer);
    if containers.len() != list(old, &pointer).len() {
        report.forbidden(format!("spec.{field}"), "pod updates may not add or remove containers");
        return false;
    }
    for (index, container) in containers.iter().enumerate() {
        let (image, path) = (text(container, "/image"), format!("spec.{field}[{index}].image"));
        if image.is_empty() {
            report.required(path, "");
        } else if image.trim() != image {
            report.invalid(path, image, "must not have leading or trailing whitespace");
        }
    }
    true
}

/// A deadline may be set and brought forward. Says whether there is more to look at.
fn deadline(new: &Value, old: &Value, report: &mut Report) -> bool {
    let path = "spec.activeDeadlineSeconds";
    match (new.as_i64(), old.as_i64()) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
            report.invalid(path, new, detail);
            false
        }
        (Some(new), Some(old)) if old < new => {
            report.invalid(path, new, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            report.invalid(path, Value::Null, detail);
            true
        }
        _ => true,
    }
}

/// Tolerations may come, and those that are there may last longer or shorter.
fn added_tolerations(spec: &Value, old: &Value, report: &mut Report) {
    let new = list(spec, "/tolerations");
    let lasting = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.as_object_mut().map(|fields| fields.shift_remove("tolerationSeconds"));
        toleration
    };
    let mut before = list(old, "/tolerations").iter().map(lasting);
    if before.any(|old| !new.iter().any(|new| lasting(new) == old)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        report.forbidden("spec.tolerations", detail);
        return;
    }
    tolerations(spec, &Place::Root("spec").field("tolerations"), report);
}

/// Gates may go.
fn gates(new: &[Value], old: &[Value], report: &mut Report) {
    for (index, gate) in new.iter().enumerate() {
        let name = text(gate, "/name");
        let is_last = !new[index + 1..].iter().any(|other| text(other, "/name") == name);
        if is_last && !old.iter().any(|other| text(other, "/name") == name) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            report.forbidden(format!("spec.schedulingGates[{index}].name"), &detail);
        }
    }
}

/// The new spec with the old values of what may change.
fn with_what_may_change(spec: &Value, old: &Value) -> Value {
    let mut rest = spec.clone();
    for field in ["containers", "initContainers"] {
        let containers = rest.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, old) in containers.zip(list(old, &format!("/{field}"))) {
            put(container, old, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put(&mut rest, old, field);
    }
    let grace = |spec: &Value| at(spec, "/terminationGracePeriodSeconds").as_i64();
    if grace(old).is_some_and(|old| old < 0) && grace(spec) == Some(1) {
        put(&mut rest, old, "terminationGracePeriodSeconds");
    }
    rest
}

/// Sets a field to what the other value has.
fn put(value: &mut Value, other: &Value, field: &str) {
    let Some(fields) = value.as_object_mut() else { return };
    match other.get(field) {
        Some(other) => drop(fields.insert(field.to_owned(), other.clone())),
        None => drop(fields.shift_remove(field)),
    }
}

/// While a Pod waits to be scheduled, it may be held to fewer nodes.
fn while_gated(rest: &mut Value, old: &Value, report: &mut Report) {
    if rest.get("nodeSelector") != old.get("nodeSelector") {
        let new = at(rest, "/nodeSelector");
        let kept = at(old, "/nodeSelector").as_object().into_iter().flatten();
        if kept.into_iter().any(|(name, value)| new.get(name) != Some(value)) {
            let detail =
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            report.invalid("spec.nodeSelector", form("map[]string", new), detail);
        }
        put(rest, old, "nodeSelector");
    }
    let pointer = "/affinity/nodeAffinity";
    if at(rest, pointer) == at(old, pointer) {
        return;
    }
    fewer_nodes(at(rest, pointer), at(old, pointer), report);
    let others = ["/affinity/podAffinity", "/affinity/podAntiAffinity"];
    let is_alone = others.iter().all(|other| at(rest, other).is_null());
    if rest.get("affinity").is_none() || (old.get("affinity").is_none() && is_alone) {
        let nodes = old.pointer(pointer);
        let kept = nodes.map(|nodes| json!({"affinity": {"nodeAffinity": nodes}}));
        put(rest, &kept.unwrap_or_default(), "affinity");
    } else if let Some(affinity) = rest.get_mut("affinity") {
        put(affinity, at(old, "/affinity"), "nodeAffinity");
    }
}

fn fewer_nodes(new: &Value, old: &Value, report: &mut Report) {
    let terms = "/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
                .nodeSelectorTerms";
    let (new, old) = (list(new, terms), list(old, terms));
    if !old.is_empty() && old.len() != new.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = if new.is_empty() { Value::Null } else { new.to_vec().into() };
        report.invalid(path, form(&format!("[]{TERM}"), &shown), detail);
        return;
    }
    for (index, (new, old)) in new.iter().zip(old).enumerate() {
        let kinds = ["/matchExpressions", "/matchFields"];
        let begins_alike = kinds.iter().all(|kind| list(new, kind).starts_with(list(old, kind)));
        let none = |term: &Value| kinds.iter().all(|kind| list(term, kind).is_empty());
        if !begins_alike || (none(old) && !none(new)) {
            let detail = "only additions are allowed (no mutations or deletions)";
            report.invalid(format!("{path}[{index}]"), form(TERM, new), detail);
        }
    }
}
