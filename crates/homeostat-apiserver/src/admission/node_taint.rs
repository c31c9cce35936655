//! `TaintNodesByCondition`: a new node takes no Pods until it has said that it is ready.

use serde_json::{Value, json};

use super::{Operation, Review};
use crate::status::Status;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) fn taint(review: &mut Review<'_>) -> Result<(), Status> {
    if review.operation != Operation::Create || !review.is_for("nodes") {
        return Ok(());
    }
    let Some(node) = review.object.as_object_mut() else { return Ok(()) };
    let Some(spec) = node.entry("spec").or_insert_with(|| json!({})).as_object_mut() else {
        return Ok(());
    };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if let Value::Array(taints) = taints
        && !taints.iter().any(|t| t["key"] == NOT_READY && t["effect"] == "NoSchedule")
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
    Ok(())
}
