//! Disruption budgets, priorities and leases: numbers that must fit each other.

use serde_json::{Value, json};

use super::report::{Report, at, text};

pub(super) fn disruption_budget(value: &Value, _: Option<&Value>, report: &mut Report) {
    let spec = at(value, "/spec");
    if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        // Shown under the names that kube-apiserver has for the fields itself.
        let shown = json!({
            "MinAvailable": at(spec, "/minAvailable"),
            "Selector": at(spec, "/selector"),
            "MaxUnavailable": at(spec, "/maxUnavailable"),
            "UnhealthyPodEvictionPolicy": at(spec, "/unhealthyPodEvictionPolicy"),
        });
        report.invalid("spec", shown, detail);
    }
    for field in ["minAvailable", "maxUnavailable"] {
        count_or_percent(value, field, report);
    }
    let policy = at(spec, "/unhealthyPodEvictionPolicy");
    if !matches!(policy.as_str(), None | Some("AlwaysAllow" | "IfHealthyBudget")) {
        let allowed = ["AlwaysAllow", "IfHealthyBudget"];
        report.unsupported("spec.unhealthyPodEvictionPolicy", policy, &allowed);
    }
    if let Some(selector) = spec.get("selector") {
        super::workload::selector(selector, "spec.selector", report);
    }
}

fn count_or_percent(value: &Value, field: &str, report: &mut Report) {
    let pointer = format!("/spec/{field}");
    report.not_negative(value, &pointer);
    let Some(text) = value.pointer(&pointer).and_then(Value::as_str) else { return };
    let path = format!("spec.{field}");
    let digits = text.strip_suffix('%').filter(|digits| {
        !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_digit())
    });
    match digits.map(|digits| digits.parse::<u64>().unwrap_or(u64::MAX)) {
        None => report.invalid(
            path,
            text,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  \
             or '93%', regex used for validation is '[0-9]+%')",
        ),
        Some(101..) => report.invalid(path, text, "must not be greater than 100%"),
        Some(_) => {}
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
    let policy = at(value, "/preemptionPolicy");
    if let Some(policy) = policy.as_str().filter(|_| old.is_none()) {
        report.one_of("preemptionPolicy", policy, &["PreemptLowerPriority", "Never"]);
    }
    if priority > 1_000_000_000 && !is_system && old.is_none() {
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
