//! What the status of a Job may say: counts that only rise, indexes that there are, and an end that is
//! announced, told once and never taken back.
//!
//! What was wrong before and did not change is not held against anybody, with a few exceptions.

use serde_json::Value;

use super::job_indexes;
use super::report::{Report, at, list, text};
use super::status;
use crate::field::{FieldError, Reason};
use crate::go::internal;

const CONDITIONS: &str = "status.conditions";

/// Two conditions of which the first may not hold if the second one does, or does not (`false`), with
/// what is said about that.
const TOGETHER: &[(&str, &str, bool, &str)] = &[
    ("Complete", "Failed", true, "cannot set Complete=True and Failed=true conditions"),
    (
        "Complete",
        "FailureTarget",
        true,
        "cannot set Complete=True and FailureTarget=true conditions",
    ),
    (
        "Failed",
        "FailureTarget",
        false,
        "cannot set Failed=True condition without the FailureTarget=true condition",
    ),
    (
        "Complete",
        "SuccessCriteriaMet",
        false,
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    ),
];

/// The same, also where nothing changed.
const NEVER_TOGETHER: &[(&str, &str, &str)] = &[
    (
        "SuccessCriteriaMet",
        "Failed",
        "cannot set SuccessCriteriaMet=True and Failed=true conditions",
    ),
    (
        "SuccessCriteriaMet",
        "FailureTarget",
        "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
    ),
];

/// Conditions that stay true.
const LASTING: &[&str] = &["Failed", "Complete", "FailureTarget"];

pub(super) fn check(job: &Value, old: &Value, report: &mut Report) {
    status::not_negative(job, &["active", "succeeded", "failed", "ready", "terminating"], report);
    uncounted(job, report);
    conditions(job, old, report);
    times(job, old, report);
    end(job, old, report);
    indexes(job, old, report);
    counts(job, old, report);
}

/// Whether a condition of the Job is true.
fn is(job: &Value, ty: &str) -> bool {
    has(job, ty, "True")
}

fn has(job: &Value, ty: &str, state: &str) -> bool {
    list(job, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/type") == ty && text(condition, "/status") == state)
}

fn is_finished(job: &Value) -> bool {
    is(job, "Complete") || is(job, "Failed")
}

fn number(job: &Value, field: &str) -> i64 {
    at(job, &format!("/status/{field}")).as_i64().unwrap_or_default()
}

/// Whether a field of the status is another one now.
fn differs(job: &Value, old: &Value, field: &str) -> bool {
    let pointer = format!("/status/{field}");
    at(job, &pointer) != at(old, &pointer)
}

fn contradiction(why: impl Into<String>, report: &mut Report) {
    let (path, reason) = (CONDITIONS.to_owned(), Reason::Invalid);
    report.errors.push(FieldError { path, reason, value: None, detail: why.into() });
}

/// Pods that ended and are in no count yet: each once.
fn uncounted(job: &Value, report: &mut Report) {
    let mut seen: Vec<&Value> = Vec::new();
    for field in ["succeeded", "failed"] {
        let pods = list(job, &format!("/status/uncountedTerminatedPods/{field}"));
        for (index, pod) in pods.iter().enumerate() {
            let path = format!("status.uncountedTerminatedPods.{field}[{index}]");
            if pod == "" {
                report.invalid(path, "", "must not be empty");
            } else if seen.contains(&pod) {
                report.duplicate(path, pod.clone());
            } else {
                seen.push(pod);
            }
        }
    }
}

fn conditions(job: &Value, old: &Value, report: &mut Report) {
    let changed = |ty: &str| is(job, ty) != is(old, ty);
    for (first, second, together, why) in TOGETHER {
        let failed_indexes = *first == "Failed" && differs(job, old, "failedIndexes");
        // Of a failure its announcement may be missing as before.
        let is_new = changed(first) || (*first != "Failed" && changed(second)) || failed_indexes;
        if is_new && is(job, first) && is(job, second) == *together {
            contradiction(*why, report);
        }
    }
    for (first, second, why) in NEVER_TOGETHER {
        if is(job, first) && is(job, second) {
            contradiction(*why, report);
        }
    }
    let (met, complete) = (is(job, "SuccessCriteriaMet"), is(job, "Complete"));
    if at(job, "/spec/successPolicy").is_object() && !met && complete {
        let why =
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        contradiction(why, report);
    }
    for ty in LASTING {
        if is(old, ty) && !is(job, ty) {
            contradiction(format!("cannot disable the terminal {ty}=True condition"), report);
        }
    }
    let was_met = is(old, "SuccessCriteriaMet");
    if was_met && !met {
        contradiction("cannot disable the SuccessCriteriaMet=True condition", report);
    }
    if is(old, "Complete") && !was_met && met {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        contradiction(why, report);
    }
}

/// When it began, and when it was complete.
fn times(job: &Value, old: &Value, report: &mut Report) {
    let (started, done) = (at(job, "/status/startTime"), at(job, "/status/completionTime"));
    let (starts, ends) = (differs(job, old, "startTime"), differs(job, old, "completionTime"));
    let complete = is(job, "Complete");
    if ends || complete != is(old, "Complete") {
        if !done.is_null() && !complete {
            let why = "cannot set completionTime when there is no Complete=True condition";
            report.invalid("status.completionTime", done.clone(), why);
        }
        if done.is_null() && complete {
            let why = "completionTime is required for Complete jobs";
            report.required("status.completionTime", why);
        }
    }
    // Written in one way, times are in the order of their texts.
    if (starts || ends)
        && let (Some(first), Some(last)) = (started.as_str(), done.as_str())
        && last < first
    {
        let why = "must be equal to or after `startTime`";
        report.invalid("status.completionTime", last, why);
    }
    if ends && !done.is_null() && !at(old, "/status/completionTime").is_null() {
        report.invalid("status.completionTime", done.clone(), "field is immutable");
    }
    let goes_on = has(old, "Suspended", "True") && has(job, "Suspended", "False");
    let rests = at(job, "/spec/suspend") == &Value::Bool(true);
    if starts && !goes_on && !rests && !at(old, "/status/startTime").is_null() {
        let why = "field is immutable for unsuspended job once set";
        report.invalid("status.startTime", started.clone(), why);
    }
}

/// What a Job that ended has no more, and must have had.
fn end(job: &Value, old: &Value, report: &mut Report) {
    if !is_finished(job) {
        return;
    }
    let ends = !is_finished(old);
    let active = number(job, "active");
    if active > 0 && (ends || active != number(old, "active")) {
        report.invalid("status.active", active, "active>0 is invalid for finished job");
    }
    let never_began = at(job, "/spec/suspend") == &Value::Bool(true)
        && at(job, "/spec/completions").as_i64() == Some(0);
    if at(job, "/status/startTime").is_null()
        && (ends || differs(job, old, "startTime"))
        && !never_began
    {
        report.required("status.startTime", "startTime is required for finished job");
    }
    let pods = at(job, "/status/uncountedTerminatedPods");
    let some = !list(pods, "/succeeded").is_empty() || !list(pods, "/failed").is_empty();
    if some && (ends || differs(job, old, "uncountedTerminatedPods")) {
        let shown = internal::part(job, "/status/uncountedTerminatedPods");
        report.invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job");
    }
    let terminating = number(job, "terminating");
    if terminating > 0 && (ends || differs(job, old, "terminating")) {
        let why = "terminating>0 is invalid for finished job";
        report.invalid("status.terminating", terminating, why);
    }
}

/// Which of its Pods succeeded, and which failed for good.
fn indexes(job: &Value, old: &Value, report: &mut Report) {
    let completed = text(job, "/status/completedIndexes");
    let failed = at(job, "/status/failedIndexes").as_str();
    let completions = at(job, "/spec/completions").as_i64();
    let retries = !at(job, "/spec/backoffLimitPerIndex").is_null();
    let completes = completed != text(old, "/status/completedIndexes");
    let fails = differs(job, old, "failedIndexes");
    let mut readable = |field: &str, text: &str| {
        if let Some(Err(why)) = completions.map(|most| job_indexes::count(text, most)) {
            let detail = format!("error parsing {field}: {why}");
            report.invalid(format!("status.{field}"), text, detail);
        }
    };
    if completes {
        readable("completedIndexes", completed);
    }
    if let Some(failed) = failed.filter(|_| fails && retries) {
        readable("failedIndexes", failed);
    }
    if completes && !completed.is_empty() && text(job, "/spec/completionMode") != "Indexed" {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        report.invalid("status.completedIndexes", completed, why);
    }
    let Some(failed) = failed else { return };
    if fails && !retries {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        report.invalid("status.failedIndexes", failed, why);
    }
    let both = completions.and_then(|most| job_indexes::shared(completed, failed, most));
    if let Some(index) = both.filter(|_| fails || completes) {
        let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
        report.invalid("status.failedIndexes", failed, why);
    }
}

fn counts(job: &Value, old: &Value, report: &mut Report) {
    let (ready, active) = (number(job, "ready"), number(job, "active"));
    let changed = differs(job, old, "ready") || active != number(old, "active");
    if changed && !at(job, "/status/ready").is_null() && ready > active {
        report.invalid("status.ready", ready, "cannot set more ready pods than active");
    }
    let resizable = text(job, "/spec/completionMode") == "Indexed"
        && at(job, "/spec/completions") == at(job, "/spec/parallelism");
    for (field, may_fall) in [("failed", false), ("succeeded", resizable)] {
        let count = number(job, field);
        if count < number(old, field) && !may_fall {
            let why = format!("cannot decrease the {field} counter");
            report.invalid(format!("status.{field}"), count, why);
        }
    }
}
