//! Which results are in a Job's counters. Pure.
//!
//! A finished Pod is first named in `uncountedTerminatedPods`, then loses its finalizer, then moves
//! into the counter. Each of the three states survives a crash. Successes of an Indexed Job need no
//! names: what counts is the index, and it is in `completedIndexes` before the finalizer goes.

use std::collections::BTreeSet;

use homeostat::kube::ResourceExt;
use k8s_openapi::api::batch::v1::UncountedTerminatedPods;
use k8s_openapi::api::core::v1::Pod;

use super::indexed::{self, is_indexed};
use super::indexes::Indexes;
use super::observed::Observed;
use super::pause::Waiting;
use super::policy::Ruling;
use super::verdict::Ending;
use crate::pod;

/// How many Pods a status names at most: it must not grow without bounds.
const MOST_NAMED: usize = 500;

/// All results that are known, wherever they are written down.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    /// The indexes that have succeeded.
    pub(super) completed: Indexes,
    /// The indexes that are given up, where each has a limit.
    pub(super) failed_indexes: Option<Indexes>,
}

/// Counts every result once.
pub(super) fn tally(observed: &Observed<'_, '_>) -> Tally {
    let status = observed.status;
    let named = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let (named_succeeded, named_failed) = (list(named.succeeded), list(named.failed));
    let is_named = |pod: &Pod| {
        pod.uid().is_some_and(|uid| named_succeeded.contains(&uid) || named_failed.contains(&uid))
    };
    let new: Vec<&Pod> =
        observed.tracked().filter(|pod| observed.is_counted(pod) && !is_named(pod)).collect();
    let new_failed = new
        .iter()
        .filter(|pod| observed.has_failed(pod) && observed.ruling(pod) != Ruling::Ignore)
        .count();
    let failed = status.failed.unwrap_or(0) + number(named_failed.len() + new_failed);
    let has_succeeded = |pod: &Pod| pod::phase(pod) == "Succeeded";
    if !is_indexed(observed.spec) {
        let new = new.iter().filter(|pod| has_succeeded(pod)).count();
        let succeeded = status.succeeded.unwrap_or(0) + number(named_succeeded.len() + new);
        return Tally { succeeded, failed, completed: Indexes::default(), failed_indexes: None };
    }
    // A Pod that was named because the Job ends says nothing of its index any more.
    let succeeded = new.iter().filter(|pod| has_succeeded(pod));
    let succeeded = succeeded.filter_map(|pod| observed.index(pod)).collect();
    let completed = observed.known_completed().with(&succeeded);
    let failed_indexes = observed.limit_per_index().map(|limit| {
        let text = status.failed_indexes.as_deref().unwrap_or_default();
        let failed = new.iter().filter(|pod| exceeds(observed, pod, limit));
        let failed = failed.filter_map(|pod| observed.index(pod));
        let failed = failed.filter(|index| !completed.has(*index)).collect();
        Indexes::read(text, observed.completions()).with(&failed)
    });
    Tally { succeeded: completed.total(), failed, completed, failed_indexes }
}

/// Whether with this Pod its index has failed for good.
fn exceeds(observed: &Observed<'_, '_>, pod: &Pod, limit: i32) -> bool {
    observed.has_failed(pod)
        && match observed.ruling(pod) {
            Ruling::Ignore => false,
            Ruling::FailIndex => true,
            Ruling::Count | Ruling::FailJob(_) => indexed::failures_before(pod).counted >= limit,
        }
}

/// The counters after one step.
#[derive(Debug, Default)]
pub(super) struct Counted<'p> {
    /// Results stored in the counters.
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    /// Results named in the status but not in the counters yet.
    pub(super) uncounted: UncountedTerminatedPods,
    /// The Pods whose results the status as read holds, or that have none, and that still carry the
    /// finalizer. A Pod named only now keeps it until the cache shows the status that names it.
    pub(super) to_release: Vec<&'p Pod>,
}

/// Moves released Pods into the counters and names the newly finished ones. Once the Job has failed
/// every Pod that has not ended counts as failed; those in `waiting` are kept for their successors.
pub(super) fn step<'p>(
    observed: &Observed<'_, 'p>,
    waiting: &Waiting<'p>,
    ending: Option<Ending>,
) -> Counted<'p> {
    let tracked: BTreeSet<String> = observed.tracked().filter_map(ResourceExt::uid).collect();
    let status = observed.status;
    let before = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let (mut succeeded, stored_succeeded) = split(list(before.succeeded), &tracked);
    let (mut failed, stored_failed) = split(list(before.failed), &tracked);
    let mut counted = Counted {
        succeeded: status.succeeded.unwrap_or(0) + stored_succeeded,
        failed: status.failed.unwrap_or(0) + stored_failed,
        ..Counted::default()
    };
    let completed = observed.known_completed();
    let mut release = |pod: &'p Pod| {
        // One that still runs is stopped first.
        if !pod::is_active(pod) {
            counted.to_release.push(pod);
        }
    };
    for pod in observed.tracked() {
        let Some(uid) = pod.uid() else { continue };
        let has_failed = observed.has_failed(pod);
        let is_full = succeeded.len() + failed.len() >= MOST_NAMED;
        if succeeded.contains(&uid) || failed.contains(&uid) {
            release(pod);
        } else if pod::phase(pod) == "Succeeded" {
            if !is_indexed(observed.spec) {
                succeeded.extend((!is_full).then_some(uid));
            } else if observed.index(pod).is_none_or(|index| completed.has(index)) {
                release(pod);
            }
        } else if has_failed || ending == Some(Ending::Failure) {
            let is_kept = ending.is_none() && waiting.keeps(pod);
            if is_kept {
                continue;
            }
            if !observed.is_counted(pod) || observed.ruling(pod) == Ruling::Ignore {
                release(pod);
            } else {
                failed.extend((!is_full).then_some(uid));
            }
        } else if ending == Some(Ending::Success) {
            release(pod);
        }
    }
    counted.uncounted = UncountedTerminatedPods {
        succeeded: (!succeeded.is_empty()).then_some(succeeded),
        failed: (!failed.is_empty()).then_some(failed),
    };
    counted
}

/// Splits named uids into those still tracked and the number of those that can be counted.
fn split(uids: Vec<String>, tracked: &BTreeSet<String>) -> (Vec<String>, i32) {
    let all = uids.len();
    let kept: Vec<String> = uids.into_iter().filter(|uid| tracked.contains(uid)).collect();
    let released = number(all - kept.len());
    (kept, released)
}

fn list(uids: Option<Vec<String>>) -> Vec<String> {
    uids.unwrap_or_default()
}

/// A count as statuses have it.
pub(super) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::TRACKING;
    use super::*;
    use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
    use serde_json::json;

    fn pod(uid: &str, phase: &str, tracked: bool) -> Pod {
        let finalizers = if tracked { vec![TRACKING] } else { vec![] };
        serde_json::from_value(
            json!({"metadata": {"name": uid, "uid": uid, "finalizers": finalizers},
            "status": {"phase": phase}}),
        )
        .unwrap()
    }

    fn deleted(mut pod: Pod) -> Pod {
        pod.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        pod
    }

    /// One step: the counters, and all successes and failures that are known.
    fn after<'p>(status: &JobStatus, pods: &[&'p Pod]) -> (Counted<'p>, i32, i32) {
        let spec = JobSpec::default();
        let observed = Observed { spec: &spec, status, pods };
        let tally = tally(&observed);
        (step(&observed, &Waiting::default(), None), tally.succeeded, tally.failed)
    }

    #[test]
    fn a_result_is_counted_once_even_when_every_step_is_repeated() {
        let mut status = JobStatus::default();
        let finished = pod("a", "Succeeded", true);
        for round in 0..3_usize {
            let (counted, all, _) = after(&status, &[&finished]);
            assert_eq!((counted.succeeded, all), (0, 1));
            assert_eq!(counted.to_release.len(), round.min(1), "released once the status is seen");
            status.uncounted_terminated_pods = Some(counted.uncounted);
        }
        let released = pod("a", "Succeeded", false);
        let (counted, all, _) = after(&status, &[&released]);
        assert_eq!((counted.succeeded, all), (1, 1));
        status.succeeded = Some(counted.succeeded);
        status.uncounted_terminated_pods = Some(counted.uncounted);
        assert_eq!(after(&status, &[&released]).1, 1);
        assert_eq!(after(&status, &[]).1, 1);
    }

    #[test]
    fn a_pod_removed_while_it_ran_has_failed() {
        let running = deleted(pod("a", "Running", true));
        assert_eq!(after(&JobStatus::default(), &[&running]).2, 1);
    }

    #[test]
    fn a_pod_counted_as_failed_does_not_count_again_when_it_ends_well() {
        let status: JobStatus =
            serde_json::from_value(json!({"uncountedTerminatedPods": {"failed": ["a"]}})).unwrap();
        let ended = deleted(pod("a", "Succeeded", true));
        let (counted, succeeded, failed) = after(&status, &[&ended]);
        assert_eq!((succeeded, failed), (0, 1));
        assert_eq!(counted.to_release.len(), 1);
    }

    #[test]
    fn a_status_never_names_too_many_pods() {
        let pods: Vec<Pod> =
            (0..2 * MOST_NAMED).map(|n| pod(&n.to_string(), "Failed", true)).collect();
        let (counted, _, failed) = after(&JobStatus::default(), &pods.iter().collect::<Vec<_>>());
        assert_eq!(failed, number(2 * MOST_NAMED));
        assert_eq!(counted.uncounted.failed.unwrap().len(), MOST_NAMED);
    }
}
