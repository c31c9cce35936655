//! Disruption budgets, priorities and leases: numbers that must fit each other.

use serde_json::Value;

use super::report::{Report, at, text};
use crate::go::internal;

pub(super) fn disruption_budget(value: &Value, _: Option<&Value>, report: &mut Report) {
    let spec = at(value, "/spec");
    if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let shown = internal::form("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", spec);
        report.invalid("spec", shown, detail);
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if let Some(amount) = spec.get(field) {
            count_or_share(amount, &format!("spec.{field}"), Some(100), report);
        }
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

/// A number that is not negative, or a share of all, up to the most percent if there is a most.
pub(super) fn count_or_share(amount: &Value, path: &str, most: Option<u64>, report: &mut Report) {
    if let Some(number) = amount.as_i64().filter(|number| *number < 0) {
        report.invalid(path, number, "must be greater than or equal to 0");
    }
    let Some(text) = amount.as_str() else { return };
    match percent(text) {
        None => report.invalid(
            path,
            text,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  \
             or '93%', regex used for validation is '[0-9]+%')",
        ),
        Some(share) if most.is_some_and(|most| share > most) => {
            report.invalid(path, text, "must not be greater than 100%");
        }
        Some(_) => {}
    }
}

/// The number before the sign.
fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    let plain = !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_digit());
    plain.then(|| digits.parse::<u64>().unwrap_or(u64::MAX))
}

/// Whether a number or share comes to nothing; what is neither does.
pub(super) fn is_nothing(amount: &Value) -> bool {
    match amount.as_str() {
        Some(text) => percent(text).or_else(|| text.parse().ok()).unwrap_or_default() == 0,
        None => amount.as_i64().unwrap_or_default() == 0,
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
