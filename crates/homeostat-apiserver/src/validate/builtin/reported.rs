//! What a status may say, where only a write of the status itself is judged by it.

use serde_json::Value;

use super::conditions::{self, conditions};
use super::devices::too_long;
use super::report::{Report, at, entries, list, text};
use super::{job_status, node, resources, status};
use crate::decode::Quantity;
use crate::validate::name;

/// How much a driver may note about a volume, and say about a mistake, in bytes.
const MOST_NOTED: usize = 256 * 1024;
const LONGEST_MISTAKE: usize = 1024;

/// How far the resizing of a claim's volume is.
const RESIZING: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Judges the status of an object of the resource.
pub(super) fn check(resource: &str, value: &Value, old: &Value, report: &mut Report) {
    match resource {
        "namespaces" => phase(value, report),
        "nodes" => node::update(value, old, report),
        "persistentvolumeclaims" => claim(value, report),
        "apiservices.apiregistration.k8s.io" => services(value, report),
        "horizontalpodautoscalers.autoscaling" => {
            status::not_negative(value, &["currentReplicas", "desiredReplicas"], report);
        }
        "poddisruptionbudgets.policy" => budget(value, report),
        "validatingadmissionpolicies.admissionregistration.k8s.io" => policy(value, report),
        "flowschemas.flowcontrol.apiserver.k8s.io"
        | "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io" => flow(value, report),
        "volumeattachments.storage.k8s.io" => attachment(value, report),
        "jobs.batch" => job_status::check(value, old, report),
        workload => status::counts(workload, value, old, report),
    }
}

/// A namespace is being deleted, or it is not.
fn phase(value: &Value, report: &mut Report) {
    let (phase, path) = (text(value, "/status/phase"), "status.Phase");
    let is_deleted = !text(value, "/metadata/deletionTimestamp").is_empty();
    if is_deleted && phase != "Terminating" {
        let why = "may only be 'Terminating' if `deletionTimestamp` is not empty";
        report.invalid(path, phase, why);
    } else if !is_deleted && phase != "Active" {
        let why = "may only be 'Active' if `deletionTimestamp` is empty";
        report.invalid(path, phase, why);
    }
}

fn claim(value: &Value, report: &mut Report) {
    for (name, amount) in entries(value, "/status/capacity") {
        positive(amount, &format!("status.capacity[{name}]"), report);
    }
    let path = "status.allocatedResourceStatuses";
    for (name, state) in entries(value, "/status/allocatedResourceStatuses") {
        claimed(name, path, report);
        if !state.as_str().is_some_and(|state| RESIZING.contains(&state)) {
            report.unsupported(path, &name.as_str().into(), RESIZING);
        }
    }
    let path = "status.allocatedResources";
    for (name, amount) in entries(value, "/status/allocatedResources") {
        let place = format!("{path}[{name}]");
        if claimed(name, path, report) && positive(amount, &place, report) {
            resources::amount("storage", amount, &place, report);
        }
    }
}

/// Whether a claim can be for it.
fn claimed(resource: &str, path: &str, report: &mut Report) -> bool {
    let problems = name::qualified(resource);
    let is_native = !resource.contains('/') || resource.contains("kubernetes.io/");
    let is_known = !is_native || resource == "storage";
    if problems.is_empty() && !is_known {
        report.unsupported(path, &resource.into(), &["storage"]);
    }
    let is_right = problems.is_empty() && is_known;
    problems.into_iter().for_each(|problem| report.invalid(path, resource, problem));
    is_right
}

/// Whether the amount is none that is below zero.
fn positive(amount: &Value, path: &str, report: &mut Report) -> bool {
    let amount = amount.as_str().and_then(|amount| amount.parse::<Quantity>().ok());
    let Some(below) = amount.filter(|amount| amount.is_negative()) else { return true };
    let units = i64::try_from(below.units()).unwrap_or(i64::MIN);
    report.invalid(path, units, "must be a valid resource quantity");
    false
}

/// Whether servers of more groups can be reached.
fn services(value: &Value, report: &mut Report) {
    for (index, condition) in list(value, "/status/conditions").iter().enumerate() {
        let (path, status) =
            (format!("status.conditions[{index}].status"), at(condition, "/status"));
        report.known(&path, status, &["True", "False", "Unknown"]);
    }
}

fn budget(value: &Value, report: &mut Report) {
    conditions(list(value, "/status/conditions"), "status.conditions", report);
    let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    status::not_negative(value, &counts, report);
}

fn policy(value: &Value, report: &mut Report) {
    let warnings = list(value, "/status/typeChecking/expressionWarnings");
    for (index, warning) in warnings.iter().enumerate() {
        let path = format!("status.typeChecking.expressionWarnings[{index}]");
        if text(warning, "/warning").is_empty() {
            report.required(format!("{path}.warning"), "");
        }
        if text(warning, "/fieldRef").trim().is_empty() {
            report.required(format!("{path}.fieldRef"), "");
        }
    }
    conditions(list(value, "/status/conditions"), "status.conditions", report);
}

/// How requests are queued: each condition once.
fn flow(value: &Value, report: &mut Report) {
    let all = list(value, "/status/conditions");
    conditions::once_each(all, "status.conditions", report);
    for (index, _) in all.iter().enumerate().filter(|(_, one)| text(one, "/type").is_empty()) {
        report.required(format!("status.conditions[{index}].type"), "");
    }
}

fn attachment(value: &Value, report: &mut Report) {
    let noted: usize = entries(value, "/status/attachmentMetadata")
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if noted > MOST_NOTED {
        too_long("status.attachmentMetadata", MOST_NOTED, report);
    }
    for field in ["attachError", "detachError"] {
        let (path, mistake) = (format!("status.{field}"), at(value, &format!("/status/{field}")));
        if text(mistake, "/message").len() > LONGEST_MISTAKE {
            // The other limit is told.
            too_long(format!("{path}.message"), MOST_NOTED, report);
        }
        if let Some(code) = at(mistake, "/errorCode").as_i64().filter(|code| *code < 0) {
            let why = "must be between 0 and 2147483647, inclusive";
            report.invalid(format!("{path}.errorCode"), code, why);
        }
    }
}
