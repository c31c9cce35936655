//! A node on which Pods only pretend to run. It starts no process and listens nowhere.

use std::sync::Arc;

use homeostat::{Context, Controller, Outcome, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::object::object;

const NAME: &str = "pretended";

/// Runs every Pod that is assigned to a node.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::new(pretend).named("pretended-node")
}

/// Makes the node, or finds it, and says that it is ready.
pub(crate) async fn register(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let wish = object(json!({ "metadata": { "name": NAME } }));
    let _ = nodes.create(&PostParams::default(), &wish).await;
    let ready = json!({ "status": {
        "conditions": [{ "type": "Ready", "status": "True" }],
        "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "1000" },
    } });
    nodes.patch_status(NAME, &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
}

/// Pods run and are ready at once, or end well at once if they are not to be restarted. The image
/// may ask for something else: `succeeds` and `fails` end at once, `starts` never gets ready,
/// `runs` never ends, `absent` and tags that end in `404` cannot be had. What has ended, also by the
/// word of a test, stays so; what is removed while something else holds it has failed first.
async fn pretend(pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Outcome> {
    let Some(spec) = pod.spec.as_ref().filter(|spec| spec.node_name.is_some()) else {
        return Ok(Outcome::Done);
    };
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
    if pod.metadata.deletion_timestamp.is_some() {
        if !has_ended && pod.metadata.finalizers.is_some() {
            let failed = json!({ "status": { "phase": "Failed" } });
            ctx.merge_patch_status::<Pod>(ctx.key(), &failed).await?;
        }
        ctx.delete_with(pod.as_ref(), &DeleteParams::default().grace_period(0)).await?;
        return Ok(Outcome::Done);
    }
    if has_ended {
        return Ok(Outcome::Done);
    }
    let now = Time(ctx.now());
    let ended = |code: i32| json!({ "terminated": { "exitCode": code, "finishedAt": now } });
    let running = json!({ "running": {} });
    let image = spec.containers[0].image.clone().unwrap_or_default();
    let is_once = spec.restart_policy.as_deref() == Some("Never");
    let (phase, ready, state) = match image.as_str() {
        "fails" => ("Failed", "False", ended(1)),
        "starts" => ("Running", "False", running),
        absent if absent == "absent" || absent.ends_with("404") => {
            let message = format!("there is no image {absent}");
            let waiting = json!({ "reason": "ErrImagePull", "message": message });
            ("Pending", "False", json!({ "waiting": waiting }))
        }
        "runs" => ("Running", "True", running),
        image if image == "succeeds" || is_once => ("Succeeded", "False", ended(0)),
        _ => ("Running", "True", running),
    };
    let known = pod.status.as_ref().filter(|status| status.container_statuses.is_some());
    if known.and_then(|status| status.phase.as_deref()) == Some(phase) {
        return Ok(Outcome::Done);
    }
    let address = format!("10.9.9.{}", ctx.env().random_below(250) + 1);
    let status = json!({ "status": {
        "phase": phase,
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": now }],
        "containerStatuses": [{ "name": spec.containers[0].name, "image": image, "imageID": "",
            "ready": ready == "True", "restartCount": 0, "state": state }],
    } });
    ctx.merge_patch_status::<Pod>(ctx.key(), &status).await?;
    Ok(Outcome::Done)
}
