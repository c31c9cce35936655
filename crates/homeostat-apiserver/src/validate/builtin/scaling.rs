//! Autoscalers, disruption budgets, priorities and leases: numbers that must fit each other.

use serde_json::Value;

use super::report::{Report, at, text};

pub(super) fn autoscaler(value: &Value, _: Option<&Value>, report: &mut Report) {
    let (least, most) =
        (at(value, "/spec/minReplicas").as_i64(), at(value, "/spec/maxReplicas").as_i64());
    if let Some(least) = least.filter(|least| *least < 1) {
        report.invalid("spec.minReplicas", least, "must be greater than or equal to 1");
    }
    let most = most.unwrap_or_default();
    if most < 1 {
        report.required("spec.maxReplicas", "must be set and greater than 0");
    } else if least.is_some_and(|least| most < least) {
        report.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
    }
    for field in ["kind", "name"] {
        if text(value, &format!("/spec/scaleTargetRef/{field}")).is_empty() {
            report.required(format!("spec.scaleTargetRef.{field}"), "");
        }
    }
}

pub(super) fn disruption_budget(value: &Value, _: Option<&Value>, report: &mut Report) {
    let spec = at(value, "/spec");
    if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        report.invalid("spec", spec.clone(), detail);
    }
    report.not_negative(value, "/spec/minAvailable");
    report.not_negative(value, "/spec/maxUnavailable");
    if let Some(selector) = spec.get("selector") {
        super::workload::selector(selector, "spec.selector", report);
    }
}

pub(super) fn priority_class(value: &Value, old: Option<&Value>, report: &mut Report) {
    let (name, priority) =
        (text(value, "/metadata/name"), at(value, "/value").as_i64().unwrap_or_default());
    let is_system = matches!(name, "system-node-critical" | "system-cluster-critical");
    if name.starts_with("system-") && !is_system {
        let detail = "priority class names with 'system-' prefix are reserved for system use only. \
                      error: only the following system priority classes are allowed";
        report.forbidden("metadata.name", detail);
    }
    if priority > 1_000_000_000 && !is_system {
        let detail = "maximum allowed value of a user defined priority is 1000000000";
        report.forbidden("value", detail);
    }
    if old.is_some_and(|old| at(old, "/value") != at(value, "/value")) {
        report.forbidden("value", "may not be changed in an update.");
    }
    report.immutable(value, old, "/preemptionPolicy");
}

pub(super) fn lease(value: &Value, _: Option<&Value>, report: &mut Report) {
    if let Some(seconds) = at(value, "/spec/leaseDurationSeconds").as_i64().filter(|s| *s <= 0) {
        report.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    if let Some(count) = at(value, "/spec/leaseTransitions").as_i64().filter(|n| *n < 0) {
        report.invalid("spec.leaseTransitions", count, "must be greater than or equal to 0");
    }
}
