//! Pods: a phase from the start, and a quality of service.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::registry::metadata;

pub(super) const HOOKS: Hooks = Hooks {
    complete: |_, object| {
        let grace = object.pointer_mut("/spec/terminationGracePeriodSeconds");
        if let Some(grace) = grace.filter(|grace| grace.as_i64().is_some_and(|n| n < 0)) {
            *grace = 1.into();
        }
        // The account has an old name, too.
        let name = object.pointer("/spec/serviceAccountName").filter(|name| **name != json!(""));
        if let Some(name) = name.cloned() {
            object["spec"]["serviceAccount"] = name;
        }
    },
    create: |writer, _, object| {
        let quality = quality_of_service(object.get("spec").unwrap_or(&Value::Null));
        let mut status = json!({"phase": "Pending", "qosClass": quality});
        let gates = object.pointer("/spec/schedulingGates").and_then(Value::as_array);
        if gates.is_some_and(|gates| !gates.is_empty()) {
            status["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": null,
                "lastTransitionTime": writer.now(),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]);
        }
        metadata::set_top(object, "status", Some(status));
        Ok(())
    },
    ..NONE
};

/// Guaranteed when every container's requests are its limits, for both resources; best effort when
/// there are none at all; burstable otherwise.
fn quality_of_service(spec: &Value) -> &'static str {
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let (mut any, mut guaranteed) = (false, true);
    for container in list("containers").chain(list("initContainers")) {
        for resource in ["cpu", "memory"] {
            let amount = |which: &str| {
                container
                    .pointer(&format!("/resources/{which}/{resource}"))
                    .filter(|v| !v.is_null())
            };
            any |= amount("requests").is_some() || amount("limits").is_some();
            guaranteed &= amount("limits").is_some() && amount("limits") == amount("requests");
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
