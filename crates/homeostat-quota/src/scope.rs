//! Scopes of a quota: which objects it counts at all.

use serde_json::Value;

use crate::{is_best_effort, is_terminating};

/// Whether the quota counts the object, an object of the resource `pods` or
/// `persistentvolumeclaims`. No other resource is in any scope.
#[must_use]
pub fn matches_scopes(quota: &Value, resource: &str, object: &Value) -> bool {
    let list =
        |pointer: &str| quota.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    list("/spec/scopes")
        .filter_map(Value::as_str)
        .all(|scope| in_scope(resource, scope, "Exists", &[], object))
        && list("/spec/scopeSelector/matchExpressions").all(|expression| {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or("");
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values: Vec<&str> = values.filter_map(Value::as_str).collect();
            in_scope(resource, text("scopeName"), text("operator"), &values, object)
        })
}

fn in_scope(resource: &str, scope: &str, operator: &str, values: &[&str], object: &Value) -> bool {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    match (resource, scope) {
        ("pods", "Terminating") => is_terminating(object),
        ("pods", "NotTerminating") => !is_terminating(object),
        ("pods", "BestEffort") => is_best_effort(object),
        ("pods", "NotBestEffort") => !is_best_effort(object),
        ("pods", "PriorityClass") => {
            let class = text("/spec/priorityClassName");
            named(operator, values, &[class])
        }
        ("pods", "CrossNamespacePodAffinity") => crosses_namespaces(object),
        ("persistentvolumeclaims", "VolumeAttributesClass") => {
            let names = [
                text("/spec/volumeAttributesClassName"),
                text("/status/currentVolumeAttributesClassName"),
                text("/status/modifyVolumeStatus/targetVolumeAttributesClassName"),
            ];
            named(operator, values, &names)
        }
        _ => false,
    }
}

/// Whether one of the names (empty ones are none) passes the selector.
fn named(operator: &str, values: &[&str], names: &[&str]) -> bool {
    let names: Vec<&str> = names.iter().filter(|name| !name.is_empty()).copied().collect();
    match operator {
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        "In" => names.iter().any(|name| values.contains(name)),
        "NotIn" => !names.iter().any(|name| values.contains(name)),
        _ => false,
    }
}

fn crosses_namespaces(pod: &Value) -> bool {
    let crosses = |term: &Value| {
        term.get("namespaces").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
            || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|side| {
        let terms = |which: &str| {
            let pointer = format!("/spec/affinity/{side}/{which}");
            pod.pointer(&pointer).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        terms("requiredDuringSchedulingIgnoredDuringExecution").iter().any(crosses)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|term| term.get("podAffinityTerm").is_some_and(crosses))
    })
}
