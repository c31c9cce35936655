//! What to do next for one CronJob. Pure.

use std::time::Duration;

use homeostat::EventType;
use homeostat::kube::{Resource, ResourceExt};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::schedule::{self, Schedule};

/// When a Job was due, on the Job.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Finished Jobs that are kept where the CronJob does not say how many.
const SUCCEEDED_KEPT: i32 = 3;
const FAILED_KEPT: i32 = 1;

type Note = (EventType, &'static str, String);

/// What to do, in this order.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    /// Finished Jobs that are too many.
    pub(super) forget: Vec<&'a Job>,
    /// Running Jobs that make room for the next.
    pub(super) replace: Vec<&'a Job>,
    /// When the Job to be made was due.
    pub(super) start: Option<Timestamp>,
    pub(super) status: CronJobStatus,
    pub(super) events: Vec<Note>,
    /// When to look again.
    pub(super) wake: Option<Timestamp>,
}

pub(super) fn plan<'a>(cron: &CronJob, jobs: &[&'a Job], now: Timestamp) -> Plan<'a> {
    let spec = &cron.spec;
    let mut plan = Plan { forget: surplus(spec, jobs), ..Plan::default() };
    let running: Vec<&Job> = jobs.iter().copied().filter(|job| ending(job).is_none()).collect();
    observe(&mut plan, cron, jobs, &running);
    if spec.suspend == Some(true) {
        return plan;
    }
    let zone = spec.time_zone.as_deref();
    if let Err(error) = schedule::zone(zone) {
        let note = format!("invalid timeZone: {:?}: {error}", zone.unwrap_or_default());
        plan.events.push((EventType::Warning, "UnknownTimeZone", note));
        return plan;
    }
    let times = match Schedule::parse(&spec.schedule, zone) {
        Ok(times) => times,
        Err(error) => {
            let note = format!("unparseable schedule: {:?} : {error}", spec.schedule);
            plan.events.push((EventType::Warning, "UnparseableSchedule", note));
            return plan;
        }
    };
    plan.wake = times.after(now);
    decide(&mut plan, cron, &times, &running, now);
    plan
}

/// Whether a Job is due and may start.
fn decide<'a>(
    plan: &mut Plan<'a>,
    cron: &CronJob,
    times: &Schedule,
    running: &[&'a Job],
    now: Timestamp,
) {
    let spec = &cron.spec;
    let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    let deadline = spec.starting_deadline_seconds;
    let deadline = deadline.and_then(|seconds| u64::try_from(seconds).ok());
    let since = last.or(cron.metadata.creation_timestamp.as_ref()).map_or(now, |time| time.0);
    let horizon = deadline.and_then(|seconds| now.checked_sub(Duration::from_secs(seconds)).ok());
    let earliest = horizon.map_or(since, |horizon| since.max(horizon));
    let Some(due) = times.due(earliest, now) else {
        let missed = times.due(since, now).filter(|_| earliest > since);
        if let Some(missed) = missed {
            let at = missed.at.strftime("%a, %d %b %Y %H:%M:%S +0000");
            let note = format!("Missed scheduled time to start a job: {at}");
            plan.events.push((EventType::Warning, "MissSchedule", note));
        }
        return;
    };
    if due.too_many {
        let note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or \
                    check clock skew";
        plan.events.push((EventType::Warning, "TooManyMissedTimes", note.into()));
    }
    match spec.concurrency_policy.as_deref() {
        Some("Forbid") if !running.is_empty() => {
            let note = "Not starting job because prior execution is running and concurrency \
                        policy is Forbid";
            plan.events.push((EventType::Normal, "JobAlreadyActive", note.into()));
            return;
        }
        Some("Replace") => {
            plan.replace = running.to_vec();
            plan.status.active = None;
        }
        _ => {}
    }
    plan.start = Some(due.at);
}

/// The status as the Jobs tell it, and what has changed since it was written.
fn observe(plan: &mut Plan<'_>, cron: &CronJob, jobs: &[&Job], running: &[&Job]) {
    let old = cron.status.clone().unwrap_or_default();
    let mut active = old.active.unwrap_or_default();
    for gone in &active {
        let job = jobs.iter().find(|job| job.metadata.uid == gone.uid);
        let name = gone.name.as_deref().unwrap_or_default();
        match job.map(|job| ending(job)) {
            None => {
                let note = format!("Active job went missing: {name}");
                plan.events.push((EventType::Normal, "MissingJob", note));
            }
            Some(Some(condition)) => {
                let note = format!("Saw completed job: {name}, condition: {condition}");
                plan.events.push((EventType::Normal, "SawCompletedJob", note));
            }
            Some(None) => {}
        }
    }
    active.retain(|one| running.iter().any(|job| job.metadata.uid == one.uid));
    // One that was made and not written down, because something ended in between.
    let unknown = running.iter().filter(|job| active.iter().all(|a| a.uid != job.metadata.uid));
    let unknown: Vec<ObjectReference> = unknown.map(|job| reference(job)).collect();
    active.extend(unknown);
    let succeeded = jobs.iter().filter(|job| ending(job) == Some("Complete"));
    let times = succeeded.filter_map(|job| job.status.as_ref()?.completion_time.clone());
    plan.status = CronJobStatus {
        active: (!active.is_empty()).then_some(active),
        last_schedule_time: old.last_schedule_time,
        last_successful_time: times.chain(old.last_successful_time).max_by_key(|time| time.0),
    };
}

/// How a Job has ended, if it has.
pub(super) fn ending(job: &Job) -> Option<&'static str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let holds = |kind: &str| conditions.iter().any(|c| c.type_ == kind && c.status == "True");
    ["Complete", "Failed"].into_iter().find(|kind| holds(kind))
}

/// The oldest finished Jobs beyond what is kept of each sort.
fn surplus<'a>(spec: &CronJobSpec, jobs: &[&'a Job]) -> Vec<&'a Job> {
    let kept = [
        ("Complete", spec.successful_jobs_history_limit.unwrap_or(SUCCEEDED_KEPT)),
        ("Failed", spec.failed_jobs_history_limit.unwrap_or(FAILED_KEPT)),
    ];
    let mut all = Vec::new();
    for (kind, kept) in kept {
        let is = |job: &&&Job| ending(job) == Some(kind) && job.meta().deletion_timestamp.is_none();
        let mut ended: Vec<&Job> = jobs.iter().filter(is).copied().collect();
        ended.sort_by_key(|job| {
            let began = job.status.as_ref().and_then(|status| status.start_time.as_ref());
            (began.map(|time| time.0), job.name_any())
        });
        let kept = usize::try_from(kept).unwrap_or(0);
        ended.truncate(ended.len().saturating_sub(kept));
        all.extend(ended);
    }
    all
}

/// The Job that was due then; its name makes it the same one however often it is made.
pub(super) fn job(cron: &CronJob, due: Timestamp) -> Job {
    let spec = &cron.spec;
    let template = spec.job_template.metadata.clone().unwrap_or_default();
    let zone = schedule::zone(spec.time_zone.as_deref()).unwrap_or(jiff::tz::TimeZone::UTC);
    let written = match spec.time_zone.as_deref() {
        None | Some("") => due.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Some(_) => due.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    };
    let mut annotations = template.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.into(), written);
    Job {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}", cron.name_any(), due.as_second() / 60)),
            labels: template.labels,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: spec.job_template.spec.clone(),
        status: None,
    }
}

/// How the status names a Job.
pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference { resource_version: job.resource_version(), ..job.object_ref(&()) }
}

/// The status after a Job was made.
pub(super) fn started(mut status: CronJobStatus, job: &Job, due: Timestamp) -> CronJobStatus {
    let active = status.active.get_or_insert_default();
    if active.iter().all(|one| one.uid != job.metadata.uid) {
        active.push(reference(job));
    }
    status.last_schedule_time = Some(Time(due));
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cron(more: &Value, status: &Value) -> CronJob {
        let mut spec = json!({ "schedule": "0 * * * *", "jobTemplate": { "spec": {
            "template": { "spec": { "containers": [] } } } } });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let metadata = json!({ "name": "tick", "creationTimestamp": "2026-01-01T00:30:00Z" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status }))
            .unwrap()
    }

    fn one_job(name: &str, ended: Option<&str>, began: i64) -> Job {
        let conditions: Vec<Value> =
            ended.iter().map(|kind| json!({ "type": kind, "status": "True" })).collect();
        let began = Timestamp::from_second(began).unwrap();
        let mut status = json!({ "startTime": began.to_string(), "conditions": conditions });
        if ended == Some("Complete") {
            status["completionTime"] = json!(began.to_string());
        }
        serde_json::from_value(json!({ "metadata": { "name": name, "uid": name },
            "spec": { "template": {} }, "status": status }))
        .unwrap()
    }

    fn planned<'a>(cron: &CronJob, jobs: &[&'a Job], now: &str) -> Plan<'a> {
        plan(cron, jobs, at(now))
    }

    fn reasons(plan: &Plan<'_>) -> Vec<&'static str> {
        plan.events.iter().map(|(_, reason, _)| *reason).collect()
    }

    #[test]
    fn a_job_starts_when_it_is_due_and_once() {
        let fresh = cron(&json!({}), &json!({}));
        let early = planned(&fresh, &[], "2026-01-01T00:59:59Z");
        assert_eq!((early.start, early.wake), (None, Some(at("2026-01-01T01:00:00Z"))));
        let due = planned(&fresh, &[], "2026-01-01T01:00:00Z");
        assert_eq!(due.start, Some(at("2026-01-01T01:00:00Z")));
        assert_eq!(due.wake, Some(at("2026-01-01T02:00:00Z")));
        let done = cron(&json!({}), &json!({ "lastScheduleTime": "2026-01-01T01:00:00Z" }));
        assert_eq!(planned(&done, &[], "2026-01-01T01:00:01Z").start, None);
        let made = job(&fresh, at("2026-01-01T01:00:00Z"));
        assert_eq!(
            made.name_any(),
            format!("tick-{}", at("2026-01-01T01:00:00Z").as_second() / 60)
        );
        assert_eq!(made.annotations()[SCHEDULED], "2026-01-01T01:00:00Z");
    }

    #[test]
    fn a_start_that_comes_too_late_is_missed() {
        let hasty = cron(&json!({ "startingDeadlineSeconds": 60 }), &json!({}));
        assert!(planned(&hasty, &[], "2026-01-01T01:00:59Z").start.is_some());
        let late = planned(&hasty, &[], "2026-01-01T01:05:00Z");
        assert_eq!((late.start, reasons(&late)), (None, vec!["MissSchedule"]));
    }

    #[test]
    fn a_suspended_or_wrong_one_starts_nothing() {
        let now = "2026-01-01T01:00:00Z";
        let suspended = planned(&cron(&json!({ "suspend": true }), &json!({})), &[], now).start;
        assert_eq!(suspended, None);
        let wrong = cron(&json!({ "schedule": "now and then" }), &json!({}));
        assert_eq!(reasons(&planned(&wrong, &[], now)), ["UnparseableSchedule"]);
        let nowhere = cron(&json!({ "timeZone": "Mars/Olympus" }), &json!({}));
        assert_eq!(reasons(&planned(&nowhere, &[], now)), ["UnknownTimeZone"]);
    }

    #[test]
    fn a_running_job_is_left_alone_waited_for_or_replaced() {
        let now = "2026-01-01T01:00:00Z";
        let running = one_job("tick-1", None, 0);
        let policy = |policy: &str| {
            let cron = cron(&json!({ "concurrencyPolicy": policy }), &json!({}));
            let plan = planned(&cron, &[&running], now);
            (plan.start.is_some(), plan.replace.len(), plan.status.active.map_or(0, |a| a.len()))
        };
        assert_eq!(policy("Allow"), (true, 0, 1));
        assert_eq!(policy("Forbid"), (false, 0, 1));
        assert_eq!(policy("Replace"), (true, 1, 0));
    }

    #[test]
    fn the_end_of_a_job_is_seen_and_old_ones_are_forgotten() {
        let names: Vec<Job> =
            (0..5).map(|n| one_job(&format!("tick-{n}"), Some("Complete"), n)).collect();
        let failed: Vec<Job> =
            (5..7).map(|n| one_job(&format!("tick-{n}"), Some("Failed"), n)).collect();
        let jobs: Vec<&Job> = names.iter().chain(&failed).collect();
        let active = json!([{ "name": "tick-4", "uid": "tick-4" }, { "name": "lost", "uid": "x" }]);
        let plan =
            planned(&cron(&json!({}), &json!({ "active": active })), &jobs, "2026-01-01T00:40:00Z");
        let forgotten: Vec<String> = plan.forget.iter().map(|job| job.name_any()).collect();
        assert_eq!(forgotten, ["tick-0", "tick-1", "tick-5"]);
        assert_eq!(reasons(&plan), ["SawCompletedJob", "MissingJob"]);
        assert_eq!(plan.status.active, None);
        assert_eq!(plan.status.last_successful_time.unwrap().0.as_second(), 4);
    }
}
