//! The operators on the embedded API and on kube-apiserver, with the same controllers of
//! `homeostat-cluster`: the same objects, statuses and owner references come out.
//!
//! Without `HOMEOSTAT_ORACLE_KUBECONFIG` only the embedded half runs, and says so.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat::k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use homeostat::{Context, Controller, Env, Kind, Manager, Outcome, Result};
use homeostat_apiserver::{Server, ServerConfig};
use homeostat_cluster::{Cluster, ClusterConfig};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};

/// The kinds whose objects are compared.
const KINDS: [(&str, &str, &str, &str); 10] = [
    ("cnat.programming-kubernetes.info", "v1alpha1", "At", "ats"),
    ("homeostat.dev", "v1alpha1", "WebApp", "webapps"),
    ("homeostat.dev", "v1alpha1", "Database", "databases"),
    ("homeostat.dev", "v1alpha1", "LogicalDatabase", "logicaldatabases"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "Service", "services"),
    ("", "v1", "Secret", "secrets"),
];

#[tokio::test]
async fn operators_make_the_same_objects_on_both_apis() {
    let env = Env::system();
    let mut config = ServerConfig::new(env.clone());
    config.service_account_admission = true;
    let embedded = Client::new(Server::new(config), "default");
    let ours = scenario(&embedded, &env).await;
    assert_eq!(ours["At now"]["status"]["phase"], "DONE");
    assert_eq!(ours["WebApp site"]["status"]["ready"], true);
    assert_eq!(ours["Database shop"]["status"]["ready"], true);
    let Some(path) = std::env::var_os("HOMEOSTAT_ORACLE_KUBECONFIG") else {
        println!("NOT RUN on kube-apiserver: HOMEOSTAT_ORACLE_KUBECONFIG is not set");
        return;
    };
    let file = Kubeconfig::read_from(path).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let theirs = scenario(&Client::try_from(config).unwrap(), &env).await;
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    let mut differences = String::new();
    for (name, object) in &ours {
        differing(name, object, &theirs[name], &mut differences);
    }
    assert!(differences.is_empty(), "path, ours, kube-apiserver's:\n{differences}");
}

/// Lists the paths at which two values differ.
fn differing(path: &str, ours: &Value, theirs: &Value, found: &mut String) {
    use std::fmt::Write as _;
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let fields: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for field in fields {
                let absent = Value::Null;
                let (a, b) = (a.get(field).unwrap_or(&absent), b.get(field).unwrap_or(&absent));
                differing(&format!("{path}.{field}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differing(&format!("{path}[{index}]"), a, b, found);
            }
        }
        _ if ours == theirs => {}
        _ => {
            let _ = writeln!(found, "{path}: {ours} | {theirs}");
        }
    }
}

/// Runs the operators on one object each until all is quiet; every object, made comparable.
async fn scenario(client: &Client, env: &Env) -> BTreeMap<String, Value> {
    let volumes = tempfile::tempdir().unwrap();
    let config = ClusterConfig { volumes: volumes.path().to_owned(), ..ClusterConfig::default() };
    let manager = Manager::new(client.clone(), env.clone())
        .with(Controller::new(run_pod).named("kubelet"))
        .with_crd::<operator_at::At>()
        .with_crd::<operator_webapp::WebApp>()
        .with_crd::<operator_database::Database>()
        .with_crd::<operator_logical_database::LogicalDatabase>()
        .with(operator_at::controller())
        .with(operator_webapp::controller())
        .with(operator_database::controller())
        .with(operator_logical_database::controller());
    let cluster = Cluster::start(manager, &config).await.unwrap();
    let node: Node = object(json!({ "metadata": { "name": "node" } }));
    let nodes: Api<Node> = Api::all(client.clone());
    let _ = nodes.create(&PostParams::default(), &node).await;
    let ready = json!({ "status": { "allocatable": { "cpu": "2", "memory": "4Gi", "pods": "100" },
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Test", "message": "",
        "lastHeartbeatTime": "2026-11-15T10:00:00Z", "lastTransitionTime": "2026-11-15T10:00:00Z" }] } });
    nodes.patch_status("node", &PatchParams::default(), &Patch::Strategic(ready)).await.unwrap();

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let wish: Namespace = object(json!({ "metadata": { "generateName": "same-" } }));
    let namespace = namespaces.create(&PostParams::default(), &wish).await.unwrap().name_any();
    for (kind, name, spec) in [
        (KINDS[0], "now", json!({ "schedule": "2020-01-01T00:00:00Z", "command": "echo hello" })),
        (
            KINDS[1],
            "site",
            json!({ "image": "homeostat.dev/hello:1", "replicas": 2, "port": 8080 }),
        ),
        (KINDS[2], "shop", json!({ "databaseName": "shop" })),
        (
            KINDS[3],
            "orders",
            json!({ "serverSecret": "absent", "databaseName": "orders", "owner": "clerk" }),
        ),
    ] {
        let (group, version, kind_name, _) = kind;
        let wish = json!({ "apiVersion": format!("{group}/{version}"), "kind": kind_name, "metadata": { "name": name }, "spec": spec });
        api(client, kind, &namespace).create(&PostParams::default(), &object(wish)).await.unwrap();
    }
    let expected = [
        (KINDS[0], "now", "/status/phase", json!("DONE")),
        (KINDS[1], "site", "/status/ready", json!(true)),
        (KINDS[2], "shop", "/status/ready", json!(true)),
        (KINDS[3], "orders", "/status/conditions/0/reason", json!("WaitingForServer")),
        (KINDS[4], "site", "/status/conditions/1/reason", json!("NewReplicaSetAvailable")),
    ];
    for (kind, name, pointer, value) in expected {
        until(env, &api(client, kind, &namespace), name, pointer, &value).await;
    }
    let objects = snapshot(client, &namespace).await;
    namespaces.delete(&namespace, &DeleteParams::default()).await.unwrap();
    cluster.stop().await.unwrap();
    objects
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn api(
    client: &Client,
    (group, version, kind, plural): (&str, &str, &str, &str),
    namespace: &str,
) -> Api<DynamicObject> {
    let resource = Kind::new(group, version, kind, plural, true).api_resource();
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// Waits for a value, following the object's events.
async fn until(env: &Env, objects: &Api<DynamicObject>, name: &str, pointer: &str, value: &Value) {
    use futures::TryStreamExt as _;
    let params = kube::api::WatchParams::default().fields(&format!("metadata.name={name}"));
    let wait = async {
        let mut last = Value::Null;
        let mut events = std::pin::pin!(objects.watch(&params, "0").await.unwrap());
        while let Some(event) = events.try_next().await.unwrap() {
            if let kube::api::WatchEvent::Added(object) | kube::api::WatchEvent::Modified(object) =
                event
            {
                last = serde_json::to_value(object).unwrap();
                if last.pointer(pointer) == Some(value) {
                    return Ok(());
                }
            }
        }
        Err(last)
    };
    match env.timeout(Duration::from_secs(60), wait).await {
        Ok(Ok(())) => {}
        other => panic!("{name} did not come to {pointer} = {value}: {other:?}"),
    }
}

/// A node agent without processes: Pods run and answer at once; those that end, end well.
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
    let status = json!({ "status": {
        "phase": if ends { "Succeeded" } else { "Running" },
        "podIP": "127.1.0.1",
        "podIPs": [{ "ip": "127.1.0.1" }],
        "conditions": [condition("Ready"), condition("ContainersReady")],
    } });
    pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(status)).await?;
    Ok(Outcome::Done)
}

/// Every object by kind and name, without what no two runs share.
async fn snapshot(client: &Client, namespace: &str) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for kind in KINDS {
        let list = api(client, kind, namespace).list(&ListParams::default()).await.unwrap();
        for (index, item) in list.items.into_iter().enumerate() {
            let generated = item.metadata.generate_name.clone();
            let mut value = serde_json::to_value(&item).unwrap();
            let name = generated.map_or_else(|| item.name_any(), |base| format!("{base}{index}"));
            comparable(&mut value, namespace, None);
            without_account_volume(&mut value);
            // Whether items of a list repeat their type is a matter of representation.
            for field in ["apiVersion", "kind"] {
                value.as_object_mut().unwrap().remove(field);
            }
            objects.insert(format!("{} {name}", kind.2), value);
        }
    }
    objects
}

/// Takes out the volume with the token of the service account: an admission plugin adds it that the
/// embedded server does not have yet.
fn without_account_volume(object: &mut Value) {
    let ours = |item: &Value| item["name"] != "kube-api-access";
    let mut lists = Vec::new();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let (volumes, containers): (Vec<_>, Vec<_>) = spec
            .iter_mut()
            .filter(|(name, _)| *name == "volumes" || *name == "containers")
            .partition(|(name, _)| *name == "volumes");
        lists.extend(volumes.into_iter().map(|(_, list)| list));
        for (_, containers) in containers {
            let containers = containers.as_array_mut().into_iter().flatten();
            lists.extend(containers.filter_map(|container| container.get_mut("volumeMounts")));
        }
    }
    for list in lists {
        if let Some(items) = list.as_array_mut() {
            items.retain(ours);
            if items.is_empty() {
                *list = Value::Null;
            }
        }
    }
}

/// Replaces what differs from run to run: uids, revisions, times, addresses, secrets.
fn comparable(value: &mut Value, namespace: &str, key: Option<&str>) {
    const VARYING: [&str; 21] = [
        "uid",
        "podUid",
        "resourceVersion",
        "creationTimestamp",
        "lastTransitionTime",
        "lastUpdateTime",
        "lastProbeTime",
        "startTime",
        "time",
        "clusterIP",
        "clusterIPs",
        "endpoint",
        "password",
        "uri",
        "host",
        "managedFields",
        "volumeName",
        // A Database's Pods carry a mark of its password.
        "homeostat.dev/credentials",
        "controller-revision-hash",
        "currentRevision",
        "updateRevision",
    ];
    match value {
        // Written out or left out, a null means the same.
        Value::Null => {}
        _ if key.is_some_and(|key| VARYING.contains(&key)) => *value = json!("varies"),
        Value::Object(fields) => {
            if fields.contains_key("generateName") {
                fields.insert("name".to_owned(), json!("generated"));
            }
            for (name, field) in fields.iter_mut() {
                comparable(field, namespace, Some(name));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| comparable(item, namespace, None)),
        Value::String(text) => {
            *text = text.replace(namespace, "namespace");
            // `kube-api-access-x7k2p`: the volume of the service account's token has a random name.
            if text.starts_with("kube-api-access-") {
                "kube-api-access".clone_into(text);
            }
        }
        _ => {}
    }
}
