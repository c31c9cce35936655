//! HorizontalPodAutoscalers in their first version, which can say one thing about metrics: how busy
//! processors should be. Everything else that the second version knows is written into annotations
//! there, in the words of the first, and read from them again. It judges nothing.

mod metrics;

use serde_json::{Map, Value, json};

use crate::decode;
use crate::go;
use crate::kinds::{Kind, builtin};
use crate::registry::metadata;

pub(crate) const FIRST: &str = "autoscaling/v1";
const SECOND: &str = "autoscaling/v2";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const MEASURED: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// What the server alone writes; two of them it only forgets.
pub(crate) const CARRIED: [&str; 6] = [
    METRICS,
    MEASURED,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// How busy processors should be where nobody says anything.
const USUAL_PERCENT: i64 = 80;

/// Brings an autoscaler into the form in which the server would show it again.
pub(crate) fn normalise(live: Option<&Value>, object: &mut Value) {
    if object["apiVersion"] == FIRST {
        let measures = object.pointer("/metadata/annotations").and_then(|all| all.get(MEASURED));
        let same_status = live.is_some_and(|live| live.get("status") == object.get("status"));
        let says_nothing = measures.is_none() && same_status;
        to_second(object);
        to_first(object);
        if says_nothing {
            // The status is the server's own: it comes back with it.
            forget(MEASURED, object);
        }
    } else {
        take_annotations(object);
    }
}

/// Takes what belongs to the status from the live object.
pub(crate) fn keep_status(live: &Value, object: &mut Value) {
    keep_annotations(&[MEASURED, CONDITIONS], live, object);
}

/// Takes what belongs to the spec from the live object.
pub(crate) fn keep_spec(live: &Value, object: &mut Value) {
    keep_annotations(&[METRICS, BEHAVIOR], live, object);
    // A percentage that nobody measured anything for says no more in the second version.
    let mut bare = object.clone();
    forget(MEASURED, &mut bare);
    let mut again = bare.clone();
    to_second(&mut again);
    to_first(&mut again);
    let measures = |object: &Value| {
        object.pointer("/metadata/annotations").and_then(|all| all.get(MEASURED)).cloned()
    };
    if object["apiVersion"] == FIRST && measures(&again) == measures(object) {
        *object = bare;
    }
}

fn forget(name: &str, object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let Some(annotations) = annotations else { return };
    annotations.shift_remove(name);
    if annotations.is_empty() {
        object["metadata"].as_object_mut().map(|metadata| metadata.shift_remove("annotations"));
    }
}

fn keep_annotations(names: &[&str], live: &Value, object: &mut Value) {
    if object["apiVersion"] != FIRST {
        return;
    }
    for name in names {
        let kept = live.pointer("/metadata/annotations").and_then(|all| all.get(*name)).cloned();
        let annotations = object.pointer_mut("/metadata/annotations");
        match (kept, annotations.and_then(Value::as_object_mut)) {
            (Some(kept), Some(annotations)) => {
                annotations.insert((*name).to_owned(), kept);
            }
            (Some(kept), None) => object["metadata"]["annotations"] = json!({*name: kept}),
            (None, Some(annotations)) => {
                annotations.shift_remove(*name);
            }
            (None, None) => {}
        }
    }
}

/// The object in the second version, whichever it is in.
pub(crate) fn in_second(object: &Value) -> Value {
    let mut object = object.clone();
    if object["apiVersion"] == FIRST {
        to_second(&mut object);
    }
    object
}

/// From the first version to the second.
pub(crate) fn to_second(object: &mut Value) {
    let carried = take_annotations(object);
    let read = |name: &str| serde_json::from_str::<Value>(carried.get(name)?.as_str()?).ok();
    object["apiVersion"] = SECOND.into();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let percent = spec.shift_remove("targetCPUUtilizationPercentage");
        let busy = |percent: Value| {
            json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": percent}}})
        };
        let others = read(METRICS).and_then(|list| metrics::targets_to_second(&list));
        let others = others.and_then(|list| typed("spec", "metrics", list));
        let mut all = others.and_then(|list| list.as_array().cloned()).unwrap_or_default();
        all.extend(percent.map(busy));
        if all.is_empty() {
            all.push(busy(USUAL_PERCENT.into()));
        }
        spec.insert("metrics".to_owned(), all.into());
        let behavior = read(BEHAVIOR).map(|behavior| metrics::behavior_to_second(&behavior));
        let behavior = behavior.and_then(|behavior| typed("spec", "behavior", behavior));
        if let Some(behavior) = behavior.filter(|behavior| *behavior != json!({})) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let percent = status.shift_remove("currentCPUUtilizationPercentage");
        let busy = percent.map(|percent| {
            let current = json!({"averageUtilization": percent});
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": current}}])
        });
        let measured = read(MEASURED).and_then(|list| metrics::measures_to_second(&list));
        let measured = measured.and_then(|list| typed("status", "currentMetrics", list)).or(busy);
        status.insert("currentMetrics".to_owned(), measured.unwrap_or(Value::Null));
        let conditions = read(CONDITIONS).and_then(|list| typed("status", "conditions", list));
        if let Some(mut conditions) = conditions.filter(|list| *list != json!([])) {
            for condition in conditions.as_array_mut().into_iter().flatten() {
                let time = condition.get("lastTransitionTime").cloned();
                condition["lastTransitionTime"] = time.unwrap_or_default();
            }
            status.insert("conditions".to_owned(), conditions);
        }
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.shift_remove("currentReplicas");
        }
    }
}

/// From the second version to the first.
pub(crate) fn to_first(object: &mut Value) {
    take_annotations(object);
    object["apiVersion"] = FIRST.into();
    let mut carried: Vec<(&str, Value)> = Vec::new();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let all = spec.shift_remove("metrics").unwrap_or_default();
        let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
        let percent = |metric: &Value| {
            let is_cpu = metric["type"] == "Resource"
                && metric.pointer("/resource/name").is_some_and(|name| name == "cpu");
            let place = "/resource/target/averageUtilization";
            metric.pointer(place).filter(|_| is_cpu).cloned()
        };
        if let Some(percent) = all.iter().find_map(percent) {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
        let others: Vec<&Value> = all.iter().filter(|metric| percent(metric).is_none()).collect();
        if !others.is_empty() {
            carried.push((METRICS, metrics::targets_to_first(&others)));
        }
        if let Some(behavior) = spec.shift_remove("behavior").filter(|given| !given.is_null()) {
            carried.push((BEHAVIOR, metrics::behavior_to_first(&behavior)));
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let all = status.shift_remove("currentMetrics").unwrap_or_default();
        let all: Vec<&Value> = all.as_array().into_iter().flatten().collect();
        let percent = |metric: &&Value| {
            let is_cpu = metric["type"] == "Resource"
                && metric.pointer("/resource/name").is_some_and(|name| name == "cpu");
            let place = "/resource/current/averageUtilization";
            metric.pointer(place).filter(|_| is_cpu).cloned()
        };
        if let Some(percent) = all.iter().filter_map(percent).next_back() {
            status.insert("currentCPUUtilizationPercentage".to_owned(), percent);
        }
        for always in ["currentReplicas", "desiredReplicas"] {
            status.entry(always).or_insert_with(|| json!(0));
        }
        if !all.is_empty() {
            carried.push((MEASURED, metrics::measures_to_first(&all)));
        }
        let conditions = status.shift_remove("conditions").unwrap_or_default();
        if let Some(conditions) = conditions.as_array().filter(|list| !list.is_empty()) {
            carried.push((CONDITIONS, conditions.iter().map(metrics::condition).collect()));
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for (name, value) in carried {
            metadata.entry("annotations").or_insert_with(|| json!({}))[name] =
                go::json(&value).into();
        }
    }
}

/// Takes away what only the server writes into annotations.
fn take_annotations(object: &mut Value) -> Map<String, Value> {
    object
        .get_mut("metadata")
        .map(|it| metadata::take_annotations(it, &CARRIED))
        .unwrap_or_default()
}

/// A field of the second version as a typed reader has it; what it cannot read counts as nothing.
fn typed(part: &str, field: &str, value: Value) -> Option<Value> {
    let is_second = |kind: &&std::sync::Arc<Kind>| {
        kind.api_version() == SECOND && kind.kind == "HorizontalPodAutoscaler"
    };
    let kind = builtin().iter().find(is_second)?;
    let mut object = json!({});
    object[part] = json!({});
    object[part][field] = value;
    decode::typed(kind, &mut object).ok()?;
    object[part].get(field).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{to_first, to_second};

    #[test]
    fn nothing_is_lost_on_the_way_to_the_first_version_and_back() {
        let object = json!({"apiVersion": "autoscaling/v2", "metadata": {"name": "a"}, "spec": {
            "maxReplicas": 3,
            "metrics": [
                {"type": "Pods", "pods": {"metric": {"name": "p", "selector": {"matchLabels":
                    {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"},
                    "metric": {"name": "o"}, "target": {"type": "Value", "value": "2k"}}},
                {"type": "External", "external": {"metric": {"name": "e"},
                    "target": {"type": "AverageValue", "averageValue": "500m"}}},
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 50}}},
            ],
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 3, "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}},
        }, "status": {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu",
                "current": {"averageUtilization": 40, "averageValue": "10m"}}},
        ], "conditions": [{"type": "AbleToScale", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "r", "message": "<m>"}]}});
        let mut other = object.clone();
        to_first(&mut other);
        assert_eq!(other["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        assert_eq!(other["status"]["currentCPUUtilizationPercentage"], 40);
        to_second(&mut other);
        assert_eq!(other, object);
    }

    #[test]
    fn what_annotations_say_wrongly_is_not_heard() {
        let mut object = json!({"apiVersion": "autoscaling/v1", "metadata": {"annotations": {
            "autoscaling.alpha.kubernetes.io/metrics": "[{\"type\": 3}]",
            "autoscaling.alpha.kubernetes.io/behavior": "no JSON",
            "mine": "x",
        }}, "spec": {"maxReplicas": 3}});
        to_second(&mut object);
        assert_eq!(object["metadata"], json!({"annotations": {"mine": "x"}}));
        assert_eq!(object["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
        assert_eq!(object["spec"].get("behavior"), None);
    }
}
