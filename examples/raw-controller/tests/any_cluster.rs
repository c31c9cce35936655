//! The hand-written loop, on the embedded API or on the cluster that `HOMEOSTAT_TEST_KUBECONFIG` names.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on may panic")]

use homeostat::Env;
use homeostat::k8s_openapi::api::apps::v1::Deployment;
use homeostat::k8s_openapi::api::core::v1::Namespace;
use homeostat_apiserver::{Server, ServerConfig};
use kube::api::{Api, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use raw_controller::SIDECAR;
use serde_json::json;

async fn cluster(env: &Env) -> Client {
    match std::env::var_os("HOMEOSTAT_TEST_KUBECONFIG") {
        Some(path) => {
            let file = Kubeconfig::read_from(path).unwrap();
            let options = KubeConfigOptions::default();
            Client::try_from(Config::from_custom_kubeconfig(file, &options).await.unwrap()).unwrap()
        }
        None => Client::new(Server::new(ServerConfig::new(env.clone())), "default"),
    }
}

fn containers(deployment: &Deployment) -> Vec<String> {
    let template = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    template
        .iter()
        .flat_map(|pod| &pod.containers)
        .map(|container| container.name.clone())
        .collect()
}

/// Waits for the next event of the Deployment that `wanted` accepts.
async fn until(deployments: &Api<Deployment>, wanted: impl Fn(&Deployment) -> bool) -> Deployment {
    use futures::TryStreamExt as _;
    let params = WatchParams::default().fields("metadata.name=web");
    let mut events = std::pin::pin!(deployments.watch(&params, "0").await.unwrap());
    while let Some(event) = events.try_next().await.unwrap() {
        if let WatchEvent::Added(seen) | WatchEvent::Modified(seen) = event
            && wanted(&seen)
        {
            return seen;
        }
    }
    panic!("the watch ended");
}

#[tokio::test]
async fn a_labelled_deployment_gets_one_sidecar_and_never_a_second() {
    let env = Env::system();
    let client = cluster(&env).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let wish = serde_json::from_value(json!({"metadata": {"generateName": "raw-"}})).unwrap();
    let namespace = namespaces.create(&PostParams::default(), &wish).await.unwrap().name_any();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let controller = tokio::spawn(raw_controller::run(client, env, async move {
        let _ = stopped.await;
    }));

    let web = serde_json::from_value(json!({
        "metadata": {"name": "web", "labels": {"example.homeostat.dev/sidecar": "wanted"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "busybox"}]}},
        },
    }));
    deployments.create(&PostParams::default(), &web.unwrap()).await.unwrap();
    let seen = until(&deployments, |web| containers(web).len() > 1).await;
    let mut names = containers(&seen);
    names.sort();
    assert_eq!(names, ["app", SIDECAR]);

    // Every further event runs the loop again; none may add anything.
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
    deployments.patch("web", &PatchParams::default(), &touch).await.unwrap();
    stop.send(()).unwrap();
    controller.await.unwrap().unwrap();
    assert_eq!(containers(&deployments.get("web").await.unwrap()).len(), 2);
}
