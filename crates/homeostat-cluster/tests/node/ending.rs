//! How containers end: asked first, in order, with their grace, and killed after it.

use std::path::Path;
use std::time::Duration;

use homeostat::Manager;
use homeostat_cluster::ClusterConfig;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster};
use crate::shell;

/// A container that shares `/data` with the test.
fn sharing(name: &str, script: &str) -> Value {
    let mut container = shell(script);
    container["name"] = json!(name);
    container["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    container
}

fn volumes(data: &Path) -> Value {
    json!([{ "name": "data", "hostPath": { "path": data } }])
}

/// Says `up`, and when it is asked to end writes its last words into a file.
fn polite(name: &str) -> Value {
    let bye = format!("trap 'echo {name} >> /data/bye; exit 0' TERM");
    sharing(name, &format!("{bye}; echo up; while :; do sleep 0.05; done"))
}

fn said(data: &Path) -> String {
    std::fs::read_to_string(data.join("bye")).unwrap_or_default()
}

#[tokio::test]
async fn an_agent_that_stops_lets_every_container_end_by_itself() {
    let cluster = Cluster::start().await;
    let data = tempfile::tempdir().unwrap();
    let mut container = polite("main");
    let hook = json!(["sh", "-c", "echo hook >> /data/bye"]);
    container["lifecycle"] = json!({ "preStop": { "exec": { "command": hook } } });
    for name in ["one", "two"] {
        let spec = json!({ "volumes": volumes(data.path()), "containers": [container] });
        cluster.run(name, spec).await;
        cluster.until_log(name, "up").await;
    }
    cluster.stop().await;
    let said = said(data.path());
    assert_eq!(said.matches("hook\n").count(), 2, "{said}");
    assert_eq!(said.matches("main\n").count(), 2, "{said}");
    assert!(said.starts_with("hook\n"), "the hook comes before the signal: {said}");
}

#[tokio::test]
async fn an_agent_that_has_to_hurry_waits_for_no_container() {
    let cluster = Cluster::start().await;
    let script = "trap '' TERM; echo up; while :; do sleep 0.05; done";
    cluster.run("deaf", json!({ "containers": [shell(script)] })).await;
    cluster.until_log("deaf", "up").await;
    let (env, began) = (cluster.env.clone(), cluster.env.instant());
    cluster.agent.stop_until(async {}).await;
    let took = env.instant() - began;
    assert!(took < Duration::from_secs(8), "not even the time it gives others: {took:?}");
}

#[tokio::test]
async fn a_deleted_pod_is_asked_to_stop_and_then_leaves_the_api() {
    let cluster = Cluster::start().await;
    let data = tempfile::tempdir().unwrap();
    let spec = json!({ "volumes": volumes(data.path()), "containers": [polite("main")] });
    cluster.run("long", spec).await;
    cluster.until("long", |pod| cluster::condition(pod, "Ready") == "True").await;
    cluster.until_log("long", "up").await;
    cluster.delete("long").await;
    cluster.until_gone("long").await;
    assert_eq!(said(data.path()), "main\n");
    cluster.stop().await;
}

#[tokio::test]
async fn a_deleted_pod_that_is_held_says_how_it_ended_before_it_goes() {
    let cluster = Cluster::start().await;
    let absent = json!({ "name": "main", "image": "nginx:1.27" });
    let pods = [("runs", shell("echo up; sleep 1000")), ("never", absent)];
    for (name, container) in pods {
        let spec = json!({ "terminationGracePeriodSeconds": 1, "containers": [container] });
        cluster.run_held(name, spec).await;
    }
    cluster.until_log("runs", "up").await;
    let waits = |pod: &Value| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["message"].is_string()
    };
    cluster.until("never", waits).await;
    for name in ["runs", "never"] {
        cluster.delete(name).await;
        let pod = cluster.until(name, |pod| pod["status"]["phase"] == "Failed").await;
        assert!(pod["metadata"]["deletionTimestamp"].is_string(), "{pod:#}");
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        assert!(ended["exitCode"].as_i64() > Some(128), "{name}: {ended}");
        cluster.patch(name, "", &json!({ "metadata": { "finalizers": null } })).await;
        cluster.until_gone(name).await;
    }
    cluster.stop().await;
}

/// A Job that replaces a Pod only once it has failed: the word of the node is what it waits for.
#[tokio::test]
async fn a_job_goes_on_when_a_pod_that_never_started_is_deleted() {
    let cluster = Cluster::start().await;
    let volumes = tempfile::tempdir().unwrap();
    let config = ClusterConfig { volumes: volumes.path().into(), ..ClusterConfig::default() };
    let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
    let controllers = homeostat_cluster::Cluster::start(manager, &config).await.unwrap();
    let template = json!({ "spec": { "restartPolicy": "Never",
        "containers": [{ "name": "main", "image": "nginx:1.27" }] } });
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "work" },
        "spec": { "podReplacementPolicy": "Failed", "template": template } });
    cluster.post("/apis/batch/v1/namespaces/default/jobs", &job).await;
    let waits = |pod: &Value| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["message"].is_string()
    };
    let first = cluster.until_any(waits).await["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.delete(&first).await;
    cluster.until_any(|pod| waits(pod) && pod["metadata"]["name"] != first).await;
    controllers.stop().await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_past_its_deadline_is_killed_when_its_grace_is_over_and_has_failed_then() {
    let cluster = Cluster::start().await;
    let spec = json!({
        "activeDeadlineSeconds": 1, "terminationGracePeriodSeconds": 2,
        "containers": [shell("trap 'echo asked' TERM; while :; do sleep 0.05; done")],
    });
    cluster.run("deaf", spec).await;
    cluster.until_log("deaf", "asked").await;
    let pod = cluster.get("deaf").await.unwrap();
    let state = |pod: &Value| pod["status"]["containerStatuses"][0]["state"].clone();
    if state(&pod)["running"].is_object() {
        assert_eq!(pod["status"]["phase"], "Running", "what runs has not failed");
    }
    let pod = cluster.until("deaf", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(pod["status"]["reason"], "DeadlineExceeded");
    assert_eq!(state(&pod)["terminated"]["exitCode"], 137);
    cluster.stop().await;
}

#[tokio::test]
async fn sidecars_begin_before_the_rest_and_end_after_it_last_first() {
    let cluster = Cluster::start().await;
    let data = tempfile::tempdir().unwrap();
    let sidecar = |name: &str| {
        let mut container = polite(name);
        container["restartPolicy"] = json!("Always");
        let made = json!(["sh", "-c", format!("echo {name} has started > /data/{name}")]);
        container["startupProbe"] = json!({ "exec": { "command": made }, "periodSeconds": 1 });
        container
    };
    let main = sharing("main", "cat /data/first /data/second; echo main >> /data/bye");
    let spec = json!({
        "restartPolicy": "Never", "volumes": volumes(data.path()),
        "initContainers": [sidecar("first"), sidecar("second")], "containers": [main],
    });
    cluster.run("served", spec).await;
    let pod = cluster.until("served", |pod| pod["status"]["phase"] == "Succeeded").await;
    let began = cluster.logs("served", "container=main").await;
    assert_eq!(began, "first has started\nsecond has started\n");
    assert_eq!(said(data.path()), "main\nsecond\nfirst\n");
    let sidecars = pod["status"]["initContainerStatuses"].as_array().unwrap();
    assert!(sidecars.iter().all(|one| one["state"]["terminated"]["exitCode"] == 0), "{pod:#}");
    cluster.stop().await;
}
