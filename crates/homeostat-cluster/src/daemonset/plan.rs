//! Which Pods of a DaemonSet to make and which to remove, and its status. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat::EventType;
use homeostat::kube::ResourceExt;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::place;
use super::retry::Retry;
use crate::pod;
use crate::portion::{self, Round};

/// What there is.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) spec: &'a DaemonSetSpec,
    /// Of the current template.
    pub(super) hash: &'a str,
    pub(super) nodes: &'a [Arc<Node>],
    pub(super) pods: &'a [Arc<Pod>],
}

/// What to do.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    /// The nodes that get a Pod.
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<&'a Pod>,
    pub(super) events: Vec<(EventType, &'static str, String)>,
    /// When to look again.
    pub(super) wake: Option<Timestamp>,
}

impl<'a> Observed<'a> {
    /// The Pods by node, the one that counts first: bound ones, and the oldest of them.
    fn by_node(&self) -> BTreeMap<&'a str, Vec<&'a Pod>> {
        let mut all: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
        for pod in self.pods {
            if let Some(node) = place::node_of(pod) {
                all.entry(node).or_default().push(pod);
            }
        }
        for pods in all.values_mut() {
            pods.sort_by_key(|pod| {
                let is_bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
                (Reverse(is_bound), pod.creation_timestamp(), pod.name_any())
            });
        }
        all
    }

    fn is_available(&self, pod: &Pod, now: Timestamp) -> bool {
        pod::is_available(pod, self.spec.min_ready_seconds, now)
    }

    /// How many nodes may have two Pods during an update, and how many none that serves.
    fn limits(&self, wanted: usize) -> (usize, usize) {
        let rolling = self.spec.update_strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
        let surge = resolve(rolling.and_then(|r| r.max_surge.as_ref()), 0, wanted);
        let unavailable = resolve(rolling.and_then(|r| r.max_unavailable.as_ref()), 1, wanted);
        // Without either an update would never end.
        (surge, if surge == 0 { unavailable.max(1) } else { unavailable })
    }

    fn is_on_delete(&self) -> bool {
        self.spec.update_strategy.as_ref().and_then(|s| s.type_.as_deref()) == Some("OnDelete")
    }
}

/// What was asked for, of `total`, a share rounded up; `default` when nothing was.
fn resolve(value: Option<&IntOrString>, default: usize, total: usize) -> usize {
    let total = i32::try_from(total).unwrap_or(i32::MAX);
    let portion = |value| usize::try_from(portion::of(total, value, Round::Up)).unwrap_or(0);
    value.map_or(default, portion)
}

/// What is to be done now. Nodes without their Pod come first; the update goes on once each has one.
pub(super) fn plan<'a>(observed: &Observed<'a>, retry: &mut Retry, now: Timestamp) -> Plan<'a> {
    let mut plan = Plan::default();
    let pods = observed.by_node();
    let wanted = observed.nodes.iter().filter(|node| place::suits(observed.set, node).0).count();
    let (surge, unavailable) = observed.limits(wanted);
    for node in observed.nodes {
        let name = node.name_any();
        let (starts, stays) = place::suits(observed.set, node);
        let here = pods.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
        if !stays {
            plan.delete.extend(here.iter().filter(|pod| !pod::is_deleting(pod)));
        } else if here.is_empty() {
            plan.create.extend(starts.then_some(name));
        } else {
            let running = keep(observed, &mut plan, retry, &name, here, now);
            if surge == 0 {
                plan.delete.extend(running.iter().skip(1));
            } else if running.is_empty() && starts {
                plan.create.push(name);
            } else {
                prune(observed, &mut plan, &running, now);
            }
        }
    }
    // A node that is gone takes its waiting Pods with it; the collector takes the bound ones.
    let is_known = |name: &str| observed.nodes.iter().any(|node| node.name_any() == name);
    for (_, lost) in pods.iter().filter(|(node, _)| !is_known(node)) {
        let waits = |pod: &&&Pod| {
            !pod::is_deleting(pod) && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none())
        };
        plan.delete.extend(lost.iter().filter(waits));
    }
    if plan.create.is_empty() && plan.delete.is_empty() && !observed.is_on_delete() {
        update(observed, &mut plan, &pods, (surge, unavailable), now);
    }
    plan
}

/// The Pods of a node that run; those that have ended are removed, not too often.
fn keep<'a>(
    observed: &Observed<'a>,
    plan: &mut Plan<'a>,
    retry: &mut Retry,
    node: &str,
    here: &[&'a Pod],
    now: Timestamp,
) -> Vec<&'a Pod> {
    let uid = observed.set.uid().unwrap_or_default();
    let mut running = Vec::new();
    for pod in here.iter().copied().filter(|pod| !pod::is_deleting(pod)) {
        let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        match pod::phase(pod) {
            "Failed" => match retry.replace(&uid, node, now) {
                Ok(()) => {
                    let note = format!(
                        "Found failed daemon pod {name} on node {node}, will try to kill it"
                    );
                    plan.events.push((EventType::Warning, "FailedDaemonPod", note));
                    plan.delete.push(pod);
                }
                Err(later) => plan.wake = plan.wake.into_iter().chain([later]).min(),
            },
            "Succeeded" => {
                let note = format!(
                    "Found succeeded daemon pod {name} on node {node}, will try to delete it"
                );
                plan.events.push((EventType::Normal, "SucceededDaemonPod", note));
                plan.delete.push(pod);
            }
            _ => running.push(pod),
        }
    }
    running
}

/// With a surge a node may have two Pods: an old one that serves and a new one that does not yet.
fn prune<'a>(observed: &Observed<'a>, plan: &mut Plan<'a>, running: &[&'a Pod], now: Timestamp) {
    let is_new = |pod: &&Pod| place::is_updated(observed.set, pod, observed.hash);
    let (new, old): (Vec<&Pod>, Vec<&Pod>) = running.iter().copied().partition(is_new);
    plan.delete.extend(new.iter().skip(1).chain(old.iter().skip(1)));
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!pod::is_ready(old) || observed.is_available(new, now))
    {
        plan.delete.push(old);
    }
}

/// The next Pods of the update.
fn update<'a>(
    observed: &Observed<'a>,
    plan: &mut Plan<'a>,
    pods: &BTreeMap<&'a str, Vec<&'a Pod>>,
    (surge, unavailable): (usize, usize),
    now: Timestamp,
) {
    let mut busy = 0;
    let mut candidates: Vec<(&str, &Pod)> = Vec::new();
    for (node, here) in pods {
        let live = here.iter().copied().filter(|pod| pod::is_active(pod));
        let is_new = |pod: &&Pod| place::is_updated(observed.set, pod, observed.hash);
        let (new, old): (Vec<&Pod>, Vec<&Pod>) = live.partition(is_new);
        match (new.first(), old.first()) {
            (None, Some(old)) if observed.is_available(old, now) => candidates.push((node, old)),
            // One that does not serve is replaced at once.
            (None, Some(old)) if surge == 0 => {
                plan.delete.push(old);
                busy += 1;
            }
            (None, Some(_)) => plan.create.push((*node).to_owned()),
            (Some(new), None) if surge == 0 && observed.is_available(new, now) => {}
            (Some(_), None) if surge > 0 => {}
            _ => busy += 1,
        }
    }
    let allowed = if surge > 0 { surge } else { unavailable }.saturating_sub(busy);
    for (node, old) in candidates.into_iter().take(allowed) {
        if surge > 0 { plan.create.push(node.to_owned()) } else { plan.delete.push(old) }
    }
}

/// The counters.
pub(super) fn status(observed: &Observed<'_>, now: Timestamp) -> DaemonSetStatus {
    let pods = observed.by_node();
    let old = observed.set.status.as_ref();
    let mut status = DaemonSetStatus {
        observed_generation: observed.set.metadata.generation,
        collision_count: old.and_then(|status| status.collision_count),
        conditions: old.and_then(|status| status.conditions.clone()),
        ..DaemonSetStatus::default()
    };
    let (mut available, mut updated) = (0, 0);
    for node in observed.nodes {
        let name = node.name_any();
        let here = pods.get(name.as_str()).into_iter().flatten();
        let first = here.copied().find(|pod| !(pod::is_deleting(pod) && pod::is_terminal(pod)));
        if !place::suits(observed.set, node).0 {
            status.number_misscheduled += i32::from(first.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(pod) = first else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(pod::is_ready(pod));
        available += i32::from(observed.is_available(pod, now));
        updated += i32::from(place::is_updated(observed.set, pod, observed.hash));
    }
    let positive = |number: i32| (number > 0).then_some(number);
    status.number_available = positive(available);
    status.number_unavailable = positive(status.desired_number_scheduled - available);
    status.updated_number_scheduled = positive(updated);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(surge: i32) -> DaemonSet {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": i32::from(surge == 0)});
        serde_json::from_value(json!({"metadata": {"name": "agent", "uid": "set"}, "spec": {
            "selector": {}, "template": {"spec": {"containers": []}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}))
        .unwrap()
    }

    fn node(name: &str, taint: Option<&str>) -> Arc<Node> {
        let taints: Vec<_> =
            taint.iter().map(|effect| json!({"key": "closed", "effect": effect})).collect();
        let node = json!({"metadata": {"name": name}, "spec": {"taints": taints}});
        Arc::new(serde_json::from_value(node).unwrap())
    }

    fn pod(name: &str, node: &str, hash: &str, phase: &str, ready: bool) -> Arc<Pod> {
        let ready = if ready { "True" } else { "False" };
        let pod = json!({
            "metadata": {"name": name, "labels": {"controller-revision-hash": hash}},
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn steps(
        set: &DaemonSet,
        nodes: &[Arc<Node>],
        pods: &[Arc<Pod>],
        retry: &mut Retry,
    ) -> Vec<String> {
        let spec = set.spec.as_ref().unwrap();
        let observed = Observed { set, spec, hash: "new", nodes, pods };
        let plan = plan(&observed, retry, Timestamp::UNIX_EPOCH);
        let create = plan.create.iter().map(|node| format!("create on {node}"));
        create.chain(plan.delete.iter().map(|pod| format!("delete {}", pod.name_any()))).collect()
    }

    #[test]
    fn a_closed_node_gets_no_pod_and_loses_one_only_when_it_must() {
        let (set, mut retry) = (set(0), Retry::default());
        let here = [pod("p", "a", "new", "Running", true)];
        let closed = [node("a", Some("NoSchedule"))];
        assert!(steps(&set, &closed, &[], &mut retry).is_empty());
        assert!(steps(&set, &closed, &here, &mut retry).is_empty());
        let evicting = [node("a", Some("NoExecute"))];
        assert_eq!(steps(&set, &evicting, &here, &mut retry), ["delete p"]);
        assert_eq!(steps(&set, &[node("a", None)], &[], &mut retry), ["create on a"]);
    }

    #[test]
    fn a_pod_that_failed_is_replaced_but_not_at_once_again() {
        let (set, mut retry, nodes) = (set(0), Retry::default(), [node("a", None)]);
        let failed = [pod("p", "a", "new", "Failed", false)];
        assert_eq!(steps(&set, &nodes, &failed, &mut retry), ["delete p"]);
        assert!(steps(&set, &nodes, &failed, &mut retry).is_empty());
    }

    #[test]
    fn with_a_surge_the_new_pod_comes_before_the_old_one_goes() {
        let (set, mut retry) = (set(1), Retry::default());
        let nodes = [node("a", None), node("b", None)];
        let old = [pod("a1", "a", "old", "Running", true), pod("b1", "b", "old", "Running", true)];
        assert_eq!(steps(&set, &nodes, &old, &mut retry), ["create on a"]);
        let [first, second] = old;
        let starting = pod("a2", "a", "new", "Running", false);
        let both = [first.clone(), second.clone(), starting];
        assert!(steps(&set, &nodes, &both, &mut retry).is_empty());
        let serving = [first, second, pod("a2", "a", "new", "Running", true)];
        assert_eq!(steps(&set, &nodes, &serving, &mut retry), ["delete a1"]);
    }
}
