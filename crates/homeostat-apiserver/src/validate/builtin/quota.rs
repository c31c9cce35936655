//! ResourceQuotas: what they may limit, in what amounts, and for which objects.

use serde_json::Value;

use super::report::{Report, at, list, text};
use super::resources;
use crate::go::internal;

/// Scopes that no quota can have together.
const OPPOSITES: &[[&str; 2]] =
    &[["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

/// Scopes that a Pod is in or not, whatever a value says.
const WITHOUT_VALUES: &[&str] =
    &["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];

/// What a quota counts of Pods, besides the Pods themselves.
const OF_PODS: &[&str] =
    &["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

pub(super) fn resource_quota(value: &Value, old: Option<&Value>, report: &mut Report) {
    for pointer in ["/spec/hard", "/status/hard", "/status/used"] {
        let path = pointer.trim_start_matches('/').replace('/', ".");
        for (name, amount) in at(value, pointer).as_object().into_iter().flatten() {
            resources::quota(name, amount, &format!("{path}[{name}]"), report);
        }
    }
    scopes(value, report);
    selector(value, report);
    let before = |quota: &Value| {
        let mut scopes: Vec<String> =
            names(quota, "/spec/scopes").into_iter().map(str::to_owned).collect();
        scopes.sort();
        scopes.dedup();
        scopes
    };
    if old.is_some_and(|old| before(old) != before(value)) {
        report.invalid("spec.scopes", at(value, "/spec/scopes").clone(), "field is immutable");
    }
}

fn names<'a>(value: &'a Value, pointer: &str) -> Vec<&'a str> {
    list(value, pointer).iter().filter_map(Value::as_str).collect()
}

/// What is limited and known to quotas, in order.
fn limited(value: &Value) -> Vec<&str> {
    let hard = at(value, "/spec/hard").as_object().into_iter().flatten();
    let mut names: Vec<&str> =
        hard.map(|(name, _)| name.as_str()).filter(|name| resources::is_of_quotas(name)).collect();
    names.sort_unstable();
    names
}

fn is_scope(scope: &str) -> bool {
    WITHOUT_VALUES.contains(&scope) || matches!(scope, "PriorityClass" | "VolumeAttributesClass")
}

/// Whether a quota of the scope can limit the resource.
fn reaches(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        scope if is_scope(scope) => resource == "pods" || OF_PODS.contains(&resource),
        _ => true,
    }
}

fn scopes(value: &Value, report: &mut Report) {
    let path = "spec.scopes";
    let given = names(value, "/spec/scopes");
    for scope in &given {
        if !is_scope(scope) {
            report.invalid(path, given.clone(), "unsupported scope");
        }
        for _ in limited(value).iter().filter(|resource| !reaches(scope, resource)) {
            report.invalid(path, given.clone(), "unsupported scope applied to resource");
        }
    }
    for _ in OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| given.contains(scope))) {
        report.invalid(path, given.clone(), "conflicting scopes");
    }
}

fn selector(value: &Value, report: &mut Report) {
    let path = "spec.scopeSelector.matchExpressions";
    let rules = list(value, "/spec/scopeSelector/matchExpressions");
    for rule in rules {
        let (scope, operator) = (text(rule, "/scopeName"), text(rule, "/operator"));
        if !is_scope(scope) {
            report.invalid(format!("{path}.scopeName"), scope, "unsupported scope");
        }
        for _ in limited(value).iter().filter(|resource| !reaches(scope, resource)) {
            let shown = internal::form(
                "io.k8s.api.core.v1.ScopeSelector",
                at(value, "/spec/scopeSelector"),
            );
            report.invalid(path, shown, "unsupported scope applied to resource");
        }
        if WITHOUT_VALUES.contains(&scope) && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or \
                          ResourceQuotaScopeCrossNamespacePodAffinity";
            report.invalid(format!("{path}.operator"), operator, detail);
        }
        let values = list(rule, "/values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for \
                              scope selector";
                report.required(format!("{path}.values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for \
                              scope selector";
                report.invalid(format!("{path}.values"), values.to_vec(), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let detail = "not a valid selector operator";
                report.invalid(format!("{path}.operator"), other, detail);
            }
        }
    }
    let given: Vec<&str> = rules.iter().map(|rule| text(rule, "/scopeName")).collect();
    for _ in OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| given.contains(scope))) {
        report.invalid(path, at(value, "/spec/scopes").clone(), "conflicting scopes");
    }
}
