//! What the node agent promises, on the embedded API with real processes.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests may")]

mod api;
mod changes;
mod cluster;
mod configured;
mod ending;
mod network;
mod postgresql;
mod terminal;
mod trouble;

use cluster::Cluster;
use serde_json::{Value, json};

fn shell(script: &str) -> Value {
    json!({ "name": "main", "image": "busybox", "command": ["sh", "-c", script] })
}

#[tokio::test]
async fn a_pod_runs_to_its_end_and_says_so() {
    let cluster = Cluster::start().await;
    cluster
        .run(
            "once",
            json!({ "restartPolicy": "Never", "containers": [shell("echo hello; exit 3")] }),
        )
        .await;
    let pod = cluster.until("once", |pod| pod["status"]["phase"] == "Failed").await;
    let state = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&state["exitCode"], &state["reason"]), (&json!(3), &json!("Error")));
    assert_eq!(pod["status"]["hostIP"], "127.0.0.1");
    assert_eq!(pod["status"]["qosClass"], "BestEffort");
    cluster.stop().await;
}

#[tokio::test]
async fn secrets_and_config_maps_are_environment_and_files() {
    let cluster = Cluster::start().await;
    cluster
        .create("secrets", json!({ "metadata": { "name": "s" }, "data": { "key": "c2VjcmV0" } }))
        .await;
    let script = "echo $A-$B; cat /etc/conf/c; echo $POD_IP $NAME > /dev/termination-log";
    let spec = json!({
        "restartPolicy": "Never",
        "volumes": [{ "name": "conf", "configMap": { "name": "m" } }],
        "containers": [{
            "name": "main", "image": "busybox", "command": ["sh", "-c", script],
            "env": [
                { "name": "A", "valueFrom": { "secretKeyRef": { "name": "s", "key": "key" } } },
                { "name": "B", "value": "[$(A)]" },
                { "name": "NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
            ],
            "volumeMounts": [{ "name": "conf", "mountPath": "/etc/conf" }],
        }],
    });
    cluster.run("configured", spec).await;
    let event = cluster.until_event("configured", "FailedMount").await;
    let words = "MountVolume.SetUp failed for volume \"conf\" : configmap \"m\" not found";
    assert_eq!(event["message"], words);
    // The missing piece arrives, and the Pod goes on at once.
    cluster
        .create(
            "configmaps",
            json!({ "metadata": { "name": "m" }, "data": { "c": "from a file" } }),
        )
        .await;
    let pod = cluster.until("configured", |pod| pod["status"]["phase"] == "Succeeded").await;
    let words =
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"].as_str().unwrap();
    assert_eq!(words.trim(), format!("{} configured", pod["status"]["podIP"].as_str().unwrap()));
    assert_eq!(cluster.logs("configured", "").await, "secret-[secret]\nfrom a file");
    cluster.stop().await;
}

#[tokio::test]
async fn an_unknown_image_says_what_to_do() {
    let cluster = Cluster::start().await;
    let container = json!({ "name": "main", "image": "nginx:1.27" });
    cluster.run("web", json!({ "containers": [container] })).await;
    let waiting = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
    let pod = cluster.until("web", |pod| waiting(pod)["reason"] == "ErrImagePull").await;
    assert!(waiting(&pod)["message"].as_str().unwrap().contains("busybox"));
    cluster.until("web", |pod| waiting(pod)["reason"] == "ImagePullBackOff").await;
    let refused = cluster.refused_log("web", "").await;
    let words =
        "container \"main\" in pod \"web\" is waiting to start: trying and failing to pull image";
    assert!(refused.contains(words), "{refused}");
    cluster.stop().await;
}

#[tokio::test]
async fn what_names_no_image_is_told_from_an_image_that_is_not_there() {
    let cluster = Cluster::start().await;
    let container = json!({ "name": "main", "image": "BusyBox:1.36" });
    cluster.run("wrong", json!({ "containers": [container] })).await;
    let waiting = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
    let pod = cluster.until("wrong", |pod| waiting(pod)["reason"] == "InvalidImageName").await;
    let message = waiting(&pod)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("must be lowercase") && message.contains("busybox:1.36"), "{message}");
    cluster.until_event("wrong", "InspectFailed").await;
    let mended = json!({ "spec": { "containers": [{ "name": "main", "image": "busybox" }] } });
    cluster.patch("wrong", "", &mended).await;
    cluster.until("wrong", |pod| waiting(pod)["reason"] != "InvalidImageName").await;
    cluster.stop().await;
}

#[tokio::test]
async fn init_containers_share_volumes_with_the_rest() {
    let cluster = Cluster::start().await;
    let mount = json!([{ "name": "work", "mountPath": "/data/shared" }]);
    let container = |name: &str, script: &str| json!({ "name": name, "image": "alpine", "command": ["sh", "-c", script], "volumeMounts": mount });
    let spec = json!({
        "restartPolicy": "Never",
        "volumes": [{ "name": "work", "emptyDir": {} }],
        "initContainers": [container("first", "echo made > /data/shared/file")],
        "containers": [container("main", "cat /data/shared/file")],
    });
    cluster.run("shared", spec).await;
    cluster.until("shared", |pod| pod["status"]["phase"] == "Succeeded").await;
    assert_eq!(cluster.logs("shared", "").await, "made\n");
    cluster.stop().await;
}

#[tokio::test]
async fn a_service_answers_on_its_address_and_two_pods_share_a_port() {
    let cluster = Cluster::start().await;
    let container = |tag: &str| {
        let probe = json!({ "httpGet": { "port": "http" }, "periodSeconds": 1 });
        let ports = json!([{ "name": "http", "containerPort": 8080 }]);
        json!({ "name": "main", "image": format!("homeostat.dev/hello:{tag}"), "ports": ports, "readinessProbe": probe })
    };
    let mut endpoints = Vec::new();
    for name in ["one", "two"] {
        cluster.run(name, json!({ "containers": [container(name)] })).await;
        let pod = cluster.until(name, |pod| cluster::condition(pod, "Ready") == "True").await;
        endpoints.push(
            json!({ "addresses": [pod["status"]["podIP"]], "conditions": { "ready": true } }),
        );
    }
    let ip = format!("127.96.{}.{}", 1 + std::process::id() % 250, std::process::id() / 250 % 250);
    let spec = json!({ "clusterIP": ip, "clusterIPs": [ip], "ports": [{ "name": "web", "port": 8000, "targetPort": "http" }] });
    cluster.create("services", json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
        "ports": [{ "name": "web", "port": 8080, "protocol": "TCP" }], "endpoints": endpoints,
    });
    cluster.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await;
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 2 {
        if let Some(answer) = cluster.http(&format!("{ip}:8000")).await {
            seen.insert(answer);
        }
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        ["hello one from one\n", "hello two from two\n"]
    );
    cluster.stop().await;
}

#[tokio::test]
async fn a_command_runs_inside_a_container_with_input_output_and_exit_code() {
    let cluster = Cluster::start().await;
    cluster
        .run("box", json!({ "containers": [shell("echo inside > /file; echo up; sleep 1000")] }))
        .await;
    cluster.until_log("box", "up").await;
    let exec = |command: &str, more: &str| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(["sh", "-c", command].map(|word| ("command", word)));
        format!("/exec/default/box/main?{}&stdout=true&stderr=true{more}", query.finish())
    };
    let path = exec("cat /file; cat; echo oops >&2; exit 5", "&stdin=true");
    let mut done = cluster.exec(&path, b"typed\n").await;
    assert_eq!(done.remove(&1).unwrap(), "inside\ntyped\n");
    assert_eq!(done.remove(&2).unwrap(), "oops\n");
    let status: Value = serde_json::from_str(&done.remove(&3).unwrap()).unwrap();
    assert_eq!(status["details"]["causes"][0], json!({ "reason": "ExitCode", "message": "5" }));
    let done = cluster.exec(&exec("test -t 0 && tty && stty size", "&tty=true"), b"").await;
    assert!(done[&1].contains("/dev/pts/"), "{done:?}");
    assert!(done[&3].contains("Success"), "{done:?}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_container_that_fails_its_liveness_probe_is_restarted() {
    let cluster = Cluster::start().await;
    let container = json!({
        "name": "main", "image": "busybox", "command": ["sh", "-c", "echo run; sleep 1000"],
        "livenessProbe": { "exec": { "command": ["false"] }, "periodSeconds": 1, "failureThreshold": 1 },
    });
    cluster
        .run("sick", json!({ "terminationGracePeriodSeconds": 1, "containers": [container] }))
        .await;
    let pod = cluster
        .until("sick", |pod| {
            pod["status"]["containerStatuses"][0]["restartCount"].as_i64() > Some(0)
        })
        .await;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 143);
    assert_eq!(cluster.logs("sick", "previous=true").await, "run\n");
    cluster.stop().await;
}

#[tokio::test]
async fn the_log_of_the_last_run_is_the_previous_one_while_the_next_is_waited_for() {
    let cluster = Cluster::start().await;
    let data = tempfile::tempdir().unwrap();
    let mut container = shell("echo x >> /data/runs; echo run $(wc -l < /data/runs); exit 1");
    container["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    let volumes = json!([{ "name": "data", "hostPath": { "path": data.path() } }]);
    cluster.run("crash", json!({ "volumes": volumes, "containers": [container] })).await;
    let status = |pod: &Value| pod["status"]["containerStatuses"][0].clone();
    let waits = |pod: &Value| status(pod)["state"]["waiting"]["reason"] == "CrashLoopBackOff";
    let second = |pod: &Value| waits(pod) && status(pod)["restartCount"] == 1;
    cluster.until("crash", second).await;
    assert_eq!(cluster.logs("crash", "").await, "run 2\n");
    assert_eq!(cluster.logs("crash", "previous=true").await, "run 2\n");
    // The third run is ten seconds away; with it the first one's log goes.
    cluster.until_log("crash", "run 3\n").await;
    let uid = cluster.get("crash").await.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let logs = cluster.agent.data().join("pods").join(uid).join("containers/main");
    assert!(!logs.join("0.0.log").exists() && logs.join("2.0.log").exists());
    cluster.stop().await;
}

#[tokio::test]
async fn stopping_the_agent_ends_every_process_and_removes_its_directory() {
    let cluster = Cluster::start().await;
    let script = "trap '' TERM; setsid sleep 1000 & echo up; while :; do wait; done";
    let spec = json!({ "terminationGracePeriodSeconds": 1, "containers": [shell(script)] });
    cluster.run("long", spec).await;
    cluster.until_log("long", "up").await;
    let ip = cluster.get("long").await.unwrap()["status"]["podIP"].as_str().unwrap().to_owned();
    let marker = format!("POD_IP={ip}");
    assert!(processes_with(&marker) > 1);
    let data = cluster.agent.data().to_owned();
    assert!(data.exists());
    cluster.stop().await;
    assert_eq!(processes_with(&marker), 0);
    assert!(!data.exists());
}

fn processes_with(marker: &str) -> usize {
    let holds = |entry: std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|pair| pair == marker.as_bytes())
    };
    std::fs::read_dir("/proc").unwrap().flatten().map(holds).filter(|held| *held).count()
}
