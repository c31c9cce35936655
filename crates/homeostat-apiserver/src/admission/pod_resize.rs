//! `NodeDeclaredFeatureValidator` and `PodResizeValidator`: a Pod that has a node changes its resources
//! only as far as the node can follow.

use homeostat_quota::{Amounts, Overhead, Quantity, pod_requests};
use serde_json::Value;

use super::{Operation, Review};
use crate::registry::metadata;
use crate::status::Status;

const OF_THE_POD: &str = "InPlacePodLevelResourcesVerticalScaling";
const OF_INIT_CONTAINERS: &str = "InPlacePodVerticalScalingInitContainers";

/// What a change needs, the node must have declared.
pub(super) fn check_features(review: &Review<'_>) -> Result<(), Status> {
    let Some((old, node)) = change(review, &["", "resize"]) else { return Ok(()) };
    let needed = needed_features(old, &review.object);
    if needed.is_empty() {
        return Ok(());
    }
    let found = find(review, node)?;
    let declared = found.pointer("/status/declaredFeatures").and_then(Value::as_array);
    let declares =
        |feature: &&str| declared.is_some_and(|all| all.iter().any(|has| has == feature));
    let missing: Vec<&str> = needed.into_iter().filter(|feature| !declares(feature)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(review.forbid(&format!(
        "pod update requires features {} which are not available on node {node:?}",
        missing.join(", ")
    )))
}

/// What the Pod asks for, the node must have.
pub(super) fn check_room(review: &Review<'_>) -> Result<(), Status> {
    let Some((_, node)) = change(review, &["resize"]) else { return Ok(()) };
    let found = find(review, node)?;
    let system = found.pointer("/metadata/labels/kubernetes.io~1os").and_then(Value::as_str);
    if let Some(system) = system.filter(|system| *system != "linux") {
        let why =
            format!("pod resize is only supported on linux nodes, node {node:?} is {system:?}");
        return Err(review.forbid(&why).with_cause("UnsupportedPlatform", "", None));
    }
    let asked = pod_requests(&review.object, Overhead::Counted);
    let room = Amounts::read(found.pointer("/status/allocatable"));
    let mut lacks = Vec::new();
    for (name, shown) in
        [("cpu", Quantity::thousandths as fn(Quantity) -> i128), ("memory", Quantity::units)]
    {
        let [asked, room] =
            [&asked, &room].map(|amounts| amounts.get(name).unwrap_or(Quantity::ZERO));
        if asked > room {
            let (asked, room) = (shown(asked), shown(room));
            lacks.push(format!("{name}, requested: {asked}, allocatable: {room}"));
        }
    }
    if lacks.is_empty() {
        return Ok(());
    }
    let why = format!("node didn't have enough allocatable resources: {}", lacks.join("; "));
    Err(review.forbid(&why).with_cause("NodeCapacity", "", None))
}

/// The Pod before a change of what it wants, and the node it has.
fn change<'r>(review: &'r Review<'_>, parts: &[&str]) -> Option<(&'r Value, &'r str)> {
    let old = review.old.filter(|_| review.operation == Operation::Update)?;
    if !review.kind.is("pods") || !parts.contains(&review.subresource) {
        return None;
    }
    let node = review.text("/spec/nodeName");
    let generation = |pod| metadata::field(pod, "generation");
    let differs = generation(old) != generation(&review.object);
    (!node.is_empty() && differs).then_some((old, node))
}

fn find(review: &Review<'_>, node: &str) -> Result<Value, Status> {
    let found = review.writer.registry.peek("nodes", "", node);
    found.ok_or_else(|| review.forbid(&format!("node {node:?} not found")))
}

/// The features that a node needs to follow the change.
fn needed_features(old: &Value, new: &Value) -> Vec<&'static str> {
    let resources = |pod: &Value| pod.pointer("/spec/resources").cloned();
    let is_sidecar = |container: &Value| container["restartPolicy"] == "Always";
    let init = |pod: &Value| {
        let all = pod.pointer("/spec/initContainers").and_then(Value::as_array);
        all.cloned().unwrap_or_default()
    };
    let differ = init(old)
        .iter()
        .zip(init(new))
        .any(|(old, new)| !is_sidecar(old) && old.get("resources") != new.get("resources"));
    let needed = [(OF_THE_POD, resources(old) != resources(new)), (OF_INIT_CONTAINERS, differ)];
    needed.into_iter().filter(|(_, is_needed)| *is_needed).map(|(feature, _)| feature).collect()
}
