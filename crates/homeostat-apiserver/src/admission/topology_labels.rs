//! `PodTopologyLabels`: a Pod that is put on a node says where that is.

use super::{Operation, Review};
use crate::registry::metadata;
use crate::status::Status;

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// Gives a binding, or a Pod that is born on its node, the labels of the node.
pub(super) fn copy(review: &mut Review<'_>) -> Result<(), Status> {
    if review.operation != Operation::Create || review.resource() != "pods" {
        return Ok(());
    }
    let node = match review.subresource {
        "" => review.text("/spec/nodeName"),
        "binding" if review.text("/target/kind") == "Node" => review.text("/target/name"),
        _ => "",
    };
    let Some(node) = review.writer.registry.peek("nodes", "", node) else { return Ok(()) };
    for (label, value) in metadata::labels(&node) {
        if LABELS.contains(&label) {
            metadata::set_label(&mut review.object, label, value);
        }
    }
    Ok(())
}
