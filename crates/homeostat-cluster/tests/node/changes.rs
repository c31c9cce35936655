//! What changes while a Pod runs: images, ephemeral containers, the objects it is configured by.

use serde_json::{Value, json};

use crate::cluster::{self, Cluster};
use crate::shell;

#[tokio::test]
async fn another_image_restarts_the_container_and_no_other() {
    let cluster = Cluster::start().await;
    let mut other = shell("sleep 1000");
    other["name"] = json!("other");
    cluster.run("web", json!({ "containers": [shell("echo up; sleep 1000"), other] })).await;
    cluster.until("web", |pod| cluster::condition(pod, "Ready") == "True").await;
    let image = json!([{ "name": "main", "image": "alpine:3" }]);
    cluster.patch("web", "", &json!({ "spec": { "containers": image } })).await;
    let status = |pod: &Value| pod["status"]["containerStatuses"].clone();
    let pod = cluster.until("web", |pod| status(pod)[0]["restartCount"] == 1).await;
    assert_eq!(status(&pod)[0]["image"], "alpine:3");
    assert_eq!(status(&pod)[1]["restartCount"], 0);
    let event = cluster.until_event("web", "Killing").await;
    assert_eq!(event["message"], "Container main definition changed, will be restarted");
    cluster.stop().await;
}

#[tokio::test]
async fn an_ephemeral_container_joins_a_running_pod() {
    let cluster = Cluster::start().await;
    cluster.run("web", json!({ "containers": [shell("sleep 1000")] })).await;
    cluster.until("web", |pod| cluster::condition(pod, "Ready") == "True").await;
    let mut debug = shell("echo looking at $(hostname)");
    debug["name"] = json!("debug");
    debug["targetContainerName"] = json!("main");
    let added = json!({ "spec": { "ephemeralContainers": [debug] } });
    cluster.patch("web", "/ephemeralcontainers", &added).await;
    let ended = "/status/ephemeralContainerStatuses/0/state/terminated/exitCode";
    let pod = cluster.until("web", |pod| pod.pointer(ended) == Some(&json!(0))).await;
    assert_eq!(cluster.logs("web", "container=debug").await, "looking at web\n");
    assert_eq!(cluster::condition(&pod, "Ready"), "True");
    cluster.stop().await;
}

#[tokio::test]
async fn a_changed_config_map_or_secret_reaches_the_files_of_a_running_container() {
    let cluster = Cluster::start().await;
    let of = |text: &str| json!({ "metadata": { "name": "c" }, "data": { "key": text } });
    cluster.create("configmaps", of("one")).await;
    cluster.create("secrets", of("b25l")).await;
    let script = "echo up; for from in map secret; do \
                  until grep -q two /$from/key; do sleep 0.05; done; done; cat /map/key /secret/key";
    let mut container = shell(script);
    let mount = |name: &str| json!({ "name": name, "mountPath": format!("/{name}") });
    container["volumeMounts"] = json!([mount("map"), mount("secret")]);
    let volumes = json!([
        { "name": "map", "configMap": { "name": "c" } },
        { "name": "secret", "secret": { "secretName": "c" } },
    ]);
    let spec = json!({ "restartPolicy": "Never", "volumes": volumes, "containers": [container] });
    cluster.run("reader", spec).await;
    cluster.until_log("reader", "up").await;
    for (plural, text) in [("configmaps", "two"), ("secrets", "dHdv")] {
        let path = format!("/api/v1/namespaces/default/{plural}/c");
        cluster.merge(&path, &json!({ "data": { "key": text } })).await;
    }
    cluster.until("reader", |pod| pod["status"]["phase"] == "Succeeded").await;
    assert_eq!(cluster.logs("reader", "").await, "up\ntwotwo");
    cluster.stop().await;
}
