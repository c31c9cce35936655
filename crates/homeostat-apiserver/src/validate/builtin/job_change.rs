//! What an update of a Job may change: how its Pods are scheduled and what they ask for while none
//! of them runs, and of an indexed one how many there are.

use serde_json::Value;

use super::report::{Report, at, list, text};
use crate::go::internal;

pub(super) fn check(value: &Value, old: &Value, report: &mut Report) {
    completions(value, old, report);
    report.immutable(value, Some(old), "/spec/selector");
    template(value, old, report);
    for field in
        ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        report.immutable(value, Some(old), &format!("/spec/{field}"));
    }
}

fn completions(value: &Value, old: &Value, report: &mut Report) {
    let pointer = "/spec/completions";
    if text(value, "/spec/completionMode") != "Indexed" {
        report.immutable(value, Some(old), pointer);
    } else if at(old, pointer) != at(value, pointer)
        && let Some(completions) = at(value, pointer).as_i64()
        && at(value, "/spec/parallelism").as_i64() != Some(completions)
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        report.invalid("spec.completions", completions, detail);
    }
}

fn template(value: &Value, old: &Value, report: &mut Report) {
    let (new, before) = (at(value, "/spec/template"), at(old, "/spec/template"));
    if !rests(old) {
        report.immutable(value, Some(old), "/spec/template");
        return;
    }
    let mut before = at(before, "/spec").clone();
    let new = at(new, "/spec");
    scheduled_like(&mut before, new);
    for field in ["containers", "initContainers"] {
        let new = list(new, &format!("/{field}"));
        let containers = before.get_mut(field).and_then(Value::as_array_mut);
        let same = containers.filter(|containers| containers.len() == new.len());
        for (container, new) in same.into_iter().flatten().zip(new) {
            if container["name"] == new["name"] {
                take(container, new, "resources");
            }
        }
    }
    if before != *new {
        let shown = internal::part(value, "/spec/template/spec");
        report.invalid("spec.template.spec", shown, "field is immutable");
    }
}

/// Whether a Job is suspended and none of its Pods runs.
fn rests(job: &Value) -> bool {
    let is_suspended = list(job, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == "Suspended" && text(condition, "/status") == "True"
    });
    at(job, "/spec/suspend") == &Value::Bool(true)
        && (at(job, "/status/startTime").is_null() || is_suspended)
        && at(job, "/status/active").as_i64().unwrap_or(0) == 0
}

/// Takes over what may change about the scheduling of Pods.
fn scheduled_like(before: &mut Value, new: &Value) {
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        take(before, new, field);
    }
    let mut affinity = before.get("affinity").cloned().unwrap_or_else(|| serde_json::json!({}));
    take(&mut affinity, at(new, "/affinity"), "nodeAffinity");
    if affinity.as_object().is_some_and(serde_json::Map::is_empty) && new.get("affinity").is_none()
    {
        take(before, new, "affinity");
    } else {
        before["affinity"] = affinity;
    }
}

/// Sets a field to what the other value has.
fn take(value: &mut Value, other: &Value, field: &str) {
    let Some(fields) = value.as_object_mut() else { return };
    match other.get(field) {
        Some(other) => drop(fields.insert(field.to_owned(), other.clone())),
        None => drop(fields.shift_remove(field)),
    }
}
