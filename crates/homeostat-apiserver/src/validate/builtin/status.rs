//! The counts in the status of workloads: none below zero, no part above the whole.

use serde_json::Value;

use super::report::{Report, at};

/// Checks `status` of a workload: `counts` are parts of `status.replicas`, `others` only counts.
pub(super) fn counts(value: &Value, counts: &[&str], others: &[&str], report: &mut Report) {
    let number = |field: &str| at(value, &format!("/status/{field}")).as_i64().unwrap_or_default();
    if value.get("status").is_none() {
        return;
    }
    let replicas = number("replicas");
    for field in ["replicas", "observedGeneration"].iter().chain(counts).chain(others) {
        if number(field) < 0 {
            let detail = "must be greater than or equal to 0";
            report.invalid(format!("status.{field}"), number(field), detail);
        }
    }
    for field in counts.iter().filter(|field| number(field) > replicas) {
        let detail = "cannot be greater than status.replicas";
        report.invalid(format!("status.{field}"), number(field), detail);
    }
    if counts.contains(&"availableReplicas")
        && number("availableReplicas") > number("readyReplicas")
    {
        let whole = if counts.contains(&"currentReplicas") {
            "status.readyReplicas"
        } else {
            "readyReplicas"
        };
        let detail = format!("cannot be greater than {whole}");
        report.invalid("status.availableReplicas", number("availableReplicas"), detail);
    }
}

/// Numbers in `status` that are not below zero.
pub(super) fn not_negative(value: &Value, fields: &[&str], report: &mut Report) {
    for field in fields {
        report.not_negative(value, &format!("/status/{field}"));
    }
}
