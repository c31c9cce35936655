//! The cells of a Pod: its state in one word takes a walk through its containers.

use serde_json::{Value, json};

use super::cells::{int_at, is_true, list_at, str_at};
use super::{Row, age};

struct Summary {
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: String,
    status: String,
}

pub(super) fn ready(row: &Row<'_>) -> Value {
    let summary = summary(row.object);
    json!(format!("{}/{}", summary.ready, summary.total))
}

pub(super) fn status(row: &Row<'_>) -> Value {
    json!(summary(row.object).status)
}

pub(super) fn restarts(row: &Row<'_>) -> Value {
    let summary = summary(row.object);
    if summary.restarts == 0 || summary.last_restart.is_empty() {
        return json!(summary.restarts.to_string());
    }
    json!(format!("{} ({} ago)", summary.restarts, age::since(&summary.last_restart, row.now)))
}

pub(super) fn readiness_gates(row: &Row<'_>) -> Value {
    let gates = list_at(row.object, "/spec/readinessGates");
    if gates.is_empty() {
        return json!("<none>");
    }
    let open =
        gates.iter().filter(|gate| is_true(row.object, str_at(gate, "/conditionType"))).count();
    json!(format!("{open}/{}", gates.len()))
}

/// Rows of finished Pods say so, and `kubectl get -w` may hide them.
pub(super) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match str_at(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn is_sidecar(pod: &Value, name: &str) -> bool {
    list_at(pod, "/spec/initContainers").iter().any(|container| {
        str_at(container, "/name") == name && str_at(container, "/restartPolicy") == "Always"
    })
}

/// Why a terminated container ended, in a word.
fn ended(container: &Value) -> Option<String> {
    let state = container.pointer("/state/terminated")?;
    Some(match (str_at(state, "/reason"), int_at(state, "/signal")) {
        ("", 0) => format!("ExitCode:{}", int_at(state, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}

fn summary(pod: &Value) -> Summary {
    let phase = str_at(pod, "/status/phase");
    let mut summary = Summary {
        ready: 0,
        total: list_at(pod, "/spec/containers").len(),
        restarts: 0,
        last_restart: String::new(),
        status: match str_at(pod, "/status/reason") {
            "" => phase.to_owned(),
            reason => reason.to_owned(),
        },
    };
    let gated = list_at(pod, "/status/conditions").iter().any(|condition| {
        str_at(condition, "/type") == "PodScheduled"
            && str_at(condition, "/reason") == "SchedulingGated"
    });
    if gated {
        "SchedulingGated".clone_into(&mut summary.status);
    }
    let sidecars = list_at(pod, "/spec/initContainers")
        .iter()
        .filter(|container| str_at(container, "/restartPolicy") == "Always");
    summary.total += sidecars.count();
    let initializing = init_containers(pod, &mut summary);
    if !initializing || is_true(pod, "Initialized") {
        containers(pod, &mut summary);
    }
    if !str_at(pod, "/metadata/deletionTimestamp").is_empty() {
        if str_at(pod, "/status/reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.status);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.status);
        }
    }
    summary
}

fn note_restarts(container: &Value, summary: &mut Summary) {
    summary.restarts += int_at(container, "/restartCount");
    let finished = str_at(container, "/lastState/terminated/finishedAt");
    if finished > summary.last_restart.as_str() {
        finished.clone_into(&mut summary.last_restart);
    }
}

/// Looks at the init containers in order; true when one of them is still to finish.
fn init_containers(pod: &Value, summary: &mut Summary) -> bool {
    let total = list_at(pod, "/spec/initContainers").len();
    for (index, container) in list_at(pod, "/status/initContainerStatuses").iter().enumerate() {
        note_restarts(container, summary);
        let sidecar = is_sidecar(pod, str_at(container, "/name"));
        let started = container.get("started") == Some(&Value::Bool(true));
        let exit_code = container.pointer("/state/terminated/exitCode").and_then(Value::as_i64);
        if exit_code == Some(0) {
            continue;
        }
        if sidecar && started {
            summary.ready += usize::from(container.get("ready") == Some(&Value::Bool(true)));
            continue;
        }
        let waiting = str_at(container, "/state/waiting/reason");
        summary.status = match ended(container) {
            Some(reason) => format!("Init:{reason}"),
            None if !waiting.is_empty() && waiting != "PodInitializing" => {
                format!("Init:{waiting}")
            }
            None => format!("Init:{index}/{total}"),
        };
        return true;
    }
    false
}

fn containers(pod: &Value, summary: &mut Summary) {
    // restarts of init containers that are done do not count any more
    summary.restarts = 0;
    summary.last_restart.clear();
    for container in list_at(pod, "/status/initContainerStatuses") {
        if is_sidecar(pod, str_at(container, "/name")) {
            note_restarts(container, summary);
        }
    }
    let mut running = false;
    let mut failed = None;
    for container in list_at(pod, "/status/containerStatuses").iter().rev() {
        note_restarts(container, summary);
        let waiting = str_at(container, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.status);
        } else if let Some(reason) = ended(container) {
            if int_at(container, "/state/terminated/exitCode") != 0 {
                failed = Some(reason.clone());
            }
            summary.status = reason;
        } else if container.get("ready") == Some(&Value::Bool(true))
            && container.pointer("/state/running").is_some()
        {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.status == "Completed" {
        if running && is_true(pod, "Ready") {
            "Running".clone_into(&mut summary.status);
        } else if let Some(reason) = failed {
            summary.status = reason;
        } else if running {
            "NotReady".clone_into(&mut summary.status);
        }
    }
}
