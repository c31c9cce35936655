//! When a Job has succeeded or failed, and the conditions that say so. Pure.

use std::time::Duration;

use homeostat::EventType;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::count::Counted;
use crate::pod;

/// When a finished Job is to be deleted; `None` while it is not finished. Without a time to live
/// a finished Job is never touched again.
pub(super) fn expiry(job: &Job) -> Option<Timestamp> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let finished = conditions
        .iter()
        .find(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True")?;
    let still_counting = job.status.as_ref()?.uncounted_terminated_pods.as_ref();
    if still_counting.is_some_and(|u| u.succeeded.is_some() || u.failed.is_some()) {
        return None;
    }
    let Some(seconds) = job.spec.as_ref()?.ttl_seconds_after_finished else {
        return Some(Timestamp::MAX);
    };
    let since = finished.last_transition_time.as_ref()?.0;
    since.checked_add(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))).ok()
}

/// Turns the decision into the final condition once nothing runs and everything is counted.
pub(super) fn finish(
    status: &mut JobStatus,
    now: Timestamp,
) -> Option<(EventType, String, String)> {
    let target = status.conditions.iter().flatten().find(|c| c.type_ == "FailureTarget").cloned();
    if let Some(target) = target {
        let (reason, message) =
            (target.reason.unwrap_or_default(), target.message.unwrap_or_default());
        set(status, "Failed", &reason, &message, now);
        return Some((EventType::Warning, reason, message));
    }
    if has(status, "SuccessCriteriaMet") {
        let message = "Reached expected number of succeeded pods";
        set(status, "Complete", "CompletionsReached", message, now);
        status.completion_time = Some(Time(now));
        return Some((EventType::Normal, "Completed".into(), "Job completed".into()));
    }
    None
}

/// Why the Job cannot succeed any more.
pub(super) fn failure(
    spec: &JobSpec,
    status: &JobStatus,
    counted: &Counted<'_>,
    active: &[&Pod],
    now: Timestamp,
) -> Option<(&'static str, &'static str)> {
    let limit = spec.backoff_limit.unwrap_or(6);
    let on_failure =
        spec.template.spec.as_ref().and_then(|s| s.restart_policy.as_deref()) == Some("OnFailure");
    let restarts: i32 = active.iter().map(|pod| pod::restarts(pod)).sum();
    let restarted_too_often =
        on_failure && restarts > 0 && (restarts > limit || (limit > 0 && restarts >= limit));
    if counted.all_failed() > limit || restarted_too_often {
        return Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    if deadline(spec, status).is_some_and(|at| at <= now) {
        return Some(("DeadlineExceeded", "Job was active longer than specified deadline"));
    }
    None
}

/// When it has been active for too long.
pub(super) fn deadline(spec: &JobSpec, status: &JobStatus) -> Option<Timestamp> {
    let seconds = u64::try_from(spec.active_deadline_seconds?).unwrap_or(0);
    if spec.suspend == Some(true) {
        return None;
    }
    status.start_time.as_ref()?.0.checked_add(Duration::from_secs(seconds)).ok()
}

/// Whether enough has succeeded.
pub(super) fn is_successful(spec: &JobSpec, counted: &Counted<'_>, active: &[&Pod]) -> bool {
    match spec.completions {
        Some(completions) => counted.all_succeeded() >= completions,
        None => counted.all_succeeded() > 0 && active.is_empty(),
    }
}

/// Keeps `Suspended` true to the spec.
pub(super) fn suspend(status: &mut JobStatus, spec: &JobSpec, now: Timestamp) {
    let known =
        status.conditions.iter().flatten().any(|c| c.type_ == "Suspended" && c.status == "True");
    if spec.suspend == Some(true) && !known {
        status.start_time = None;
        set(status, "Suspended", "JobSuspended", "Job suspended", now);
    } else if spec.suspend != Some(true) && known {
        put(status, "Suspended", "False", "JobResumed", "Job resumed", now);
    }
}

/// Whether the condition of that type is there and true.
pub(super) fn has(status: &JobStatus, kind: &str) -> bool {
    status.conditions.iter().flatten().any(|c| c.type_ == kind && c.status == "True")
}

/// Makes the condition of that type true.
pub(super) fn set(status: &mut JobStatus, kind: &str, reason: &str, message: &str, now: Timestamp) {
    put(status, kind, "True", reason, message, now);
}

fn put(
    status: &mut JobStatus,
    kind: &str,
    value: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|c| c.type_ != kind);
    conditions.push(JobCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    });
}
