//! Pods: a phase from the start, and a quality of service.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::quality;
use crate::registry::metadata;

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) const HOOKS: Hooks = Hooks {
    complete: |live, object| {
        if live.is_none() {
            drop_what_is_off(object);
        }
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
        profiles_of_old(object);
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

/// Fields that are known, but that nobody may use yet.
fn drop_what_is_off(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.shift_remove("schedulingGroup");
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let found = spec.get_mut(field).and_then(Value::as_array_mut);
        for container in found.into_iter().flatten().filter_map(Value::as_object_mut) {
            let lifecycle = container.get_mut("lifecycle").and_then(Value::as_object_mut);
            let Some(lifecycle) = lifecycle else { continue };
            if lifecycle.shift_remove("stopSignal").is_some() && lifecycle.is_empty() {
                container.shift_remove("lifecycle");
            }
        }
    }
}

/// An AppArmor profile that is asked for by annotation becomes that of the container, unless it has
/// one, or the Pod has the same.
fn profiles_of_old(pod: &mut Value) {
    if pod.pointer("/spec/os/name").is_some_and(|name| name == "windows") {
        return;
    }
    let Some(annotations) = pod.pointer("/metadata/annotations").cloned() else { return };
    let common = pod.pointer("/spec/securityContext/appArmorProfile").cloned();
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let found = pod["spec"].get_mut(field).and_then(Value::as_array_mut);
        for container in found.into_iter().flatten().filter(|container| container.is_object()) {
            let name = container["name"].as_str().unwrap_or_default();
            let annotation = annotations.get(format!("{APP_ARMOR}{name}")).and_then(Value::as_str);
            let profile = annotation.and_then(profile_of);
            let has_one = container.pointer("/securityContext/appArmorProfile").is_some();
            if profile.is_some() && !has_one && profile != common {
                container["securityContext"]["appArmorProfile"] = profile.into();
            }
        }
    }
}

/// The profile that an annotation asks for, if it is one.
pub(crate) fn profile_of(annotation: &str) -> Option<Value> {
    match (annotation, annotation.strip_prefix("localhost/")) {
        ("unconfined", _) => Some(json!({"type": "Unconfined"})),
        ("runtime/default", _) => Some(json!({"type": "RuntimeDefault"})),
        (_, Some(local)) if !local.trim().is_empty() && local.trim() == local => {
            Some(json!({"type": "Localhost", "localhostProfile": local}))
        }
        _ => None,
    }
}
