//! What a Job does next: create, delete, finish. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use homeostat::EventType;
use homeostat::kube::ResourceExt;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::TRACKING;
use super::count::{self, Counted};
use super::indexed::{self, is_indexed};
use super::verdict::{deadline, failure, finish, has, is_successful, set, suspend};
use crate::pod;

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
            Some(indexed::completed(pods, status.completed_indexes.as_deref()));
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
    (usize::try_from(wanted).unwrap_or(0), indexed::taken(pods))
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

/// A Pod of the Job.
pub(super) fn pod(job: &Job, index: Option<i32>) -> Pod {
    let Some(spec) = &job.spec else { return Pod::default() };
    let mut pod = pod::from_template(&spec.template);
    pod.metadata.finalizers.get_or_insert_default().push(TRACKING.into());
    pod.metadata.generate_name = Some(format!("{}-", job.name_any()));
    match index {
        Some(index) => indexed::number(pod, &job.name_any(), index),
        None => pod,
    }
}

fn positive(number: i32) -> Option<i32> {
    (number > 0).then_some(number)
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
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
}
