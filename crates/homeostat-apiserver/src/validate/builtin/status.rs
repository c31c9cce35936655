//! The counts in the status of workloads: none below zero, no part above the whole.

use serde_json::Value;

use super::report::{Report, at};

/// What the status of a workload counts.
struct Counts {
    resource: &'static str,
    /// Parts of `status.replicas`.
    parts: &'static [&'static str],
    /// What is only counted, besides the whole and the generation.
    others: &'static [&'static str],
    /// What is said when more Pods are available than ready.
    unready: &'static str,
    /// Whether names that were taken are counted; their number never goes down.
    collisions: bool,
}

const UNREADY: &str = "cannot be greater than readyReplicas";
const REPLICAS: &[&str] = &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

const COUNTS: &[Counts] = &[
    Counts {
        resource: "deployments.apps",
        parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
        others: &["unavailableReplicas", "terminatingReplicas"],
        unready: UNREADY,
        collisions: true,
    },
    Counts {
        resource: "replicasets.apps",
        parts: REPLICAS,
        others: &["terminatingReplicas"],
        unready: UNREADY,
        collisions: false,
    },
    Counts {
        resource: "replicationcontrollers",
        parts: REPLICAS,
        others: &[],
        unready: UNREADY,
        collisions: false,
    },
    Counts {
        resource: "statefulsets.apps",
        parts: &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        others: &[],
        unready: "cannot be greater than status.readyReplicas",
        collisions: true,
    },
    Counts {
        resource: "daemonsets.apps",
        parts: &[],
        others: &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
        ],
        unready: UNREADY,
        collisions: true,
    },
];

/// Checks the status of a workload.
pub(super) fn counts(resource: &str, value: &Value, old: &Value, report: &mut Report) {
    let Some(row) = COUNTS.iter().find(|row| row.resource == resource) else { return };
    let number = |field: &str| at(value, &format!("/status/{field}")).as_i64().unwrap_or_default();
    not_negative(value, &["replicas", "observedGeneration"], report);
    not_negative(value, row.parts, report);
    not_negative(value, row.others, report);
    for field in row.parts.iter().filter(|field| number(field) > number("replicas")) {
        let detail = "cannot be greater than status.replicas";
        report.invalid(format!("status.{field}"), number(field), detail);
    }
    let available = number("availableReplicas");
    if available > number("readyReplicas") {
        report.invalid("status.availableReplicas", available, row.unready);
    }
    if row.collisions {
        collisions(value, old, report);
    }
}

fn collisions(value: &Value, old: &Value, report: &mut Report) {
    not_negative(value, &["collisionCount"], report);
    let count = |value| at(value, "/status/collisionCount").as_i64();
    let (now, before) = (count(value), count(old));
    if before.is_some_and(|before| now.is_none_or(|now| now < before)) {
        let now = now.unwrap_or_default();
        report.invalid("status.collisionCount", now, "cannot be decremented");
    }
}

/// Numbers in `status` that are not below zero.
pub(super) fn not_negative(value: &Value, fields: &[&str], report: &mut Report) {
    for field in fields {
        report.not_negative(value, &format!("/status/{field}"));
    }
}
