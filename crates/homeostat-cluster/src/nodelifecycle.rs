//! Keeps a node's taint in step with its `Ready` condition: a node that is not ready takes no new
//! Pods. A node that stops reporting keeps its last word; with one node nobody else could tell.

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Outcome, Result};
use k8s_openapi::api::core::v1::{Node, Taint};
use serde_json::json;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The controller.
pub(crate) fn controller() -> Controller<Node> {
    Controller::new(reconcile).named("node-lifecycle")
}

async fn reconcile(node: Arc<Node>, ctx: Context<Node>) -> Result<Outcome> {
    if let Some(taints) = wanted(&node) {
        let patch = json!({"metadata": {"uid": node.uid(), "resourceVersion": node.resource_version()},
            "spec": {"taints": taints}});
        ctx.merge_patch::<Node>(ctx.key(), &patch).await?;
    }
    Ok(Outcome::Done)
}

/// The taints a node should have, if they differ from those it has. A node without a `Ready`
/// condition is left as it is: its agent has not spoken yet.
fn wanted(node: &Node) -> Option<Vec<Taint>> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|c| c.type_ == "Ready")?.status == "True";
    let mut taints = node.spec.as_ref().and_then(|s| s.taints.clone()).unwrap_or_default();
    let tainted = taints.iter().any(|taint| taint.key == NOT_READY);
    if ready != tainted {
        return None;
    }
    taints.retain(|taint| taint.key != NOT_READY);
    if !ready {
        taints.push(Taint {
            key: NOT_READY.into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        });
    }
    Some(taints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_taint_follows_the_condition() {
        let node = |ready: &str, taints: serde_json::Value| -> Node {
            serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"taints": taints},
                "status": {"conditions": [{"type": "Ready", "status": ready}]}}))
            .unwrap()
        };
        let taint = json!([{"key": NOT_READY, "effect": "NoSchedule"}]);
        assert_eq!(wanted(&node("True", taint.clone())), Some(vec![]));
        assert_eq!(wanted(&node("True", json!([]))), None);
        assert_eq!(wanted(&node("False", taint)), None);
        assert_eq!(wanted(&node("False", json!([]))).map(|taints| taints.len()), Some(1));
    }
}
