//! What workload controllers ask of a Pod, and how they make one. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A Pod that holds no process any more.
pub(crate) fn is_terminal(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// The phase; `Pending` until the node reports one.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|s| s.phase.as_deref()).unwrap_or("Pending")
}

/// Whether deletion has begun.
pub(crate) fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether a node is to run it.
pub(crate) fn is_assigned(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|s| s.node_name.as_deref().is_some_and(|n| !n.is_empty()))
}

/// Counts toward replicas: neither finished nor on its way out.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && !is_deleting(pod)
}

/// The condition of that type.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|c| c.type_ == kind)
}

/// Whether the `Ready` condition holds.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|c| c.status == "True")
}

/// When the Pod counts as available: ready since then for `min_ready`; `None` while not ready.
pub(crate) fn available_at(pod: &Pod, min_ready: Option<i32>) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|c| c.status == "True")?;
    let seconds = u64::try_from(min_ready.unwrap_or(0)).unwrap_or(0);
    match &ready.last_transition_time {
        Some(since) => since.0.checked_add(Duration::from_secs(seconds)).ok(),
        None if seconds == 0 => Some(Timestamp::MIN),
        None => None,
    }
}

/// Whether the Pod is available at `now`.
pub(crate) fn is_available(pod: &Pod, min_ready: Option<i32>, now: Timestamp) -> bool {
    available_at(pod, min_ready).is_some_and(|at| at <= now)
}

/// The next time at which a ready Pod becomes available without any event.
pub(crate) fn next_availability<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready: Option<i32>,
    now: Timestamp,
) -> Option<Timestamp> {
    pods.into_iter().filter_map(|pod| available_at(pod, min_ready)).filter(|at| *at > now).min()
}

/// How often the Pod's containers were restarted.
pub(crate) fn restarts(pod: &Pod) -> i32 {
    let Some(status) = &pod.status else { return 0 };
    let all = status.init_container_statuses.iter().chain(&status.container_statuses);
    all.flatten().map(|c| c.restart_count).sum()
}

/// A Pod without a name from a template; the caller names it.
pub(crate) fn from_template(template: &PodTemplateSpec) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Where a Pod stands in the queue of those to remove when there are too many: the smallest goes
/// first. Unassigned before assigned, pending before running, not ready before ready, cheap before
/// dear, the latest ready first, the most restarted first, the newest first.
pub(crate) fn removal_rank(pod: &Pod) -> impl Ord + use<> {
    let assigned = is_assigned(pod);
    let phase = match phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let ready = is_ready(pod);
    let cost = pod
        .metadata
        .annotations
        .as_ref()
        .and_then(|a| a.get("controller.kubernetes.io/pod-deletion-cost"))
        .and_then(|cost| cost.parse::<i32>().ok())
        .unwrap_or(0);
    let ready_since = condition(pod, "Ready")
        .filter(|_| ready)
        .and_then(|c| c.last_transition_time.as_ref())
        .map(|t| t.0);
    let created = pod.metadata.creation_timestamp.as_ref().map(|t| t.0);
    (
        assigned,
        phase,
        ready,
        cost,
        std::cmp::Reverse(ready_since),
        std::cmp::Reverse(restarts(pod)),
        std::cmp::Reverse(created),
        pod.metadata.name.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(value: serde_json::Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_least_useful_pod_goes_first() {
        let ready =
            |at: &str| json!([{"type": "Ready", "status": "True", "lastTransitionTime": at}]);
        let mut pods = [
            pod(json!({"metadata": {"name": "old"}, "spec": {"nodeName": "n", "containers": []},
                "status": {"phase": "Running", "conditions": ready("2026-01-01T00:00:00Z")}})),
            pod(json!({"metadata": {"name": "new"}, "spec": {"nodeName": "n", "containers": []},
                "status": {"phase": "Running", "conditions": ready("2026-01-02T00:00:00Z")}})),
            pod(
                json!({"metadata": {"name": "starting"}, "spec": {"nodeName": "n", "containers": []},
                "status": {"phase": "Running"}}),
            ),
            pod(json!({"metadata": {"name": "unassigned"}, "spec": {"containers": []}})),
            pod(json!({"metadata": {"name": "cheap", "annotations":
                {"controller.kubernetes.io/pod-deletion-cost": "-5"}},
                "spec": {"nodeName": "n", "containers": []},
                "status": {"phase": "Running", "conditions": ready("2025-01-01T00:00:00Z")}})),
        ];
        pods.sort_by_cached_key(removal_rank);
        let names: Vec<_> = pods.iter().map(|p| p.metadata.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["unassigned", "starting", "cheap", "new", "old"]);
    }

    #[test]
    fn a_pod_is_available_only_after_it_was_ready_long_enough() {
        let pod = pod(json!({"metadata": {"name": "p"}, "status": {"conditions":
            [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}));
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert!(is_available(&pod, None, at("2026-01-01T00:00:00Z")));
        assert!(!is_available(&pod, Some(10), at("2026-01-01T00:00:09Z")));
        assert!(is_available(&pod, Some(10), at("2026-01-01T00:00:10Z")));
        assert_eq!(
            next_availability([&pod], Some(10), at("2026-01-01T00:00:09Z")),
            Some(at("2026-01-01T00:00:10Z"))
        );
    }
}
