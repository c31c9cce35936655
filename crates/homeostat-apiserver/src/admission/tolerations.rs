//! `DefaultTolerationSeconds`: Pods stay five minutes on a node that is lost, unless they say
//! otherwise.

use serde_json::{Value, json};

use super::{Operation, Review};
use crate::status::Status;

pub(super) fn add(review: &mut Review<'_>) -> Result<(), Status> {
    if review.operation == Operation::Delete || !review.is_for("pods") {
        return Ok(());
    }
    let Some(spec) = review.object.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return Ok(()) };
    let keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let missing = keys.map(|key| {
        !tolerations.iter().any(|toleration| {
            let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or("");
            (text("key") == key || text("key").is_empty())
                && matches!(text("effect"), "" | "NoExecute")
        })
    });
    for (key, _) in keys.into_iter().zip(missing).filter(|(_, missing)| *missing) {
        tolerations.push(json!({
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }));
    }
    Ok(())
}
