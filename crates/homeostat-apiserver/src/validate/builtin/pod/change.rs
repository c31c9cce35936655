//! What an update of a Pod may change.

use serde_json::Value;

use super::super::report::{Report, at, list};

/// What an update of a Pod may touch, in the API's words.
const UPDATABLE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What an update through the Pod itself may change.
pub(in super::super) fn update(value: &Value, old: &Value, report: &mut Report) {
    let (spec, old) = (at(value, "/spec"), at(old, "/spec"));
    for field in ["containers", "initContainers"] {
        if list(spec, &format!("/{field}")).len() != list(old, &format!("/{field}")).len() {
            report
                .forbidden(format!("spec.{field}"), "pod updates may not add or remove containers");
            return;
        }
    }
    for (index, toleration) in list(old, "/tolerations").iter().enumerate() {
        if !list(spec, "/tolerations").contains(toleration) {
            let detail = "existing toleration can not be modified except its tolerationSeconds";
            report.forbidden(format!("spec.tolerations[{index}]"), detail);
        }
    }
    for gate in list(spec, "/schedulingGates") {
        if !list(old, "/schedulingGates").contains(gate) {
            report.forbidden(
                "spec.schedulingGates",
                "only deletion is allowed, but found new scheduling gate",
            );
        }
    }
    let grace = |spec: &Value| at(spec, "/terminationGracePeriodSeconds").as_i64();
    let (mut before, mut after) = (masked(old), masked(spec));
    if grace(old).is_some_and(|old| old < 0) && grace(spec) == Some(1) {
        for spec in [&mut before, &mut after] {
            spec.as_object_mut().map(|spec| spec.shift_remove("terminationGracePeriodSeconds"));
        }
    }
    if before != after {
        report.forbidden("spec", UPDATABLE);
    }
}

/// The spec without what may change.
fn masked(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for field in ["containers", "initContainers"] {
        for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.shift_remove("image");
            }
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        let fields = ["activeDeadlineSeconds", "tolerations", "schedulingGates"];
        for field in fields {
            spec.shift_remove(field);
        }
    }
    spec
}
