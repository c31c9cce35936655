//! A Job step by step, with Pods that end as told.

use super::*;
use serde_json::{Value, json};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
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

/// A Job with the Pods that it made.
struct Trial {
    job: Job,
    pods: Vec<Pod>,
    made: usize,
    now: i64,
}

impl Trial {
    fn of(mut spec: Value) -> Self {
        spec["template"] = json!({"spec": {"containers": [{"name": "c"}]}});
        let job = json!({"metadata": {"name": "j", "namespace": "n"}, "spec": spec});
        Self { job: serde_json::from_value(job).unwrap(), pods: Vec::new(), made: 0, now: 0 }
    }

    /// Reconciles until nothing changes, as the controller does; answers when to look again.
    fn settle(&mut self) -> Option<Timestamp> {
        loop {
            let (job, snapshot) = (self.job.clone(), self.pods.clone());
            let refs: Vec<&Pod> = snapshot.iter().collect();
            let plan = plan(&job, job.spec.as_ref().unwrap(), &refs, at(self.now));
            let is_idle = plan.actions.is_empty() && plan.counted.is_empty();
            for action in &plan.actions {
                match action {
                    Action::Create(place) => self.add(pod(&job, *place)),
                    Action::Remove(pod) => self.pods.retain(|p| p.uid() != pod.uid()),
                    Action::Stop(stopped) => {
                        let pod = self.pods.iter_mut().find(|p| p.uid() == stopped.uid()).unwrap();
                        pod.metadata.deletion_timestamp = Some(Time(at(self.now)));
                        pod.status = serde_json::from_value(json!({"phase": "Failed"})).unwrap();
                    }
                }
            }
            let is_same = job.status.as_ref() == Some(&plan.status);
            self.job.status = Some(plan.status);
            for released in plan.counted {
                let pod = self.pods.iter_mut().find(|p| p.uid() == released.uid()).unwrap();
                pod.metadata.finalizers = None;
            }
            self.pods.retain(|p| {
                p.metadata.deletion_timestamp.is_none() || p.metadata.finalizers.is_some()
            });
            if is_idle && is_same {
                return plan.wake;
            }
        }
    }

    fn add(&mut self, mut pod: Pod) {
        self.made += 1;
        pod.metadata.uid = Some(format!("{}", self.made));
        pod.metadata.name = Some(format!("p{}", self.made));
        pod.metadata.namespace = Some("n".into());
        pod.spec.as_mut().unwrap().node_name = Some("node".into());
        pod.status = serde_json::from_value(json!({"phase": "Running"})).unwrap();
        self.pods.push(pod);
    }

    /// The indexes of the Pods at work.
    fn at_work(&self) -> Vec<i32> {
        let active = self.pods.iter().filter(|pod| pod::is_active(pod));
        active.filter_map(|pod| indexed::index(pod, i32::MAX)).collect()
    }

    /// Ends the Pod at work of that index with a code.
    fn end(&mut self, index: i32, code: i32) {
        let pod = self
            .pods
            .iter_mut()
            .find(|p| pod::is_active(p) && indexed::index(p, i32::MAX).unwrap_or(0) == index)
            .unwrap();
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        pod.status = pod_in(phase, "", self.now).status;
        let statuses = pod.status.as_mut().unwrap().container_statuses.as_mut().unwrap();
        statuses[0].state.as_mut().unwrap().terminated.as_mut().unwrap().exit_code = code;
    }

    fn status(&self) -> &JobStatus {
        self.job.status.as_ref().unwrap()
    }

    /// The reason and message of a condition that is true.
    fn reason(&self, kind: &str) -> Option<(&str, &str)> {
        let conditions = self.status().conditions.as_ref()?;
        let found = conditions.iter().find(|c| c.type_ == kind && c.status == "True")?;
        Some((found.reason.as_deref()?, found.message.as_deref()?))
    }
}

#[test]
fn a_job_completes_when_its_completions_are_reached() {
    let mut trial = Trial::of(json!({"completions": 2, "parallelism": 1}));
    trial.settle();
    trial.end(0, 0);
    trial.now = 1;
    trial.settle();
    assert_eq!(trial.made, 2);
    trial.end(0, 0);
    trial.now = 2;
    trial.settle();
    assert_eq!((trial.status().succeeded, trial.made), (Some(2), 2));
    let words = ("CompletionsReached", "Reached expected number of succeeded pods");
    assert_eq!(trial.reason("SuccessCriteriaMet"), Some(words));
    assert_eq!(trial.reason("Complete"), Some(words));
    assert_eq!(trial.status().completion_time, Some(Time(at(2))));
}

#[test]
fn failures_pause_longer_each_time_until_the_limit() {
    let mut trial = Trial::of(json!({"backoffLimit": 2, "completions": 1}));
    trial.settle();
    trial.now = 100;
    trial.end(0, 1);
    assert_eq!((trial.settle(), trial.made), (Some(at(110)), 1));
    trial.now = 110;
    trial.settle();
    assert_eq!(trial.made, 2);
    trial.end(0, 1);
    assert_eq!((trial.settle(), trial.made), (Some(at(130)), 2));
    trial.now = 130;
    trial.settle();
    trial.end(0, 1);
    trial.settle();
    assert_eq!((trial.status().failed, trial.made), (Some(3), 3));
    assert_eq!(trial.reason("Failed").unwrap().0, "BackoffLimitExceeded");
}

#[test]
fn a_success_ends_the_pause_that_failures_made() {
    let mut trial = Trial::of(json!({"completions": 2, "parallelism": 2, "backoffLimit": 9}));
    trial.settle();
    trial.now = 100;
    trial.end(0, 1);
    trial.now = 101;
    trial.end(0, 0);
    assert_eq!((trial.settle(), trial.made), (None, 3));
}

#[test]
fn a_job_over_its_deadline_stops_its_pods_and_counts_them_as_failed() {
    let mut trial = Trial::of(json!({"activeDeadlineSeconds": 5, "completions": 1}));
    assert_eq!(trial.settle(), Some(at(5)));
    trial.now = 5;
    trial.settle();
    assert_eq!(trial.reason("FailureTarget").unwrap().0, "DeadlineExceeded");
    assert_eq!(trial.reason("Failed").unwrap().0, "DeadlineExceeded");
    assert_eq!((trial.status().failed, trial.status().active), (Some(1), None));
}

#[test]
fn an_index_that_has_succeeded_is_never_run_again() {
    let mut trial =
        Trial::of(json!({"completions": 3, "parallelism": 1, "completionMode": "Indexed"}));
    trial.settle();
    for index in 0..3 {
        assert_eq!(trial.at_work(), [index]);
        trial.end(index, 0);
        trial.settle();
        // Whoever clears away finished Pods takes nothing from the Job.
        trial.pods.retain(pod::is_active);
    }
    assert_eq!(trial.status().completed_indexes.as_deref(), Some("0-2"));
    assert_eq!((trial.status().succeeded, trial.made), (Some(3), 3));
    assert!(trial.reason("Complete").is_some());
}

#[test]
fn two_successes_of_one_index_are_one() {
    let mut trial =
        Trial::of(json!({"completions": 2, "parallelism": 1, "completionMode": "Indexed"}));
    trial.settle();
    let mut twin = trial.pods[0].clone();
    twin.metadata.uid = Some("twin".into());
    trial.pods.push(twin);
    trial.end(0, 0);
    trial.end(0, 0);
    trial.settle();
    assert_eq!(trial.at_work(), [1]);
    assert!(trial.reason("Complete").is_none());
    assert_eq!(trial.status().succeeded, Some(1));
}

#[test]
fn of_two_pods_at_work_on_one_index_one_is_removed() {
    let mut trial =
        Trial::of(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed"}));
    trial.settle();
    let mut twin = trial.pods[0].clone();
    twin.metadata.uid = Some("twin".into());
    trial.pods[1] = twin;
    trial.settle();
    assert_eq!(trial.at_work(), [0, 1]);
}

#[test]
fn each_index_fails_for_itself_and_the_job_with_the_last() {
    let mut trial =
        Trial::of(json!({"completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1,
        "backoffLimit": i32::MAX, "completionMode": "Indexed"}));
    trial.settle();
    trial.end(0, 1);
    assert_eq!(trial.settle(), Some(at(10)), "it pauses");
    assert_eq!(trial.at_work(), [1]);
    trial.now = 10;
    trial.settle();
    assert_eq!(trial.at_work(), [1, 0]);
    assert!(trial.pods[0].metadata.finalizers.is_none(), "the successor knows what it must");
    trial.end(0, 1);
    assert_eq!(trial.settle(), None, "no third attempt");
    assert_eq!((trial.made, trial.at_work()), (3, vec![1]));
    assert_eq!(trial.status().failed_indexes.as_deref(), Some("0"));
    trial.end(1, 0);
    trial.settle();
    assert_eq!(trial.reason("Failed"), Some(("FailedIndexes", "Job has failed indexes")));
    assert_eq!(trial.status().completed_indexes.as_deref(), Some("1"));
    assert_eq!((trial.status().failed, trial.status().succeeded), (Some(2), Some(1)));
}

#[test]
fn too_many_failed_indexes_end_the_job() {
    let mut trial =
        Trial::of(json!({"completions": 3, "parallelism": 3, "backoffLimitPerIndex": 0,
        "maxFailedIndexes": 1, "backoffLimit": i32::MAX, "completionMode": "Indexed"}));
    trial.settle();
    trial.end(0, 1);
    trial.settle();
    assert!(trial.reason("FailureTarget").is_none());
    trial.end(2, 1);
    trial.settle();
    assert_eq!(trial.reason("Failed").unwrap().0, "MaxFailedIndexesExceeded");
    assert_eq!(trial.status().failed_indexes.as_deref(), Some("0,2"));
    assert_eq!(trial.status().failed, Some(3), "the one that was stopped too");
    assert!(trial.at_work().is_empty());
}

#[test]
fn the_policy_decides_which_failures_count() {
    let rule = |action: &str, code: i32| json!({"action": action, "onExitCodes": {"operator": "In", "values": [code]}});
    let mut trial = Trial::of(json!({"completions": 2, "parallelism": 2, "backoffLimit": 0,
        "podFailurePolicy": {"rules": [rule("Ignore", 7), rule("FailJob", 42)]}}));
    trial.settle();
    trial.end(0, 7);
    assert_eq!(trial.settle(), Some(at(10)));
    trial.now = 10;
    trial.settle();
    assert_eq!((trial.made, trial.status().failed), (3, None), "as if it had not been");
    trial.end(0, 42);
    trial.settle();
    let words =
        "Container c for pod n/p2 failed with exit code 42 matching FailJob rule at index 1";
    assert_eq!(trial.reason("FailureTarget"), Some(("PodFailurePolicy", words)));
    assert_eq!(trial.reason("Failed"), Some(("PodFailurePolicy", words)));
    assert_eq!(trial.status().failed, Some(2));
}

#[test]
fn the_policy_may_give_up_an_index_at_once() {
    let rule = json!({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}});
    let mut trial =
        Trial::of(json!({"completions": 2, "parallelism": 1, "backoffLimitPerIndex": 5,
        "backoffLimit": i32::MAX, "completionMode": "Indexed",
        "podFailurePolicy": {"rules": [rule]}}));
    trial.settle();
    trial.end(0, 42);
    trial.settle();
    assert_eq!(trial.at_work(), [1]);
    assert_eq!(trial.status().failed_indexes.as_deref(), Some("0"));
}

#[test]
fn some_indexes_may_be_enough() {
    let mut trial = Trial::of(json!({"completions": 3, "parallelism": 3,
        "completionMode": "Indexed", "successPolicy": {"rules": [{"succeededIndexes": "1"}]}}));
    trial.settle();
    trial.end(0, 0);
    trial.settle();
    assert!(trial.reason("SuccessCriteriaMet").is_none());
    trial.end(1, 0);
    trial.settle();
    let words = ("SuccessPolicy", "Matched rules at index 0");
    assert_eq!(trial.reason("SuccessCriteriaMet"), Some(words));
    assert_eq!(trial.reason("Complete"), Some(words));
    assert_eq!((trial.status().failed, trial.status().succeeded), (None, Some(2)));
    assert!(trial.at_work().is_empty());
}

#[test]
fn a_pod_on_its_way_out_is_replaced_when_the_policy_says() {
    for (policy, made, failed) in [("TerminatingOrFailed", 2, Some(1)), ("Failed", 1, None)] {
        let mut trial = Trial::of(json!({"completions": 1, "podReplacementPolicy": policy}));
        trial.settle();
        trial.now = 60;
        trial.pods[0].metadata.deletion_timestamp = Some(Time(at(30)));
        trial.pods[0].metadata.finalizers.as_mut().unwrap().push("test/held".into());
        let job = trial.job.clone();
        let refs: Vec<&Pod> = trial.pods.iter().collect();
        let plan = plan(&job, job.spec.as_ref().unwrap(), &refs, at(60));
        assert_eq!(plan.status.terminating, Some(1));
        assert_eq!(plan.actions.len() + 1, made, "{policy}");
        let uncounted = plan.status.uncounted_terminated_pods.unwrap();
        assert_eq!(uncounted.failed.map(|uids| uids.len()), failed, "{policy}");
    }
}

#[test]
fn a_pod_that_no_node_has_taken_is_replaced_when_it_is_removed() {
    let mut trial = Trial::of(json!({"completions": 1, "podReplacementPolicy": "Failed"}));
    trial.settle();
    trial.now = 60;
    trial.pods[0].metadata.deletion_timestamp = Some(Time(at(30)));
    trial.pods[0].spec.as_mut().unwrap().node_name = None;
    trial.settle();
    assert_eq!((trial.made, trial.status().failed), (2, Some(1)));
}

#[test]
fn a_suspended_job_stops_and_starts_anew() {
    let mut trial = Trial::of(json!({"completions": 1, "activeDeadlineSeconds": 50}));
    trial.settle();
    trial.job.spec.as_mut().unwrap().suspend = Some(true);
    trial.now = 10;
    assert_eq!(trial.settle(), None);
    assert!(trial.pods.is_empty());
    assert_eq!(trial.reason("Suspended"), Some(("JobSuspended", "Job suspended")));
    assert_eq!((trial.status().failed, trial.status().start_time.as_ref()), (None, None));
    trial.job.spec.as_mut().unwrap().suspend = Some(false);
    trial.now = 100;
    assert_eq!(trial.settle(), Some(at(150)));
    assert_eq!((trial.made, trial.reason("Suspended")), (2, None));
    assert_eq!(trial.status().start_time, Some(Time(at(100))));
}

#[test]
fn what_could_not_be_done_is_not_reported() {
    let trial = Trial::of(json!({"completions": 3, "parallelism": 3}));
    let mut plan = plan(&trial.job, trial.job.spec.as_ref().unwrap(), &[], at(0));
    assert_eq!(plan.status.active, Some(3));
    for action in &plan.actions[1..] {
        undo(&mut plan.status, action);
    }
    assert_eq!(plan.status.active, Some(1));
}
