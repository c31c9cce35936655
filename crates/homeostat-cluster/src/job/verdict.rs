//! When a Job has succeeded or failed, and the conditions that say so. Pure.

use std::time::Duration;

use homeostat::EventType;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::count::Tally;
use super::indexed::is_indexed;
use super::observed::Observed;
use super::policy::{self, Ruling};
use crate::pod;

/// What a Job is about to end as, while its last Pods still stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Success,
    Failure,
}

/// Why, in a word and in a sentence.
type Reason = (&'static str, String);

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

/// What the status says already.
pub(super) fn known(status: &JobStatus) -> Option<Ending> {
    if has(status, "SuccessCriteriaMet") || has(status, "Complete") {
        Some(Ending::Success)
    } else if has(status, "FailureTarget") || has(status, "Failed") {
        Some(Ending::Failure)
    } else {
        None
    }
}

/// Decides whether it is over before the completions are reached, and writes that down.
pub(super) fn decide(
    status: &mut JobStatus,
    observed: &Observed<'_, '_>,
    tally: &Tally,
    now: Timestamp,
) -> Option<Ending> {
    if let Some((reason, message)) = failure(observed, tally, status, now) {
        set(status, "FailureTarget", reason, &message, now);
        return Some(Ending::Failure);
    }
    let policy = observed.spec.success_policy.as_ref().filter(|_| is_indexed(observed.spec));
    let message = policy::is_enough(policy, &tally.completed, observed.completions())?;
    set(status, "SuccessCriteriaMet", "SuccessPolicy", &message, now);
    Some(Ending::Success)
}

/// Why the Job cannot succeed any more.
fn failure(
    observed: &Observed<'_, '_>,
    tally: &Tally,
    status: &JobStatus,
    now: Timestamp,
) -> Option<Reason> {
    let spec = observed.spec;
    let failed = observed.pods.iter().filter(|pod| observed.has_failed(pod));
    let fatal = failed.map(|pod| observed.ruling(pod)).find_map(|ruling| match ruling {
        Ruling::FailJob(message) => Some(("PodFailurePolicy", message)),
        _ => None,
    });
    let because = |reason, message: &str| Some((reason, message.to_owned()));
    if fatal.is_some() {
        return fatal;
    }
    if tally.failed > spec.backoff_limit.unwrap_or(6) || has_restarted_too_often(observed) {
        return because("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if deadline(spec, status).is_some_and(|at| at <= now) {
        return because("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    let failed = tally.failed_indexes.as_ref()?.total();
    if spec.max_failed_indexes.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return because("MaxFailedIndexesExceeded", message);
    }
    if failed > 0 && failed.saturating_add(tally.completed.total()) >= observed.completions() {
        return because("FailedIndexes", "Job has failed indexes");
    }
    None
}

/// Where containers are restarted in their Pods, restarts are failures.
fn has_restarted_too_often(observed: &Observed<'_, '_>) -> bool {
    let template = observed.spec.template.spec.as_ref();
    if template.and_then(|s| s.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let unfinished = observed.pods.iter().filter(|pod| !pod::is_terminal(pod));
    let restarts: i32 = unfinished.map(|pod| pod::restarts(pod)).sum();
    restarts > 0 && restarts >= observed.spec.backoff_limit.unwrap_or(6)
}

/// When it has been active for too long.
pub(super) fn deadline(spec: &JobSpec, status: &JobStatus) -> Option<Timestamp> {
    let seconds = u64::try_from(spec.active_deadline_seconds?).unwrap_or(0);
    if spec.suspend == Some(true) {
        return None;
    }
    status.start_time.as_ref()?.0.checked_add(Duration::from_secs(seconds)).ok()
}

/// Notes that enough has succeeded and nothing runs any more; says whether it is so.
pub(super) fn complete(
    status: &mut JobStatus,
    spec: &JobSpec,
    tally: &Tally,
    active: i32,
    now: Timestamp,
) -> bool {
    // Without a number of completions one success is enough, once the others have ended.
    let is_enough = tally.succeeded >= spec.completions.unwrap_or(1);
    if !is_enough || active > 0 {
        return false;
    }
    let message = "Reached expected number of succeeded pods";
    set(status, "SuccessCriteriaMet", "CompletionsReached", message, now);
    true
}

/// An event to record.
pub(super) type Event = (EventType, String, String);

/// Turns the decision into the final condition once nothing runs and everything is counted.
pub(super) fn finish(status: &mut JobStatus, now: Timestamp) -> Option<Event> {
    let find = |kind: &str| {
        let found =
            status.conditions.iter().flatten().find(|c| c.type_ == kind && c.status == "True")?;
        Some((found.reason.clone().unwrap_or_default(), found.message.clone().unwrap_or_default()))
    };
    if let Some((reason, message)) = find("SuccessCriteriaMet") {
        set(status, "Complete", &reason, &message, now);
        status.completion_time = Some(Time(now));
        return Some((EventType::Normal, "Completed".into(), "Job completed".into()));
    }
    let (reason, message) = find("FailureTarget")?;
    set(status, "Failed", &reason, &message, now);
    Some((EventType::Warning, reason, message))
}

/// Keeps `Suspended` true to the spec. A Job that goes on starts anew, also its deadline.
pub(super) fn suspend(status: &mut JobStatus, spec: &JobSpec, now: Timestamp) -> Option<Event> {
    let (reason, message) = match (spec.suspend == Some(true), has(status, "Suspended")) {
        (true, false) => {
            status.start_time = None;
            set(status, "Suspended", "JobSuspended", "Job suspended", now);
            ("Suspended", "Job suspended")
        }
        (false, true) => {
            status.start_time = Some(Time(now));
            put(status, "Suspended", "False", "JobResumed", "Job resumed", now);
            ("Resumed", "Job resumed")
        }
        _ => return None,
    };
    Some((EventType::Normal, reason.to_owned(), message.to_owned()))
}

/// Whether the condition of that type is there and true.
pub(super) fn has(status: &JobStatus, kind: &str) -> bool {
    status.conditions.iter().flatten().any(|c| c.type_ == kind && c.status == "True")
}

/// Makes the condition of that type true.
fn set(status: &mut JobStatus, kind: &str, reason: &str, message: &str, now: Timestamp) {
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
    let condition = JobCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|c| c.type_ == kind) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}
