//! Pods: a phase from the start, and a quality of service.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::quality;
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
        let quality = quality::of_pod(object.get("spec").unwrap_or(&Value::Null));
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
