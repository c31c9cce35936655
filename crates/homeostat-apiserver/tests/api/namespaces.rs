use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::{client, cluster_api, create, object, refusal, resource};

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_only_when_its_finalizer_does_and_takes_nothing_new_meanwhile() {
    let client = client();
    let namespaces = cluster_api(&client, "", "Namespace");
    let made = create(&namespaces, namespace("a")).await;
    assert_eq!(made.data["status"]["phase"], "Active");
    assert_eq!(made.metadata.labels.unwrap()["kubernetes.io/metadata.name"], "a");

    namespaces.delete("a", &DeleteParams::default()).await.unwrap();
    let mut going = namespaces.get("a").await.unwrap();
    assert_eq!(going.data["status"]["phase"], "Terminating");
    let inside = kube::Api::namespaced_with(client.clone(), "a", &resource("", "ConfigMap"));
    let late = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let refused = inside.create(&PostParams::default(), &object(late)).await;
    assert_eq!(refusal(refused), (403, "Forbidden".into()));

    going.data["spec"] = json!({});
    let request = http::Request::put("/api/v1/namespaces/a/finalize")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&going).unwrap())
        .unwrap();
    client.request::<Value>(request).await.unwrap();
    assert_eq!(refusal(namespaces.get("a").await), (404, "NotFound".into()));
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_every_cluster_has_exist_and_stay() {
    let namespaces = cluster_api(&client(), "", "Namespace");
    for name in ["default", "kube-system", "kube-public"] {
        let refused = namespaces.delete(name, &DeleteParams::default()).await;
        assert_eq!(refusal(refused), (403, "Forbidden".into()));
    }
    namespaces.get("kube-node-lease").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_a_namespace_that_is_not_there() {
    let api = kube::Api::namespaced_with(client(), "nowhere", &resource("", "ConfigMap"));
    let lost = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let refused = api.create(&PostParams::default(), &object(lost)).await;
    assert_eq!(refusal(refused), (404, "NotFound".into()));
}
