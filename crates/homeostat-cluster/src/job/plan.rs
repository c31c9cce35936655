//! What a Job does next: create, delete, finish. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use homeostat::EventType;
use homeostat::kube::ResourceExt;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::{EnvVar, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::TRACKING;
use super::count::{self, Counted};
use crate::pod;

/// The annotation and label with a Pod's index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The pause after a failure, doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// One write.
#[derive(Debug)]
pub(super) enum Action<'a> {
    /// Make a Pod, with that index if the Job is indexed.
    Create(Option<i32>),
    /// Stop a Pod; it does not count as failed.
    Delete(&'a Pod),
}

/// Everything one reconcile does.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) actions: Vec<Action<'a>>,
    pub(super) status: JobStatus,
    pub(super) counted: Vec<&'a Pod>,
    pub(super) wake: Option<Timestamp>,
    pub(super) event: Option<(EventType, String, String)>,
}

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

/// Decides the next step.
pub(super) fn plan<'a>(job: &Job, spec: &JobSpec, pods: &[&'a Pod], now: Timestamp) -> Plan<'a> {
    let mut status = job.status.clone().unwrap_or_default();
    let suspended = spec.suspend == Some(true);
    let counted = count::step(&status, pods);
    if status.start_time.is_none() && !suspended {
        status.start_time = Some(Time(now));
    }
    let is_finished = has(&status, "Complete") || has(&status, "Failed");
    let active: Vec<&Pod> = pods.iter().copied().filter(|pod| pod::is_active(pod)).collect();
    let mut actions = Vec::new();
    let mut wake = None;
    let mut event = None;

    if !is_finished && !has(&status, "FailureTarget") && !has(&status, "SuccessCriteriaMet") {
        if let Some((reason, message)) = failure(spec, &status, &counted, &active, now) {
            set(&mut status, "FailureTarget", reason, message, now);
        } else if is_successful(spec, &counted, &active) {
            let message = "Reached expected number of succeeded pods";
            set(&mut status, "SuccessCriteriaMet", "CompletionsReached", message, now);
        }
    }
    let is_ending =
        is_finished || has(&status, "FailureTarget") || has(&status, "SuccessCriteriaMet");
    if is_ending || suspended {
        actions.extend(active.iter().map(|pod| Action::Delete(pod)));
    } else {
        let pause = pause_until(&counted, pods);
        let (wanted, blocked) = wanted(spec, &counted, &active, pods);
        match wanted.checked_sub(active.len()) {
            None => {
                let mut surplus = active.clone();
                surplus.sort_by_cached_key(|pod| pod::removal_rank(pod));
                surplus.truncate(active.len() - wanted);
                actions.extend(surplus.into_iter().map(Action::Delete));
            }
            Some(missing) if missing > 0 => match pause.filter(|at| *at > now) {
                Some(at) => wake = Some(at),
                None => actions.extend(new_pods(spec, missing, &blocked)),
            },
            Some(_) => {}
        }
        wake = earliest(wake, deadline(spec, &status));
    }
    suspend(&mut status, spec, now);
    let removed = actions.iter().filter(|a| matches!(a, Action::Delete(_))).count();
    let created = actions.iter().filter(|a| matches!(a, Action::Create(_))).count();
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let remaining = number(active.len() + created - removed);
    let leaving = pods.iter().filter(|p| pod::is_deleting(p) && !pod::is_terminal(p)).count();
    status.active = positive(remaining);
    status.ready = Some(number(active.iter().filter(|p| pod::is_ready(p)).count()).min(remaining));
    status.terminating = Some(number(leaving));
    if is_indexed(spec) {
        status.completed_indexes =
            Some(text(&indexes(pods, "Succeeded"), status.completed_indexes.as_deref()));
    }
    status.succeeded = positive(counted.succeeded);
    status.failed = positive(counted.failed);
    let settled = counted.uncounted.succeeded.is_none() && counted.uncounted.failed.is_none();
    status.uncounted_terminated_pods = Some(counted.uncounted);
    if settled && !is_finished && remaining == 0 && leaving == 0 {
        event = finish(&mut status, now);
    }
    Plan { actions, status, counted: counted.to_release, wake, event }
}

/// Turns the decision into the final condition once nothing runs and everything is counted.
fn finish(status: &mut JobStatus, now: Timestamp) -> Option<(EventType, String, String)> {
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

fn failure(
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

fn deadline(spec: &JobSpec, status: &JobStatus) -> Option<Timestamp> {
    let seconds = u64::try_from(spec.active_deadline_seconds?).unwrap_or(0);
    if spec.suspend == Some(true) {
        return None;
    }
    status.start_time.as_ref()?.0.checked_add(Duration::from_secs(seconds)).ok()
}

fn is_successful(spec: &JobSpec, counted: &Counted<'_>, active: &[&Pod]) -> bool {
    match spec.completions {
        Some(completions) => counted.all_succeeded() >= completions,
        None => counted.all_succeeded() > 0 && active.is_empty(),
    }
}

/// How many Pods should be active, and which indexes are taken.
fn wanted(
    spec: &JobSpec,
    counted: &Counted<'_>,
    active: &[&Pod],
    pods: &[&Pod],
) -> (usize, BTreeSet<i32>) {
    let parallelism = spec.parallelism.unwrap_or(1);
    let wanted = match spec.completions {
        Some(completions) => parallelism.min(completions - counted.all_succeeded()),
        // A work queue: once one has succeeded no new Pod is started.
        None if counted.all_succeeded() > 0 => {
            parallelism.min(i32::try_from(active.len()).unwrap_or(i32::MAX))
        }
        None => parallelism,
    };
    let taken = pods
        .iter()
        .filter(|pod| pod::is_active(pod) || pod::phase(pod) == "Succeeded")
        .filter_map(|pod| index(pod))
        .collect();
    (usize::try_from(wanted).unwrap_or(0), taken)
}

fn new_pods<'a>(spec: &JobSpec, missing: usize, taken: &BTreeSet<i32>) -> Vec<Action<'a>> {
    if !is_indexed(spec) {
        return (0..missing).map(|_| Action::Create(None)).collect();
    }
    (0..spec.completions.unwrap_or(0))
        .filter(|index| !taken.contains(index))
        .take(missing)
        .map(|index| Action::Create(Some(index)))
        .collect()
}

/// When the next Pod may start: 10 s after the last failure, doubled for each failure.
fn pause_until(counted: &Counted<'_>, pods: &[&Pod]) -> Option<Timestamp> {
    let failures = u32::try_from(counted.all_failed()).ok().filter(|n| *n > 0)?;
    let ended = |pod: &&Pod| {
        let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
        let at = |s: &k8s_openapi::api::core::v1::ContainerStatus| {
            Some(s.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0)
        };
        statuses.iter().filter_map(at).max()
    };
    let failed = pods.iter().filter(|pod| count::result(pod) == Some(count::Result::Failed));
    let last = failed
        .filter_map(|pod| {
            let deleted = || pod.metadata.deletion_timestamp.as_ref().map(|t| t.0);
            let ready = || pod::condition(pod, "Ready")?.last_transition_time.as_ref().map(|t| t.0);
            ended(pod).or_else(ready).or_else(deleted)
        })
        .max()?;
    let factor = 2_u32.saturating_pow(failures - 1);
    let pause = FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE);
    last.checked_add(pause).ok()
}

fn suspend(status: &mut JobStatus, spec: &JobSpec, now: Timestamp) {
    let known =
        status.conditions.iter().flatten().any(|c| c.type_ == "Suspended" && c.status == "True");
    if spec.suspend == Some(true) && !known {
        status.start_time = None;
        set(status, "Suspended", "JobSuspended", "Job suspended", now);
    } else if spec.suspend != Some(true) && known {
        put(status, "Suspended", "False", "JobResumed", "Job resumed", now);
    }
}

/// A Pod of the Job.
pub(super) fn pod(job: &Job, index: Option<i32>) -> Pod {
    let Some(spec) = &job.spec else { return Pod::default() };
    let mut pod = pod::from_template(&spec.template);
    pod.metadata.finalizers.get_or_insert_default().push(TRACKING.into());
    let Some(index) = index else {
        pod.metadata.generate_name = Some(format!("{}-", job.name_any()));
        return pod;
    };
    pod.metadata.generate_name = Some(format!("{}-{index}-", job.name_any()));
    pod.metadata.labels.get_or_insert_default().insert(INDEX.into(), index.to_string());
    pod.metadata.annotations.get_or_insert_default().insert(INDEX.into(), index.to_string());
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{}-{index}", job.name_any()));
        for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten())
        {
            container.env.get_or_insert_default().push(EnvVar {
                name: "JOB_COMPLETION_INDEX".into(),
                value: Some(index.to_string()),
                value_from: None,
            });
        }
    }
    pod
}

fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

fn index(pod: &Pod) -> Option<i32> {
    pod.annotations().get(INDEX)?.parse().ok()
}

fn indexes(pods: &[&Pod], phase: &str) -> BTreeSet<i32> {
    pods.iter().filter(|pod| pod::phase(pod) == phase).filter_map(|pod| index(pod)).collect()
}

/// The set as `0,2-4`, joined with what was known before.
fn text(found: &BTreeSet<i32>, known: Option<&str>) -> String {
    let mut all = found.clone();
    for part in known.unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
            all.extend(first..=last);
        }
    }
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for index in all {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    let show = |(first, last): &(i32, i32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

fn positive(number: i32) -> Option<i32> {
    (number > 0).then_some(number)
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

fn has(status: &JobStatus, kind: &str) -> bool {
    status.conditions.iter().flatten().any(|c| c.type_ == kind && c.status == "True")
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn job(spec: &Value, status: &JobStatus) -> Job {
        let mut job: Job =
            serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": spec})).unwrap();
        job.spec.as_mut().unwrap().template =
            serde_json::from_value(json!({"spec": {"containers": [{"name": "c"}]}})).unwrap();
        job.status = Some(status.clone());
        job
    }

    fn pod_in(phase: &str, uid: &str, ended: i64) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": uid, "uid": uid, "finalizers": [TRACKING]},
            "status": {"phase": phase, "containerStatuses": [{"name": "c", "image": "", "imageID": "",
                "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1,
                "finishedAt": at(ended).to_string()}}}]},
        }))
        .unwrap()
    }

    /// Plans until nothing changes, releasing Pods as the controller does.
    fn settle(
        spec: &Value,
        status: &mut JobStatus,
        pods: &mut [Pod],
        now: i64,
    ) -> (usize, Option<Timestamp>) {
        loop {
            let job = job(spec, status);
            let snapshot = pods.to_vec();
            let refs: Vec<&Pod> = snapshot.iter().collect();
            let plan = plan(&job, job.spec.as_ref().unwrap(), &refs, at(now));
            for pod in &plan.counted {
                let uid = pod.uid();
                pods.iter_mut().find(|p| p.uid() == uid).unwrap().metadata.finalizers = None;
            }
            if *status == plan.status && plan.counted.is_empty() {
                return (plan.actions.len(), plan.wake);
            }
            *status = plan.status;
        }
    }

    #[test]
    fn a_job_completes_when_its_completions_are_reached() {
        let spec = json!({"completions": 2, "parallelism": 1, "template": {}});
        let mut status = JobStatus::default();
        assert_eq!(settle(&spec, &mut status, &mut [], 0).0, 1);
        let mut pods = vec![pod_in("Succeeded", "a", 1)];
        assert_eq!(settle(&spec, &mut status, &mut pods, 1).0, 1);
        pods.push(pod_in("Succeeded", "b", 2));
        assert_eq!(settle(&spec, &mut status, &mut pods, 2).0, 0);
        assert_eq!(status.succeeded, Some(2));
        assert!(has(&status, "SuccessCriteriaMet") && has(&status, "Complete"));
        assert_eq!(status.completion_time, Some(Time(at(2))));
    }

    #[test]
    fn failures_pause_longer_each_time_until_the_limit() {
        let spec = json!({"backoffLimit": 1, "completions": 1, "template": {}});
        let mut status = JobStatus::default();
        let mut pods = vec![pod_in("Failed", "a", 100)];
        assert_eq!(settle(&spec, &mut status, &mut pods, 100), (0, Some(at(110))));
        assert_eq!(settle(&spec, &mut status, &mut pods, 110).0, 1);
        pods.push(pod_in("Failed", "b", 120));
        assert_eq!(settle(&spec, &mut status, &mut pods, 120).0, 0);
        assert_eq!(status.failed, Some(2));
        let failed = status.conditions.iter().flatten().find(|c| c.type_ == "Failed").unwrap();
        assert_eq!(failed.reason.as_deref(), Some("BackoffLimitExceeded"));
    }

    #[test]
    fn a_job_over_its_deadline_stops_its_pods() {
        let spec = json!({"activeDeadlineSeconds": 5, "completions": 1, "template": {}});
        let mut status = JobStatus::default();
        settle(&spec, &mut status, &mut [], 0);
        let running = pod_in("Running", "a", 0);
        let job = job(&spec, &status);
        let plan = plan(&job, job.spec.as_ref().unwrap(), &[&running], at(5));
        assert!(matches!(plan.actions[..], [Action::Delete(_)]));
        assert!(has(&plan.status, "FailureTarget"));
    }

    #[test]
    fn indexes_are_written_as_ranges() {
        assert_eq!(text(&BTreeSet::from([0, 2, 3, 4, 6, 7]), Some("9")), "0,2-4,6,7,9");
    }
}
