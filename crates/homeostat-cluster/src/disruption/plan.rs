//! How many Pods of a budget may be disrupted now. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{
    PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::pod;
use crate::portion::{self, Round};

/// An eviction that has not become a deletion by then never will.
const DELETION_TIMEOUT: Duration = Duration::from_secs(2 * 60);

const ALLOWED: &str = "DisruptionAllowed";

/// The workloads that the Pods belong to, by uid, with the number of Pods each asks for; or why
/// that cannot be told.
pub(super) type Scales = Result<BTreeMap<String, i32>, String>;

/// Whether the budget is a share of what the workloads ask for, so that they have to be looked up.
pub(super) fn asks_for_scales(spec: &PodDisruptionBudgetSpec) -> bool {
    spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
}

/// The status, and when to look again although nothing happens.
pub(super) fn status(
    budget: &PodDisruptionBudget,
    pods: &[&Pod],
    scales: &Scales,
    now: Timestamp,
) -> (PodDisruptionBudgetStatus, Option<Timestamp>) {
    let old = budget.status.clone().unwrap_or_default();
    let disrupted = still_to_go(&old, pods, now);
    let again = disrupted.values().map(|at| at.0 + DELETION_TIMEOUT).min();
    let healthy = pods.iter().filter(|pod| {
        let going = disrupted.contains_key(pod.metadata.name.as_deref().unwrap_or_default());
        !pod::is_deleting(pod) && !going && pod::is_ready(pod)
    });
    let current_healthy = count(healthy.count());
    let (expected_pods, desired_healthy) = match (&budget.spec, scales) {
        (Some(spec), Ok(scales)) => wanted(spec, pods, scales),
        // On the safe side.
        _ => (old.expected_pods.unwrap_or(0), old.desired_healthy.unwrap_or(0)),
    };
    let spare = current_healthy - desired_healthy;
    let allowed = if expected_pods > 0 && scales.is_ok() { spare.max(0) } else { 0 };
    let status = PodDisruptionBudgetStatus {
        current_healthy: Some(current_healthy),
        desired_healthy: Some(desired_healthy),
        expected_pods: Some(expected_pods),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: budget.metadata.generation,
        conditions: Some(vec![condition(budget, &old, allowed, scales, now)]),
    };
    (status, again)
}

/// The evictions that were granted and are not deletions yet.
fn still_to_go(
    old: &PodDisruptionBudgetStatus,
    pods: &[&Pod],
    now: Timestamp,
) -> BTreeMap<String, Time> {
    let mut granted = old.disrupted_pods.clone().unwrap_or_default();
    granted.retain(|name, at| {
        let pod = pods.iter().find(|pod| pod.metadata.name.as_ref() == Some(name));
        pod.is_some_and(|pod| !pod::is_deleting(pod)) && at.0 + DELETION_TIMEOUT > now
    });
    granted
}

/// How many Pods there should be, and how many of them must be well.
fn wanted(
    spec: &PodDisruptionBudgetSpec,
    pods: &[&Pod],
    scales: &BTreeMap<String, i32>,
) -> (i32, i32) {
    let asked_for = scales.values().sum();
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            (asked_for, (asked_for - portion::of(asked_for, most, Round::Up)).max(0))
        }
        (None, Some(least @ IntOrString::String(_))) => {
            (asked_for, portion::of(asked_for, least, Round::Up))
        }
        (None, Some(IntOrString::Int(least))) => (count(pods.len()), *least),
        (None, None) => (count(pods.len()), 0),
    }
}

fn condition(
    budget: &PodDisruptionBudget,
    old: &PodDisruptionBudgetStatus,
    allowed: i32,
    scales: &Scales,
    now: Timestamp,
) -> Condition {
    let (status, reason, message) = match scales {
        Err(why) => ("False", "SyncFailed", why.as_str()),
        Ok(_) if allowed > 0 => ("True", "SufficientPods", ""),
        Ok(_) => ("False", "InsufficientPods", ""),
    };
    let before = old.conditions.iter().flatten().find(|condition| condition.type_ == ALLOWED);
    let unchanged = before.filter(|before| before.status == status);
    Condition {
        type_: ALLOWED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: unchanged
            .map_or(Time(now), |before| before.last_transition_time.clone()),
        observed_generation: budget.metadata.generation,
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn budget(spec: &Value, granted: &Value) -> PodDisruptionBudget {
        let status = json!({"disruptedPods": granted, "currentHealthy": 0, "desiredHealthy": 0,
            "disruptionsAllowed": 0, "expectedPods": 0});
        serde_json::from_value(
            json!({"metadata": {"generation": 2}, "spec": spec, "status": status}),
        )
        .unwrap()
    }

    fn pods(ready: &[bool]) -> Vec<Pod> {
        let pod = |(index, ready): (usize, &bool)| {
            let ready = if *ready { "True" } else { "False" };
            serde_json::from_value(json!({"metadata": {"name": format!("p{index}")},
                "status": {"conditions": [{"type": "Ready", "status": ready}]}}))
            .unwrap()
        };
        ready.iter().enumerate().map(pod).collect()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn of_ten(spec: &Value, ready: &[bool]) -> [i32; 3] {
        let pods = pods(ready);
        let refs: Vec<&Pod> = pods.iter().collect();
        let scales = Ok([("deployment".to_owned(), 10)].into());
        let (status, _) = status(&budget(spec, &json!({})), &refs, &scales, at(0));
        [status.expected_pods, status.desired_healthy, status.disruptions_allowed]
            .map(Option::unwrap)
    }

    #[test]
    fn shares_are_of_what_the_workload_asks_for_and_round_up() {
        let well = [true; 9];
        assert_eq!(of_ten(&json!({"minAvailable": 7}), &well), [9, 7, 2]);
        assert_eq!(of_ten(&json!({"minAvailable": "75%"}), &well), [10, 8, 1]);
        assert_eq!(of_ten(&json!({"maxUnavailable": "25%"}), &well), [10, 7, 2]);
        assert_eq!(of_ten(&json!({"maxUnavailable": 1}), &well), [10, 9, 0]);
        assert_eq!(of_ten(&json!({"maxUnavailable": 20}), &well), [10, 0, 9]);
        assert_eq!(of_ten(&json!({"minAvailable": 1}), &[]), [0, 1, 0]);
    }

    #[test]
    fn a_pod_whose_eviction_was_granted_is_not_well_until_it_goes_or_the_grant_expires() {
        let pods = pods(&[true, true, true]);
        let refs: Vec<&Pod> = pods.iter().collect();
        let granted = json!({"p0": "1970-01-01T00:01:40Z", "gone": "1970-01-01T00:01:40Z"});
        let budget = budget(&json!({"minAvailable": 1}), &granted);
        let (soon, again) = status(&budget, &refs, &Ok(BTreeMap::new()), at(101));
        assert_eq!((soon.current_healthy, soon.disruptions_allowed), (Some(2), Some(1)));
        assert_eq!(soon.disrupted_pods.unwrap().into_keys().collect::<Vec<_>>(), ["p0"]);
        assert_eq!(again, Some(at(220)));
        let (late, again) = status(&budget, &refs, &Ok(BTreeMap::new()), at(220));
        assert_eq!((late.current_healthy, late.disrupted_pods, again), (Some(3), None, None));
    }

    #[test]
    fn what_cannot_be_counted_allows_nothing() {
        let pods = pods(&[true]);
        let budget = budget(&json!({"maxUnavailable": 1}), &json!({}));
        let (status, _) = status(&budget, &[&pods[0]], &Err("nobody knows".into()), at(0));
        let condition = &status.conditions.unwrap()[0];
        assert_eq!(status.disruptions_allowed, Some(0));
        assert_eq!(condition.reason, "SyncFailed");
        assert_eq!(condition.message, "nobody knows");
    }
}
