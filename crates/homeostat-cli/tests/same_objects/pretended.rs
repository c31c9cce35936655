//! A node without processes: Pods run and answer at once; those that end, end well.

use std::sync::Arc;

use homeostat::k8s_openapi::api::core::v1::{Node, Pod};
use homeostat::{Context, Controller, Outcome, Result};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;

const NAME: &str = "node";

/// How the addresses of Pods begin. No loopback addresses: kube-apiserver takes none into endpoints.
pub(crate) const ADDRESSES: &str = "10.9.9.";

pub(crate) fn controller() -> Controller<Pod> {
    Controller::new(run_pod).named("kubelet")
}

/// Makes the node, or finds it, and says that it is ready.
pub(crate) async fn register(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = serde_json::from_value(json!({ "metadata": { "name": NAME } })).unwrap();
    let _ = nodes.create(&PostParams::default(), &node).await;
    let time = "2026-11-15T10:00:00Z";
    let ready = json!({ "status": { "allocatable": { "cpu": "2", "memory": "4Gi", "pods": "100" },
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Test", "message": "",
        "lastHeartbeatTime": time, "lastTransitionTime": time }] } });
    nodes.patch_status(NAME, &PatchParams::default(), &Patch::Strategic(ready)).await.unwrap();
}

async fn run_pod(pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Outcome> {
    let pods: Api<Pod> =
        Api::namespaced(ctx.client().clone(), &pod.namespace().unwrap_or_default());
    let name = pod.name_any();
    if pod.metadata.deletion_timestamp.is_some() {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let _ = pods.delete(&name, &now).await;
        return Ok(Outcome::Done);
    }
    let spec = pod.spec.as_ref();
    let bound = spec.is_some_and(|spec| spec.node_name.is_some());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if !bound || phase.is_some_and(|phase| phase != "Pending") {
        return Ok(Outcome::Done);
    }
    let ends = spec.is_some_and(|spec| spec.restart_policy.as_deref() == Some("Never"));
    let condition = |name: &str| json!({ "type": name, "status": "True", "lastTransitionTime": "2026-11-15T10:00:00Z" });
    let address = format!("{ADDRESSES}{}", ctx.env().random_below(250) + 1);
    let status = json!({ "status": {
        "phase": if ends { "Succeeded" } else { "Running" },
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "conditions": [condition("Ready"), condition("ContainersReady")],
    } });
    pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(status)).await?;
    Ok(Outcome::Done)
}
