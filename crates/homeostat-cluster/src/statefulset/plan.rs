//! The next step of a StatefulSet, and its status. Pure.
//!
//! `OrderedReady`: from the lowest number, one at a time, each waits for the one before. `Parallel`:
//! all at once. Updates go from the highest number down to the partition, one Pod at a time.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::{ordinal, revision};
use crate::history::Revisions;
use crate::pod;

/// What there is.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub(super) set: &'a StatefulSet,
    pub(super) spec: &'a StatefulSetSpec,
    pub(super) revisions: &'a Revisions,
    pub(super) pods: &'a [Arc<Pod>],
}

/// What to do.
#[derive(Debug, PartialEq)]
pub(super) enum Action<'a> {
    /// Make the Pod of that number from that revision, and its claims.
    Create { ordinal: i32, revision: String },
    /// Remove this Pod; a later step makes it anew if it is still wanted.
    Delete(&'a Pod),
}

impl<'a> Observed<'a> {
    fn start(&self) -> i32 {
        self.spec.ordinals.as_ref().and_then(|o| o.start).unwrap_or(0)
    }

    /// The numbers that there should be.
    pub(super) fn wanted(&self) -> std::ops::Range<i32> {
        let start = self.start();
        start..start.saturating_add(self.spec.replicas.unwrap_or(1))
    }

    fn pod(&self, number: i32) -> Option<&'a Pod> {
        self.pods.iter().map(AsRef::as_ref).find(|pod| ordinal::of(self.set, pod) == Some(number))
    }

    /// The numbers below this one keep the former revision.
    fn partition(&self) -> i32 {
        let rolling = self.spec.update_strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
        self.start().saturating_add(rolling.and_then(|r| r.partition).unwrap_or(0))
    }

    fn is_on_delete(&self) -> bool {
        self.spec.update_strategy.as_ref().and_then(|s| s.type_.as_deref()) == Some("OnDelete")
    }

    /// Running, ready for long enough, and staying.
    fn is_healthy(&self, pod: &Pod, now: Timestamp) -> bool {
        pod::is_active(pod)
            && pod::phase(pod) == "Running"
            && pod::is_available(pod, self.spec.min_ready_seconds, now)
    }

    /// The revision a missing Pod is made from: the new one when the update has come down to its
    /// number, that is when every Pod above it has been updated.
    fn revision_for(&self, number: i32) -> String {
        let update = self.revisions.update();
        let reached = number >= self.partition()
            && self
                .pods
                .iter()
                .filter(|pod| {
                    let own = ordinal::of(self.set, pod);
                    own.is_some_and(|own| own > number && self.wanted().contains(&own))
                })
                .all(|pod| ordinal::revision(pod) == Some(update.as_str()));
        if reached || self.is_on_delete() {
            update
        } else {
            revision::current(self.revisions, self.set)
        }
    }
}

/// The actions of this step, in order.
pub(super) fn plan<'a>(observed: &Observed<'a>, now: Timestamp) -> Vec<Action<'a>> {
    let ordered = observed.spec.pod_management_policy.as_deref() != Some("Parallel");
    let mut actions = Vec::new();
    for number in observed.wanted() {
        match observed.pod(number) {
            None => {
                let revision = observed.revision_for(number);
                actions.push(Action::Create { ordinal: number, revision });
            }
            Some(pod) if pod::is_terminal(pod) && !pod::is_deleting(pod) => {
                actions.push(Action::Delete(pod));
            }
            Some(pod) if observed.is_healthy(pod, now) => continue,
            Some(_) => {}
        }
        if ordered {
            return actions;
        }
    }
    let mut condemned: Vec<(i32, &Pod)> = observed
        .pods
        .iter()
        .filter_map(|pod| Some((ordinal::of(observed.set, pod)?, pod.as_ref())))
        .filter(|(number, _)| !observed.wanted().contains(number))
        .collect();
    condemned.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    for (_, pod) in condemned {
        if !pod::is_deleting(pod) {
            actions.push(Action::Delete(pod));
        }
        if ordered {
            return actions;
        }
    }
    if actions.is_empty() && !observed.is_on_delete() {
        actions.extend(update(observed, now));
    }
    actions
}

/// The one Pod to replace next, from the highest number down, if all above it are healthy.
fn update<'a>(observed: &Observed<'a>, now: Timestamp) -> Option<Action<'a>> {
    let update = observed.revisions.update();
    for number in observed.wanted().rev().take_while(|number| *number >= observed.partition()) {
        let pod = observed.pod(number)?;
        if ordinal::revision(pod) != Some(update.as_str()) && !pod::is_deleting(pod) {
            return Some(Action::Delete(pod));
        }
        if !observed.is_healthy(pod, now) {
            return None;
        }
    }
    None
}

/// Counters and revisions.
pub(super) fn status(observed: &Observed<'_>, now: Timestamp) -> StatefulSetStatus {
    let current = revision::current(observed.revisions, observed.set);
    let update = observed.revisions.update();
    let count = |test: &dyn Fn(&Pod) -> bool| {
        i32::try_from(observed.pods.iter().filter(|pod| test(pod)).count()).unwrap_or(i32::MAX)
    };
    let of =
        |revision: &str| count(&|p| pod::is_active(p) && ordinal::revision(p) == Some(revision));
    let is_ready = |p: &Pod| pod::phase(p) == "Running" && pod::is_ready(p);
    let min_ready = observed.spec.min_ready_seconds;
    let old = observed.set.status.as_ref();
    let mut status = StatefulSetStatus {
        replicas: count(&|_| true),
        ready_replicas: Some(count(&is_ready)),
        available_replicas: Some(count(&|p| is_ready(p) && pod::is_available(p, min_ready, now))),
        current_replicas: Some(of(&current)),
        updated_replicas: Some(of(&update)),
        current_revision: Some(current),
        update_revision: Some(update.clone()),
        observed_generation: observed.set.metadata.generation,
        collision_count: old.and_then(|s| s.collision_count).or(Some(0)),
        conditions: old.and_then(|s| s.conditions.clone()),
    };
    let rolled = status.updated_replicas == Some(status.replicas)
        && status.ready_replicas == Some(status.replicas);
    if rolled && !observed.is_on_delete() {
        status.current_replicas = status.updated_replicas;
        status.current_revision = Some(update);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::ControllerRevision;
    use serde_json::json;

    fn set(replicas: i32, policy: &str, partition: i32) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "db", "generation": 1},
            "spec": {"replicas": replicas, "selector": {}, "template": {"spec": {"containers": []}},
                "podManagementPolicy": policy,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}},
            "status": {"replicas": 0, "currentRevision": "db-old"},
        }))
        .unwrap()
    }

    fn pod(number: i32, revision: &str, ready: bool) -> Arc<Pod> {
        let ready = if ready { "True" } else { "False" };
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": format!("db-{number}"),
                    "labels": {"controller-revision-hash": revision}},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap(),
        )
    }

    fn history(set: &StatefulSet) -> Revisions {
        let named = |name: &str, number: i64| -> Arc<ControllerRevision> {
            Arc::new(
                serde_json::from_value(
                    json!({"metadata": {"name": name, "uid": name}, "revision": number}),
                )
                .unwrap(),
            )
        };
        let mut revisions = Revisions::sort(vec![named("db-old", 1)], set);
        revisions.set_update(named("db-new", 2));
        revisions
    }

    fn next(set: &StatefulSet, pods: &[Arc<Pod>]) -> Vec<String> {
        let revisions = history(set);
        let spec = set.spec.as_ref().unwrap();
        let observed = Observed { set, spec, revisions: &revisions, pods };
        plan(&observed, Timestamp::UNIX_EPOCH)
            .into_iter()
            .map(|action| match action {
                Action::Create { ordinal, revision } => format!("create {ordinal} {revision}"),
                Action::Delete(pod) => format!("delete {}", pod.metadata.name.as_ref().unwrap()),
            })
            .collect()
    }

    #[test]
    fn ordered_pods_wait_for_the_one_before() {
        let set = set(3, "OrderedReady", 0);
        assert_eq!(next(&set, &[]), ["create 0 db-new"]);
        assert!(next(&set, &[pod(0, "db-new", false)]).is_empty());
        assert_eq!(next(&set, &[pod(0, "db-new", true)]), ["create 1 db-new"]);
    }

    #[test]
    fn numbers_beyond_all_bounds_do_no_harm() {
        let mut set = set(i32::MAX, "OrderedReady", 0);
        set.spec.as_mut().unwrap().ordinals = serde_json::from_value(json!({"start": 7})).unwrap();
        assert_eq!(next(&set, &[]), ["create 7 db-new"]);
    }

    #[test]
    fn parallel_pods_do_not_wait() {
        let made = next(&set(2, "Parallel", 0), &[]);
        assert_eq!(made, ["create 0 db-new", "create 1 db-new"]);
    }

    #[test]
    fn the_highest_number_goes_first_when_there_are_too_many() {
        let pods = [pod(0, "db-new", true), pod(1, "db-new", true), pod(2, "db-new", true)];
        assert_eq!(next(&set(1, "OrderedReady", 0), &pods), ["delete db-2"]);
    }

    #[test]
    fn updates_go_down_one_by_one_and_stop_at_the_partition() {
        let old = [pod(0, "db-old", true), pod(1, "db-old", true), pod(2, "db-old", true)];
        assert_eq!(next(&set(3, "OrderedReady", 0), &old), ["delete db-2"]);
        let gone = [pod(0, "db-old", true), pod(1, "db-old", true)];
        assert_eq!(next(&set(3, "OrderedReady", 0), &gone), ["create 2 db-new"]);
        let starting = [pod(0, "db-old", true), pod(1, "db-old", true), pod(2, "db-new", false)];
        assert!(next(&set(3, "OrderedReady", 0), &starting).is_empty());
        let updated = [pod(0, "db-old", true), pod(1, "db-old", true), pod(2, "db-new", true)];
        assert_eq!(next(&set(3, "OrderedReady", 0), &updated), ["delete db-1"]);
        assert!(next(&set(3, "OrderedReady", 2), &updated).is_empty());
        let crashed = [pod(1, "db-old", true), pod(2, "db-new", true)];
        assert_eq!(next(&set(3, "OrderedReady", 0), &crashed), ["create 0 db-old"]);
    }

    #[test]
    fn a_finished_update_becomes_the_current_revision() {
        let set = set(1, "OrderedReady", 0);
        let revisions = history(&set);
        let pods = [pod(0, "db-new", true)];
        let spec = set.spec.as_ref().unwrap();
        let observed = Observed { set: &set, spec, revisions: &revisions, pods: &pods };
        let status = status(&observed, Timestamp::UNIX_EPOCH);
        assert_eq!(status.current_revision.as_deref(), Some("db-new"));
        assert_eq!(status.available_replicas, Some(1));
    }
}
