//! The command runs once, whatever goes wrong on the way to it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::{Context, Controller, Env, Manager, Outcome};
use homeostat_apiserver::{Server, ServerConfig};
use http::{Request, Response};
use jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use operator_at::{At, AtSpec, AtStatus, Phase};
use serde_json::json;

/// Whether the API still does what the request asks for whose answer is an error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    NotDone,
    AnswerLost,
}

/// Runs an At whose Pod somebody removes at the very moment that a write to `path` goes wrong,
/// and says which Pods ran the command and how the At ended.
async fn interrupted(method: &str, path: &str, fault: Fault, remove: bool) -> (usize, AtStatus) {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let client = Client::new(Server::new(ServerConfig::new(env.clone())), "default");
    let armed = Arc::new(AtomicBool::new(false));
    let (method, path) = (method.to_owned(), path.to_owned());
    let (inner, trap) = (client.clone(), armed.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let hit = request.method() == method.as_str() && request.uri().path().ends_with(&path);
        let (client, trapped) = (inner.clone(), hit && trap.swap(!hit, Ordering::SeqCst));
        async move {
            if !trapped {
                return client.send(request).await;
            }
            if fault == Fault::AnswerLost {
                client.send(request).await?;
            }
            let pods: Api<Pod> = Api::default_namespaced(client);
            if remove {
                pods.delete("now-pod", &DeleteParams::default()).await?;
            }
            Ok(Response::builder().status(500).body(Body::empty()).unwrap())
        }
    });

    let ran: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let seen = ran.clone();
    let node = move |pod: Arc<Pod>, ctx: Context<Pod>| {
        let seen = seen.clone();
        async move {
            let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.clone());
            if gates.unwrap_or_default().is_empty()
                && seen.lock().unwrap().insert(pod.uid().unwrap())
            {
                let patch = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
                let pods: Api<Pod> = Api::default_namespaced(ctx.client().clone());
                pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await?;
            }
            Ok(Outcome::Done)
        }
    };
    let node = Manager::new(client.clone(), env.clone()).with(Controller::new(node));
    let node = node.start().await.unwrap();
    let operator = Manager::new(Client::new(service, "default"), env.clone()).with_crd::<At>();
    let operator = operator.with(operator_at::controller()).start().await.unwrap();

    armed.store(true, Ordering::SeqCst);
    let ats: Api<At> = Api::default_namespaced(client);
    let spec = AtSpec { schedule: "1970-01-01T00:00:00Z".into(), command: "echo once".into() };
    ats.create(&PostParams::default(), &At::new("now", spec)).await.unwrap();
    env.sleep(Duration::from_secs(600)).await;
    assert!(!armed.load(Ordering::SeqCst), "nothing was interrupted");
    let status = ats.get("now").await.unwrap().status.unwrap();
    operator.stop().await.unwrap();
    node.stop().await.unwrap();
    let ran = ran.lock().unwrap().len();
    (ran, status)
}

fn reason(status: &AtStatus) -> &str {
    &status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap().reason
}

#[tokio::test(start_paused = true)]
async fn a_pod_removed_before_it_is_on_record_has_run_nothing_and_is_made_again() {
    for fault in [Fault::NotDone, Fault::AnswerLost] {
        let (ran, status) = interrupted("PATCH", "/ats/now/status", fault, true).await;
        assert_eq!(status.phase, Some(Phase::Done));
        match fault {
            Fault::NotDone => assert_eq!((ran, reason(&status)), (1, "Succeeded")),
            // On record, and gone: nobody can tell any more that it never ran.
            Fault::AnswerLost => assert_eq!((ran, reason(&status)), (0, "PodLost")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_removed_once_it_may_run_is_never_made_again() {
    for fault in [Fault::NotDone, Fault::AnswerLost] {
        let (ran, status) = interrupted("PATCH", "/pods/now-pod", fault, true).await;
        assert!(ran <= 1, "{ran}");
        assert_eq!((status.phase, reason(&status)), (Some(Phase::Done), "PodLost"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_is_taken_again_and_the_command_runs_once() {
    for (method, path) in
        [("POST", "/pods"), ("PATCH", "/ats/now/status"), ("PATCH", "/pods/now-pod")]
    {
        for fault in [Fault::NotDone, Fault::AnswerLost] {
            let (ran, status) = interrupted(method, path, fault, false).await;
            assert_eq!((ran, reason(&status)), (1, "Succeeded"), "{method} {path}");
        }
    }
}
