//! Which finished Pods are in a Job's counters. Pure.
//!
//! A finished Pod is first named in `uncountedTerminatedPods`, then loses its finalizer, then moves
//! into the counter. Each of the three states survives a crash.

use std::collections::BTreeSet;

use homeostat::kube::ResourceExt;
use k8s_openapi::api::batch::v1::{JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;

use super::TRACKING;
use crate::pod;

/// How a Pod ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Result {
    Succeeded,
    Failed,
}

/// The result of a Pod; one that is removed before it finished counts as failed.
pub(super) fn result(pod: &Pod) -> Option<Result> {
    match pod::phase(pod) {
        "Succeeded" => Some(Result::Succeeded),
        "Failed" => Some(Result::Failed),
        _ if pod::is_deleting(pod) => Some(Result::Failed),
        _ => None,
    }
}

/// The counters after one step.
#[derive(Debug, Default)]
pub(super) struct Counted<'a> {
    /// Results stored in the counters.
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    /// Results named in the status but not in the counters yet.
    pub(super) uncounted: UncountedTerminatedPods,
    /// The Pods that the status as read names already and that still carry the finalizer. A Pod
    /// named only now keeps it until the cache shows the status that names it.
    pub(super) to_release: Vec<&'a Pod>,
}

impl Counted<'_> {
    /// All successes, stored or about to be.
    pub(super) fn all_succeeded(&self) -> i32 {
        self.succeeded + len(self.uncounted.succeeded.as_ref())
    }

    /// All failures, stored or about to be.
    pub(super) fn all_failed(&self) -> i32 {
        self.failed + len(self.uncounted.failed.as_ref())
    }
}

fn len(uids: Option<&Vec<String>>) -> i32 {
    i32::try_from(uids.map_or(0, Vec::len)).unwrap_or(i32::MAX)
}

/// Moves released Pods into the counters and names the newly finished ones.
pub(super) fn step<'a>(status: &JobStatus, pods: &[&'a Pod]) -> Counted<'a> {
    let tracked: BTreeSet<String> = pods
        .iter()
        .filter(|pod| pod.finalizers().iter().any(|name| name == TRACKING))
        .filter_map(|pod| pod.uid())
        .collect();
    let before = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let (kept_succeeded, stored_succeeded) = split(before.succeeded, &tracked);
    let (kept_failed, stored_failed) = split(before.failed, &tracked);
    let mut counted = Counted {
        succeeded: status.succeeded.unwrap_or(0) + stored_succeeded,
        failed: status.failed.unwrap_or(0) + stored_failed,
        ..Counted::default()
    };
    let (mut succeeded, mut failed) = (kept_succeeded, kept_failed);
    for pod in pods {
        let (Some(uid), Some(result)) = (pod.uid(), result(pod)) else { continue };
        if !tracked.contains(&uid) {
            continue;
        }
        if succeeded.contains(&uid) || failed.contains(&uid) {
            counted.to_release.push(pod);
            continue;
        }
        match result {
            Result::Succeeded => succeeded.push(uid),
            Result::Failed => failed.push(uid),
        }
    }
    counted.uncounted = UncountedTerminatedPods {
        succeeded: (!succeeded.is_empty()).then_some(succeeded),
        failed: (!failed.is_empty()).then_some(failed),
    };
    counted
}

/// Splits named uids into those still tracked and the number of those that can be counted.
fn split(uids: Option<Vec<String>>, tracked: &BTreeSet<String>) -> (Vec<String>, i32) {
    let uids = uids.unwrap_or_default();
    let all = uids.len();
    let kept: Vec<String> = uids.into_iter().filter(|uid| tracked.contains(uid)).collect();
    let released = i32::try_from(all - kept.len()).unwrap_or(i32::MAX);
    (kept, released)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, phase: &str, tracked: bool) -> Pod {
        let finalizers = if tracked { vec![TRACKING] } else { vec![] };
        serde_json::from_value(
            json!({"metadata": {"name": uid, "uid": uid, "finalizers": finalizers},
            "status": {"phase": phase}}),
        )
        .unwrap()
    }

    #[test]
    fn a_result_is_counted_once_even_when_every_step_is_repeated() {
        let mut status = JobStatus::default();
        let finished = pod("a", "Succeeded", true);
        for round in 0..3_usize {
            let counted = step(&status, &[&finished]);
            assert_eq!((counted.succeeded, counted.all_succeeded()), (0, 1));
            assert_eq!(counted.to_release.len(), round.min(1), "released once the status is seen");
            status.uncounted_terminated_pods = Some(counted.uncounted);
        }
        let released = pod("a", "Succeeded", false);
        let counted = step(&status, &[&released]);
        assert_eq!((counted.succeeded, counted.all_succeeded()), (1, 1));
        status.succeeded = Some(counted.succeeded);
        status.uncounted_terminated_pods = Some(counted.uncounted);
        assert_eq!(step(&status, &[&released]).all_succeeded(), 1);
        assert_eq!(step(&status, &[]).all_succeeded(), 1);
    }

    #[test]
    fn a_pod_removed_while_it_ran_has_failed() {
        let mut running = pod("a", "Running", true);
        running.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(step(&JobStatus::default(), &[&running]).all_failed(), 1);
    }
}
