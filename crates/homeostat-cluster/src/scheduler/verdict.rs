//! Why a Pod fits nowhere, in kube-scheduler's words. Pure.
//!
//! kube-scheduler also says what came of its attempts to make room: by taking devices back, and by
//! removing Pods of a lower priority. Nothing of that is done here, so nothing ever comes of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;

/// Why one node does not suit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) reasons: Vec<String>,
    /// Whether it would suit without the Pods that are there.
    pub(super) others_in_the_way: bool,
}

impl From<&'static str> for Unfit {
    /// A node that is not for that Pod.
    fn from(reason: &'static str) -> Self {
        Self { reasons: vec![reason.to_owned()], others_in_the_way: false }
    }
}

/// `0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. …`
pub(super) fn nowhere(pod: &PodSpec, nodes: &[Unfit]) -> String {
    if nodes.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let reasons = nodes.iter().flat_map(|node| node.reasons.iter().map(String::as_str));
    let (all, found) = (nodes.len(), counted(reasons));
    format!("0/{all} nodes are available: {found}. {}", without_others(pod, nodes))
}

/// The same for what does not depend on the node.
pub(super) fn not_yet(pod: &PodSpec, reason: &str, nodes: usize) -> String {
    let unfit = Unfit { reasons: Vec::new(), others_in_the_way: false };
    let rest = without_others(pod, &vec![unfit; nodes]);
    format!("0/{nodes} nodes are available: {reason}. {rest}")
}

/// What comes of an attempt to make room.
fn without_others(pod: &PodSpec, nodes: &[Unfit]) -> String {
    let preemption = if pod.preemption_policy.as_deref() == Some("Never") {
        "not eligible due to preemptionPolicy=Never.".to_owned()
    } else {
        let reasons = nodes.iter().map(|node| match node.others_in_the_way {
            true => "No preemption victims found for incoming pod",
            false => "Preemption is not helpful for scheduling",
        });
        format!("0/{} nodes are available: {}.", nodes.len(), counted(reasons))
    };
    format!("no new claims to deallocate, preemption: {preemption}")
}

/// `1 Insufficient cpu, 2 Insufficient memory`: how many nodes have each.
fn counted<'a>(reasons: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut counted: Vec<String> =
        counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    // As texts, numbers and all.
    counted.sort();
    counted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfit(reasons: &[&str], others_in_the_way: bool) -> Unfit {
        Unfit {
            reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
            others_in_the_way,
        }
    }

    #[test]
    fn the_message_counts_nodes_by_reason() {
        let pod = PodSpec::default();
        let full = unfit(&["Insufficient memory", "Insufficient cpu"], true);
        assert_eq!(
            nowhere(&pod, &[full]),
            "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. \
             no new claims to deallocate, preemption: 0/1 nodes are available: \
             1 No preemption victims found for incoming pod."
        );
        let cordoned = Unfit::from("node(s) were unschedulable");
        let nodes = [cordoned.clone(), unfit(&["Insufficient cpu"], true), cordoned];
        assert_eq!(
            nowhere(&pod, &nodes),
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. \
             no new claims to deallocate, preemption: 0/3 nodes are available: \
             1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
        );
        let patient = PodSpec { preemption_policy: Some("Never".to_owned()), ..pod };
        assert!(nowhere(&patient, &nodes).ends_with(
            " no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        ));
        assert_eq!(nowhere(&patient, &[]), "no nodes available to schedule pods");
    }

    #[test]
    fn a_volume_that_is_not_there_yet_is_told_for_all_nodes_at_once() {
        assert_eq!(
            not_yet(&PodSpec::default(), "pod has unbound immediate PersistentVolumeClaims", 1),
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. \
             no new claims to deallocate, preemption: 0/1 nodes are available: \
             1 Preemption is not helpful for scheduling."
        );
    }
}
