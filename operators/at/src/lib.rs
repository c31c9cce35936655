//! At: runs a command once, at a given time.
//!
//! An `At` waits as `PENDING` until its schedule, then makes one Pod `<name>-pod` that runs the
//! command in a shell, follows it as `RUNNING`, and ends as `DONE`. The command never runs twice:
//! the Pod is made behind a scheduling gate that opens only after its uid is in the status, so
//! whatever goes wrong before has run nothing, and a Pod that is missing after is reported, not
//! made again.

mod reconcile;

use homeostat::Controller;
use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use reconcile::reconcile;

/// The name in logs, events, labels and field ownership.
pub const OPERATOR: &str = "at-operator";

/// What the API takes for a schedule: a date, a time of day, and how far that is from UTC.
const IS_A_TIME: &str = "self.matches('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt ]\
([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$')";

/// How to write it.
const WRITTEN_SO: &str = "write a time as in 2026-11-15T10:00:00Z, or with an offset from UTC as in \
                          2026-11-15T11:00:00+01:00";

/// What to run, and when.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cnat.programming-kubernetes.info",
    version = "v1alpha1",
    kind = "At",
    plural = "ats",
    singular = "at",
    namespaced,
    status = "AtStatus",
    doc = "Runs a command once, at a given time.",
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name is also a label of the Pod: give it at most 63 characters"),
    printcolumn = r#"{"name":"Schedule","type":"string","jsonPath":".spec.schedule"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Degraded","type":"string","jsonPath":".status.conditions[?(@.type==\"Degraded\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AtSpec {
    /// When to run, as RFC 3339: `2026-11-15T10:00:00Z`, or with an offset. A time in the past runs at once.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": IS_A_TIME, "message": WRITTEN_SO}]))]
    #[schemars(length(max = 64))]
    pub schedule: String,
    /// The shell command to run.
    #[schemars(length(min = 1))]
    pub command: String,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AtStatus {
    /// `PENDING`, `RUNNING` or `DONE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The uid of the one Pod that may run the command; no other ever will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// `Ready`, and `Degraded` when it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The generation this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The three stages of an `At`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Phase {
    /// Its time has not come.
    Pending,
    /// Its Pod is there: the command runs or is about to.
    Running,
    /// The command has ended, well or not.
    Done,
}

/// A schedule that is not a time.
#[derive(Debug, thiserror::Error)]
#[error("schedule {schedule:?} is not a time: {WRITTEN_SO}")]
pub struct BadSchedule {
    schedule: String,
}

impl AtSpec {
    /// The time to run at.
    ///
    /// # Errors
    /// When the schedule is not RFC 3339.
    pub fn due(&self) -> Result<Timestamp, BadSchedule> {
        // The parser's words are none for people.
        let parsed = self.schedule.trim().parse();
        parsed.map_err(|_| BadSchedule { schedule: self.schedule.clone() })
    }
}

/// The controller, ready to be given to a manager.
#[must_use]
pub fn controller() -> Controller<At> {
    Controller::new(reconcile).named(OPERATOR).owns::<Pod>()
}
