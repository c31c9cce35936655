//! The Pod of a DaemonSet for one node. Pure.

use homeostat::kube::ResourceExt;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};

use crate::history::Versioned;
use crate::{pod, scheduler};

/// The label that repeats the number of the template, and the annotation it comes from.
const GENERATION: &str = "pod-template-generation";
const GENERATION_OF_SET: &str = "deprecated.daemonset.template.generation";

/// What every Pod of a DaemonSet puts up with: a node that is in trouble, or closed to others.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// What those on the host's network put up with besides.
const NO_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Whether a Pod is to be started on a node, and whether one that is there may stay.
pub(super) fn suits(set: &DaemonSet, node: &Node) -> (bool, bool) {
    let Some(mut spec) = set.template().and_then(|template| template.spec.clone()) else {
        return (false, false);
    };
    if spec.node_name.as_deref().is_some_and(|name| !name.is_empty() && name != node.name_any()) {
        return (false, false);
    }
    tolerate(&mut spec);
    let starts = scheduler::fit(&spec, node).is_ok();
    let mut urgent = node.clone();
    if let Some(taints) = urgent.spec.as_mut().and_then(|spec| spec.taints.as_mut()) {
        taints.retain(|taint| taint.effect == "NoExecute");
    }
    (starts, starts || scheduler::fit(&spec, &urgent).is_ok())
}

/// The node a Pod is on, or waits for.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(name) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(name);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.iter().flat_map(|t| t.match_fields.iter().flatten());
    let mut named = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
    named.next()?.values.as_ref()?.first().map(String::as_str)
}

/// Whether a Pod is made from the template as it is.
pub(super) fn is_updated(set: &DaemonSet, pod: &Pod, hash: &str) -> bool {
    let label = |name: &str| pod.labels().get(name);
    let generation = generation(set);
    label(DaemonSet::HASH).is_some_and(|own| own == hash)
        || (generation.is_some() && label(GENERATION) == generation.as_ref())
}

fn generation(set: &DaemonSet) -> Option<String> {
    let number = set.annotations().get(GENERATION_OF_SET)?;
    number.parse::<i64>().ok().map(|number| number.to_string())
}

/// The Pod for a node; the scheduler binds it there.
pub(super) fn pod(set: &DaemonSet, node: &str, hash: &str) -> Option<Pod> {
    let mut pod = pod::from_template(set.template()?);
    pod.metadata.generate_name = Some(format!("{}-", set.name_any()));
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(DaemonSet::HASH.to_owned(), hash.to_owned());
    labels.extend(generation(set).map(|number| (GENERATION.to_owned(), number)));
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_fields: Some(vec![NodeSelectorRequirement {
                key: "metadata.name".to_owned(),
                operator: "In".to_owned(),
                values: Some(vec![node.to_owned()]),
            }]),
            match_expressions: None,
        }],
    });
    Some(pod)
}

fn tolerate(spec: &mut PodSpec) {
    let network = (spec.host_network == Some(true)).then_some(NO_NETWORK);
    let all = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let wanted = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        // One that is like it but for its end is made endless.
        let same = |one: &&mut Toleration| {
            one.key == wanted.key && one.effect == wanted.effect && one.operator == wanted.operator
        };
        match all.iter_mut().find(same) {
            Some(one) => *one = wanted,
            None => all.push(wanted),
        }
    }
}
