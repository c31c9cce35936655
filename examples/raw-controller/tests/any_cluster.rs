//! The hand-written loop, on the embedded API or on the cluster that `HOMEOSTAT_TEST_KUBECONFIG` names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use homeostat::k8s_openapi::api::apps::v1::Deployment;
use homeostat::kube::Client;
use homeostat::kube::client::Body;
use homeostat_testing::{TestCluster, on_cluster, pod_template};
use raw_controller::{SELECTOR, SIDECAR};
use serde_json::json;
use tokio::sync::{Notify, oneshot};

async fn wanted(cluster: &TestCluster) {
    let web = json!({
        "metadata": {"name": "web", "labels": {"example.homeostat.dev/sidecar": "wanted"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": pod_template("web", "busybox"),
        },
    });
    cluster.create::<Deployment>(web).await;
}

fn containers(deployment: &Deployment) -> Vec<String> {
    let template = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    template
        .iter()
        .flat_map(|pod| &pod.containers)
        .map(|container| container.name.clone())
        .collect()
}

#[test]
fn a_labelled_deployment_gets_one_sidecar_and_never_a_second() {
    on_cluster(async |cluster| {
        let (stop, stopped) = oneshot::channel::<()>();
        let controller =
            raw_controller::run(cluster.client.clone(), cluster.env.clone(), async move {
                let _ = stopped.await;
            });
        let controller = tokio::spawn(controller);
        wanted(&cluster).await;
        let has_more = |web: &Deployment| containers(web).len() > 1;
        let seen = cluster.until_one("web", "a sidecar", has_more).await;
        let mut names = containers(&seen);
        names.sort();
        assert_eq!(names, ["c", SIDECAR]);

        // Every further event runs the loop again; none may add anything.
        let touch = json!({"metadata": {"annotations": {"touched": "yes"}}});
        cluster.patch::<Deployment>("web", touch).await;
        cluster.nothing_more().await;
        assert_eq!(containers(&cluster.get::<Deployment>("web").await.unwrap()).len(), 2);
        // Nor may it ask for it again, which the API would not show.
        let writes = cluster.writes.take();
        let patches = writes.iter().filter(|write| write.contains("PATCH"));
        assert_eq!(patches.count(), 2, "the sidecar, and the touch above: {writes:#?}");
        stop.send(()).unwrap();
        controller.await.unwrap().unwrap();
    });
}

#[test]
fn a_stop_does_not_wait_for_an_answer_that_does_not_come() {
    on_cluster(async |cluster| {
        let (inner, asked) = (cluster.client.clone(), Arc::new(Notify::new()));
        let asks = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (inner, asks) = (inner.clone(), Arc::clone(&asks));
            async move {
                if request.method() == http::Method::PATCH {
                    asks.notify_one();
                    std::future::pending::<()>().await;
                }
                inner.send(request).await
            }
        });
        let client = Client::new(service, cluster.client.default_namespace());
        let (stop, stopped) = oneshot::channel::<()>();
        let controller = raw_controller::run(client, cluster.env.clone(), async move {
            let _ = stopped.await;
        });
        let controller = tokio::spawn(controller);
        wanted(&cluster).await;
        asked.notified().await;
        stop.send(()).unwrap();
        let limit = Duration::from_secs(15);
        cluster.env.timeout(limit, controller).await.unwrap().unwrap().unwrap();
    });
}

#[test]
fn the_program_says_at_once_what_it_does_and_how_to_see_it() {
    // Also before there is a cluster to be seen.
    let program = Command::new(env!("CARGO_BIN_EXE_raw-controller"))
        .env("KUBECONFIG", "/nowhere")
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    let words = String::from_utf8(program.stderr).unwrap();
    assert!(words.lines().next().unwrap().contains(SELECTOR), "{words}");
    assert!(words.contains("kubectl label deployment web"), "{words}");
}
