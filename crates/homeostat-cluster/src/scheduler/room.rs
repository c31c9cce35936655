//! What nodes have, and what the Pods on them have asked for. Pure.
//!
//! A Pod holds what it asks for from when it is given a node until it has ended or is gone: its
//! containers and sidecars together, or an init container that needs more at its time, and the
//! overhead of its runtime. What it really uses does not count.

use std::collections::BTreeMap;

use homeostat_quota::{Amounts, Overhead, Quantity, pod_requests};
use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec};
use serde_json::{Value, json};

use super::verdict::Unfit;
use crate::pod;

/// What a Pod asks for.
pub(super) fn requests(spec: &PodSpec) -> Amounts {
    let list = |containers: &[Container]| -> Value {
        let one =
            |c: &Container| json!({"resources": c.resources, "restartPolicy": c.restart_policy});
        containers.iter().map(one).collect()
    };
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let (containers, init) = (list(&spec.containers), list(init));
    let spec = json!({"containers": containers, "initContainers": init,
        "overhead": spec.overhead, "resources": spec.resources});
    pod_requests(&json!({"spec": spec}), Overhead::Counted)
}

/// The node on which a Pod holds room, if it does.
pub(super) fn held_on(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty());
    node.filter(|_| !pod::is_terminal(pod))
}

/// Whether a change of a Pod leaves more room to others.
pub(super) fn makes_room(before: Option<&Pod>, after: Option<&Pod>) -> bool {
    let Some(before) = before.filter(|pod| held_on(pod).is_some()) else { return false };
    let Some(after) = after.filter(|pod| held_on(pod).is_some()) else { return true };
    let asked = |pod: &Pod| pod.spec.as_ref().map(requests).unwrap_or_default();
    asked(before) != asked(after)
}

/// What the Pods of each node hold.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<String, (u32, Amounts)>);

impl Held {
    /// A Pod is on that node.
    pub(super) fn add(&mut self, node: &str, spec: &PodSpec) {
        let (pods, amounts) = self.0.entry(node.to_owned()).or_default();
        *pods += 1;
        amounts.add(&requests(spec));
    }

    /// How many Pods are there.
    pub(super) fn pods(&self, node: &str) -> u32 {
        self.0.get(node).map_or(0, |(pods, _)| *pods)
    }

    /// Whether there is room for one more Pod that asks for so much; what is missing, in
    /// kube-scheduler's words, if not.
    pub(super) fn room(&self, node: &Node, asked: &Amounts) -> Result<(), Unfit> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let nothing = (0, Amounts::default());
        let (pods, held) = self.0.get(name).unwrap_or(&nothing);
        let has = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let has = Amounts::read(has.and_then(|has| serde_json::to_value(has).ok()).as_ref());
        let of = |amounts: &Amounts, name: &str| amounts.get(name).unwrap_or(Quantity::ZERO);
        let mut unfit = Unfit { reasons: Vec::new(), others_in_the_way: true };
        if of(&has, "pods") < Quantity::whole(pods + 1) {
            unfit.reasons.push("Too many pods".to_owned());
        }
        for (name, amount) in asked.iter().filter(|(_, amount)| !amount.is_zero()) {
            if amount > of(&has, name).minus(of(held, name)) {
                unfit.reasons.push(format!("Insufficient {name}"));
                unfit.others_in_the_way &= amount <= of(&has, name);
            }
        }
        if unfit.reasons.is_empty() { Ok(()) } else { Err(unfit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: Value) -> PodSpec {
        serde_json::from_value(value).unwrap()
    }

    fn container(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn init_containers_sidecars_and_overhead_count_as_in_kubernetes() {
        let mut sidecar = container("200m");
        sidecar["restartPolicy"] = json!("Always");
        let cpu = |init: Value| {
            let all = json!({"containers": [container("1"), container("500m")],
                "initContainers": init, "overhead": {"cpu": "10m"}});
            requests(&spec(all)).get("cpu").unwrap().to_string()
        };
        assert_eq!(cpu(json!([])), "1510m");
        assert_eq!(cpu(json!([container("1400m")])), "1510m", "they run one after the other");
        assert_eq!(cpu(json!([container("2")])), "2010m", "the largest at its time");
        assert_eq!(cpu(json!([sidecar, container("1")])), "1710m", "sidecars stay");
        assert_eq!(cpu(json!([sidecar, container("2")])), "2210m", "beside those after them");
    }

    #[test]
    fn a_pod_holds_its_room_until_it_has_ended_or_is_gone() {
        let pod = |node: &str, phase: &str| -> Pod {
            let spec = json!({"nodeName": node, "containers": [container("1")]});
            serde_json::from_value(json!({"spec": spec, "status": {"phase": phase}})).unwrap()
        };
        let running = pod("n", "Running");
        assert!(makes_room(Some(&running), None));
        assert!(makes_room(Some(&running), Some(&pod("n", "Succeeded"))));
        assert!(!makes_room(Some(&pod("n", "Pending")), Some(&running)));
        assert!(!makes_room(Some(&pod("", "Pending")), None), "it was nowhere");
        assert!(!makes_room(Some(&pod("n", "Failed")), None), "it held nothing any more");
        let mut smaller = running.clone();
        smaller.spec = Some(spec(json!({"nodeName": "n", "containers": [container("500m")]})));
        assert!(makes_room(Some(&running), Some(&smaller)));
    }

    #[test]
    fn what_is_missing_is_named_and_whether_others_are_in_the_way() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"}}}))
        .unwrap();
        let mut held = Held::default();
        let room = |held: &Held, asks: Value| {
            let asked = requests(&spec(json!({"containers": [{"name": "c", "resources":
                {"requests": asks}}]})));
            held.room(&node, &asked).map_err(|unfit| (unfit.reasons, unfit.others_in_the_way))
        };
        assert_eq!(room(&held, json!({"cpu": "2", "memory": "1Gi"})), Ok(()));
        held.add("n", &spec(json!({"containers": [container("1500m")]})));
        assert_eq!(room(&held, json!({"cpu": "500m"})), Ok(()));
        assert_eq!(
            room(&held, json!({"cpu": "501m"})),
            Err((vec!["Insufficient cpu".into()], true))
        );
        let both = vec!["Insufficient cpu".to_owned(), "Insufficient memory".to_owned()];
        assert_eq!(room(&held, json!({"cpu": "1", "memory": "2Gi"})), Err((both, false)));
        let gpu = vec!["Insufficient example.com/gpu".to_owned()];
        assert_eq!(room(&held, json!({"example.com/gpu": "1"})), Err((gpu, false)));
        held.add("n", &spec(json!({"containers": [{"name": "c"}]})));
        assert_eq!(room(&held, json!({})), Err((vec!["Too many pods".into()], true)));
    }
}
