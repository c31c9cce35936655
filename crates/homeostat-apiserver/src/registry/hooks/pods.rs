//! Pods: a phase from the start, a quality of service, and one form of what can be said in two.

use serde_json::{Map, Value, json};

use super::{Hooks, NONE};
use crate::quality;
use crate::registry::metadata;

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

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
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            one_address(status);
        }
    },
    create: |writer, _, object| {
        labels_of_its_own(object);
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
    part: |_, part, live, object| {
        if part == "status" {
            keep_what_was_seen(live, object);
        }
    },
    ..NONE
};

/// A Pod has one address, or several of which that is the first. Agents of old know only the one.
fn one_address(status: &mut Map<String, Value>) {
    let one = status.get("podIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = |status: &Map<String, Value>| {
        let first = status.get("podIPs").and_then(|all| all.get(0)).and_then(|one| one.get("ip"));
        first.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    if !one.is_empty() && first(status) != one {
        status.insert("podIPs".to_owned(), json!([{"ip": one}]));
    }
    match first(status) {
        first if first.is_empty() => drop(status.shift_remove("podIP")),
        first => drop(status.insert("podIP".to_owned(), first.into())),
    }
}

/// Agents of old leave out what they do not know.
fn keep_what_was_seen(live: &Value, object: &mut Value) {
    let before = &live["status"];
    let Some(status) = object.get_mut("status").filter(|status| status.is_object()) else { return };
    for (field, nothing) in [("qosClass", json!("")), ("observedGeneration", json!(0))] {
        if *status.get(field).unwrap_or(&nothing) == nothing
            && let Some(before) = before.get(field)
        {
            status[field] = before.clone();
        }
    }
    let mut seen: Vec<&Value> = before["conditions"].as_array().into_iter().flatten().collect();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        let same = seen.iter().position(|seen| seen.get("type") == condition.get("type"));
        // Of several of one type, each is the next.
        let Some(same) = same.map(|at| seen.remove(at)) else { continue };
        if condition.get("observedGeneration").is_none_or(|seen| *seen == json!(0))
            && let Some(before) = same.get("observedGeneration")
        {
            condition.insert("observedGeneration".to_owned(), before.clone());
        }
    }
}

/// What a Pod asks of others by the labels of its own is written out once, when it is made.
fn labels_of_its_own(pod: &mut Value) {
    let labels = pod.pointer("/metadata/labels").cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else { return };
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (field, below) in [
            ("preferredDuringSchedulingIgnoredDuringExecution", "/podAffinityTerm"),
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
        ] {
            let terms = spec.pointer_mut(&format!("/affinity/{kind}/{field}"));
            for term in terms.and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(term) = term.pointer_mut(below) {
                    written_out(term, &labels);
                }
            }
        }
    }
    let constraints = spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut);
    constraints.into_iter().flatten().for_each(|constraint| written_out(constraint, &labels));
}

fn written_out(term: &mut Value, labels: &Value) {
    let rules: Vec<Value> = [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]
        .into_iter()
        .flat_map(|(field, operator)| {
            let keys = term.get(field).and_then(Value::as_array).into_iter().flatten();
            let rule = |key: &Value| {
                let value = labels.get(key.as_str()?)?;
                Some(json!({"key": key, "operator": operator, "values": [value]}))
            };
            keys.filter_map(rule).collect::<Vec<_>>()
        })
        .collect();
    let selector = term.get_mut("labelSelector").and_then(Value::as_object_mut);
    let Some(selector) = selector.filter(|_| !rules.is_empty()) else { return };
    let all = selector.entry("matchExpressions").or_insert_with(|| json!([]));
    all.as_array_mut().into_iter().for_each(|all| all.extend(rules.clone()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_address_of_a_pod_is_the_first_of_all() {
        for (given, made) in [
            (
                json!({"podIP": "10.0.0.1"}),
                json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}),
            ),
            (
                json!({"podIPs": [{"ip": "::1"}]}),
                json!({"podIP": "::1", "podIPs": [{"ip": "::1"}]}),
            ),
            (
                json!({"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]}),
                json!({"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.2"}]}),
            ),
            (json!({"podIP": ""}), json!({})),
        ] {
            let mut status = given.as_object().cloned().unwrap();
            one_address(&mut status);
            assert_eq!(Value::Object(status), made, "{given}");
        }
    }

    #[test]
    fn what_was_seen_of_a_pod_is_not_forgotten_by_who_leaves_it_out() {
        let conditions = json!([
            {"type": "A", "observedGeneration": 1},
            {"type": "A", "observedGeneration": 2},
        ]);
        let live = json!({"status": {"qosClass": "Burstable", "observedGeneration": 3,
            "conditions": conditions}});
        let mut object = json!({"status": {"conditions": [
            {"type": "B"}, {"type": "A"}, {"type": "A", "observedGeneration": 4}, {"type": "A"},
        ]}});
        keep_what_was_seen(&live, &mut object);
        let status = &object["status"];
        assert_eq!(
            (&status["qosClass"], &status["observedGeneration"]),
            (&json!("Burstable"), &json!(3))
        );
        let seen: Vec<_> =
            (0..4).map(|at| status["conditions"][at].get("observedGeneration")).collect();
        assert_eq!(seen, [None, Some(&json!(1)), Some(&json!(4)), None]);
    }

    #[test]
    fn what_a_pod_asks_of_its_own_labels_is_written_out() {
        let term = json!({"labelSelector": {}, "matchLabelKeys": ["a", "none"], "mismatchLabelKeys": ["b"]});
        let mut pod = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"affinity":
            {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
            [{"podAffinityTerm": term}]}}, "topologySpreadConstraints": [{"matchLabelKeys": ["a"]}]}});
        labels_of_its_own(&mut pod);
        let place = "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution\
                     /0/podAffinityTerm/labelSelector/matchExpressions";
        let rules = json!([
            {"key": "a", "operator": "In", "values": ["1"]},
            {"key": "b", "operator": "NotIn", "values": ["2"]},
        ]);
        assert_eq!(pod.pointer(place), Some(&rules));
        // Nothing is selected without a selector.
        let constraint = &pod["spec"]["topologySpreadConstraints"][0];
        assert_eq!(constraint, &json!({"matchLabelKeys": ["a"]}));
    }
}
