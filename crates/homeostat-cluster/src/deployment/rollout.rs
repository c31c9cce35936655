//! How many replicas each ReplicaSet of a Deployment should have now. Pure.
//!
//! One step at a time: the new set grows within the surge, the old ones shrink within what may be
//! unavailable; every step waits for the counters of the step before.

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSet};

use super::limits::{is_recreate, max_surge, max_unavailable};
use super::revision::{DESIRED, MAXIMUM, Sets, replicas};

/// The size one ReplicaSet should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) uid: String,
    pub(super) replicas: i32,
}

fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|s| s.available_replicas).unwrap_or(0)
}

fn total<'a>(sets: impl IntoIterator<Item = &'a Arc<ReplicaSet>>) -> i32 {
    sets.into_iter().map(|set| replicas(set)).sum()
}

/// Whether the new ReplicaSet may come into being: with `Recreate` only after the last old Pod.
pub(super) fn may_create(spec: &DeploymentSpec, sets: &Sets) -> bool {
    !is_recreate(spec) || sets.old.iter().all(|set| is_drained(set))
}

fn is_drained(set: &ReplicaSet) -> bool {
    let status = set.status.clone().unwrap_or_default();
    replicas(set) == 0
        && status.replicas == 0
        && status.terminating_replicas.unwrap_or(0) == 0
        && status.observed_generation >= set.metadata.generation
}

/// The size a new ReplicaSet starts with.
pub(super) fn first_size(spec: &DeploymentSpec, sets: &Sets) -> i32 {
    grown(spec, 0, total(&sets.old))
}

/// How far a new set of `size` may grow while there are `others` in old ones.
fn grown(spec: &DeploymentSpec, size: i32, others: i32) -> i32 {
    let desired = spec.replicas.unwrap_or(1);
    if is_recreate(spec) || size > desired {
        return desired;
    }
    let room = desired + max_surge(spec) - size - others;
    size + room.clamp(0, desired - size)
}

/// The sizes of all sets after the next step.
pub(super) fn plan(spec: &DeploymentSpec, paused: bool, sets: &Sets) -> Vec<Size> {
    let mut sizes: Vec<Size> = sets
        .all()
        .map(|set| Size { uid: set.uid().unwrap_or_default(), replicas: replicas(set) })
        .collect();
    if paused || is_scaled(spec, sets) {
        scale(spec, sets, &mut sizes);
    } else if is_recreate(spec) {
        for (size, set) in sizes.iter_mut().zip(sets.all()) {
            let is_new = Some(set) == sets.new.as_ref();
            let old_gone = may_create(spec, sets);
            size.replicas = match (is_new, old_gone) {
                (true, true) => spec.replicas.unwrap_or(1),
                (true, false) => size.replicas,
                (false, _) => 0,
            };
        }
    } else {
        roll(spec, sets, &mut sizes);
    }
    sizes
}

/// Whether the Deployment's replicas changed since the sets were last sized.
fn is_scaled(spec: &DeploymentSpec, sets: &Sets) -> bool {
    let desired = spec.replicas.unwrap_or(1).to_string();
    sets.all()
        .filter(|set| replicas(set) > 0)
        .any(|set| set.annotations().get(DESIRED).is_some_and(|text| *text != desired))
}

fn roll(spec: &DeploymentSpec, sets: &Sets, sizes: &mut [Size]) {
    let Some(new) = &sets.new else { return };
    let (old_sizes, new_size) = sizes.split_at_mut(sets.old.len());
    let Some(new_size) = new_size.first_mut() else { return };
    let grown = grown(spec, new_size.replicas, total(&sets.old));
    if grown != new_size.replicas {
        new_size.replicas = grown;
        return;
    }
    let least = spec.replicas.unwrap_or(1) - max_unavailable(spec);
    let not_yet = replicas(new) - available(new);
    let mut removable = total(sets.all()) - least - not_yet;
    if removable <= 0 {
        return;
    }
    // Pods that are not available serve nobody: they go first.
    for (size, set) in old_sizes.iter_mut().zip(&sets.old) {
        let broken = (size.replicas - available(set)).clamp(0, removable);
        size.replicas -= broken;
        removable -= broken;
    }
    let mut spare = sets.all().map(|set| available(set)).sum::<i32>() - least;
    for size in old_sizes {
        let less = size.replicas.min(spare).max(0);
        size.replicas -= less;
        spare -= less;
    }
}

fn scale(spec: &DeploymentSpec, sets: &Sets, sizes: &mut [Size]) {
    let desired = spec.replicas.unwrap_or(1);
    let active: Vec<usize> = (0..sizes.len()).filter(|i| sizes[*i].replicas > 0).collect();
    if active.len() <= 1 {
        // The only active set, or else the newest: `all` puts the current one last.
        if let Some(index) = active.first().copied().or(sizes.len().checked_sub(1)) {
            sizes[index].replicas = desired;
        }
        return;
    }
    if sets.new.as_ref().is_some_and(|new| replicas(new) == desired && available(new) == desired) {
        for size in &mut sizes[..sets.old.len()] {
            size.replicas = 0;
        }
        return;
    }
    if is_recreate(spec) {
        return;
    }
    let allowed = if desired > 0 { desired + max_surge(spec) } else { 0 };
    let present: i32 = active.iter().map(|i| sizes[*i].replicas).sum();
    let mut remaining = allowed - present;
    let mut order = active;
    let newest_first = remaining > 0;
    order.sort_by_key(|i| {
        let age = i64::try_from(*i).unwrap_or(0);
        (-sizes[*i].replicas, if newest_first { -age } else { age })
    });
    for index in &order {
        let Some(set) = sets.all().nth(*index) else { continue };
        let before = set
            .annotations()
            .get(MAXIMUM)
            .and_then(|text| text.parse::<i64>().ok())
            .filter(|maximum| *maximum > 0)
            .unwrap_or(i64::from(present));
        let size = i64::from(sizes[*index].replicas);
        let ideal =
            if before == 0 { 0 } else { (size * i64::from(allowed) * 2 + before) / (before * 2) };
        let change = i32::try_from(ideal - size).unwrap_or(0);
        let change =
            if remaining > 0 { change.clamp(0, remaining) } else { change.clamp(remaining, 0) };
        sizes[*index].replicas += change;
        remaining -= change;
    }
    if let Some(largest) = order.first() {
        sizes[*largest].replicas = (sizes[*largest].replicas + remaining).max(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(replicas: i32, surge: i32, unavailable: i32) -> DeploymentSpec {
        serde_json::from_value(json!({
            "replicas": replicas, "selector": {}, "template": {},
            "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        }))
        .unwrap()
    }

    fn set(uid: &str, size: i32, available: i32, desired: i32) -> Arc<ReplicaSet> {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": uid, "uid": uid, "generation": 1,
                    "annotations": {DESIRED: desired.to_string(), MAXIMUM: (desired + 2).to_string()}},
                "spec": {"replicas": size, "selector": {}},
                "status": {"replicas": size, "availableReplicas": available, "observedGeneration": 1},
            }))
            .unwrap(),
        )
    }

    fn sizes(spec: &DeploymentSpec, sets: &Sets) -> Vec<i32> {
        plan(spec, false, sets).into_iter().map(|size| size.replicas).collect()
    }

    #[test]
    fn rolling_update_never_drops_below_available() {
        for (surge, unavailable) in [(1, 0), (0, 1), (2, 2), (3, 0)] {
            let spec = spec(5, surge, unavailable);
            let (mut old, mut new) = ((5, 5), (0, 0));
            for _ in 0..40 {
                let sets = Sets {
                    new: Some(set("new", new.0, new.1, 5)),
                    old: vec![set("old", old.0, old.1, 5)],
                };
                let next = sizes(&spec, &sets);
                // Old pods go at once, new ones become available one at a time.
                old = (next[0], next[0]);
                new = (next[1], (new.1 + 1).min(next[1]));
                assert!(old.1 + new.1 >= 5 - unavailable, "{surge}/{unavailable}: {old:?} {new:?}");
                assert!(old.0 + new.0 <= 5 + surge);
            }
            assert_eq!((old.0, new), (0, (5, 5)), "{surge}/{unavailable}");
        }
    }

    #[test]
    fn broken_old_pods_go_first() {
        let sets = Sets {
            new: Some(set("new", 2, 2, 4)),
            old: vec![set("broken", 2, 0, 4), set("good", 2, 2, 4)],
        };
        assert_eq!(sizes(&spec(4, 1, 1), &sets)[0], 0);
    }

    #[test]
    fn recreate_waits_for_the_last_old_pod() {
        let mut spec = spec(2, 0, 0);
        spec.strategy = serde_json::from_value(json!({"type": "Recreate"})).unwrap();
        let busy = Sets { new: None, old: vec![set("old", 0, 0, 2)] };
        let mut leaving = (*busy.old[0]).clone();
        leaving.status.as_mut().unwrap().terminating_replicas = Some(1);
        assert!(may_create(&spec, &busy));
        assert!(!may_create(&spec, &Sets { new: None, old: vec![Arc::new(leaving)] }));
    }

    #[test]
    fn scaling_in_the_middle_of_a_rollout_is_proportional() {
        let sets = Sets { new: Some(set("new", 4, 2, 10)), old: vec![set("old", 8, 8, 10)] };
        let scaled = sizes(&spec(20, 2, 2), &sets);
        assert_eq!(scaled.iter().sum::<i32>(), 22);
        assert!(scaled[0] > 12 && scaled[1] > 6, "{scaled:?}");
    }

    #[test]
    fn scaling_when_only_one_set_is_active_sets_its_size() {
        let sets = Sets { new: Some(set("new", 3, 3, 3)), old: vec![set("old", 0, 0, 3)] };
        assert_eq!(sizes(&spec(1, 1, 0), &sets), [0, 1]);
    }
}
