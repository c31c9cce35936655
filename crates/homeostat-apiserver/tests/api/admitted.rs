//! What admission sees of the requests below an object, and what it makes of them.

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use homeostat_apiserver::{Body, NodeConnector};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::webhooks::{configure, hooked, hooked_server, patch, webhook};
use super::{api, client, client_of, create, object, refusal};

async fn post(client: &Client, path: &str, body: Value) -> Result<Value, kube::Error> {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let path = format!("/api/v1/namespaces/default/{path}");
    let request = http::Request::post(path).header("content-type", "application/json");
    client.request(request.body(bytes).unwrap()).await
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "busybox"}]},
    })
}

/// A node that says what it was asked.
#[derive(Debug, Default)]
struct Node(Mutex<Vec<String>>);

impl NodeConnector for Node {
    fn call(&self, _: &str, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        self.0.lock().unwrap().push(request.uri().to_string());
        let empty = Empty::new().map_err(|never| match never {}).boxed_unsync();
        futures::future::ready(Response::new(empty)).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn admission_sees_what_a_subresource_speaks() {
    let (client, hook) = hooked(|_| json!({"allowed": true}));
    let hooks = ["pods/*", "replicationcontrollers/*", "serviceaccounts/*"];
    let hooks = hooks
        .iter()
        .enumerate()
        .map(|(number, resource)| webhook(&format!("see{number}.example.com"), "see", resource));
    let hooks: Vec<Value> = hooks.collect();
    configure(&client, "ValidatingWebhookConfiguration", json!(hooks)).await;
    create(&api(&client, "", "Pod"), pod("a")).await;
    let waiting = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    });
    create(&api(&client, "", "Pod"), waiting).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}});
    create(&api(&client, "", "ServiceAccount"), account).await;
    let controllers = api(&client, "", "ReplicationController");
    let controller = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "r"},
        "spec": {"selector": {"a": "b"}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]}}},
    });
    create(&controllers, controller).await;

    let _ = post(&client, "pods/a/exec?command=ls&command=-l&stdin=true", Value::Null).await;
    let _ = post(&client, "pods/a/portforward?ports=80", Value::Null).await;
    let binding = json!({"metadata": {"name": "b"}, "target": {"name": "n"}});
    post(&client, "pods/b/binding", binding).await.unwrap();
    post(&client, "serviceaccounts/s/token", json!({"spec": {}})).await.unwrap();
    let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    controllers.patch_scale("r", &PatchParams::default(), &three).await.unwrap();
    post(&client, "pods/a/eviction", json!({"metadata": {"name": "a"}})).await.unwrap();

    let mut seen: Vec<Value> = hook.asked().into_iter().map(|(_, request)| request).collect();
    seen.retain(|request| request.get("subResource").is_some());
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let shown: Vec<String> = seen
        .iter()
        .map(|request| {
            let words = [
                text(&request["operation"]),
                text(&request["subResource"]),
                text(&request["kind"]["kind"]),
                text(&request["object"]["kind"]),
                text(&request["oldObject"]["kind"]),
                text(&request["options"]["kind"]),
            ];
            words.join(" ")
        })
        .collect();
    assert_eq!(
        shown,
        [
            "CONNECT exec PodExecOptions PodExecOptions - -",
            "CONNECT portforward PodPortForwardOptions PodPortForwardOptions - -",
            "CREATE binding Binding Binding - CreateOptions",
            "CREATE token TokenRequest TokenRequest - CreateOptions",
            "UPDATE scale Scale Scale Scale UpdateOptions",
            "CREATE eviction Eviction Eviction - CreateOptions",
        ]
    );
    assert_eq!(seen[0]["object"]["command"], json!(["ls", "-l"]));
    assert_eq!(seen[1]["object"]["ports"], json!([80]));
    let replicas = |scale: &Value| scale["spec"]["replicas"].clone();
    assert_eq!(
        (replicas(&seen[4]["oldObject"]), replicas(&seen[4]["object"])),
        (json!(1), json!(3))
    );
}

#[tokio::test(start_paused = true)]
async fn a_webhook_decides_how_a_stream_is_opened_and_whether() {
    let (server, client, _) = hooked_server(|request| {
        if request["name"] == "closed" {
            return json!({"allowed": false});
        }
        patch(&json!([{"op": "replace", "path": "/command", "value": ["id", "-u"]}]))
    });
    let node = Arc::new(Node::default());
    server.connect_nodes(node.clone());
    let hooks = json!([webhook("exec.example.com", "exec", "pods/exec")]);
    configure(&client, "MutatingWebhookConfiguration", hooks).await;
    for name in ["open", "closed"] {
        create(&api(&client, "", "Pod"), pod(name)).await;
    }
    let _ = post(&client, "pods/open/exec?command=sh&tty=true", Value::Null).await;
    let refused = post(&client, "pods/closed/exec?command=sh", Value::Null).await;
    assert_eq!(refusal(refused).0, 400);
    let asked = node.0.lock().unwrap().clone();
    assert_eq!(asked, ["/exec/default/open/main?tty=true&command=id&command=-u"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_waits_for_the_account_its_namespace_is_about_to_get() {
    let client = client_of(|config| homeostat_apiserver::ServerConfig {
        service_account_admission: true,
        ..config
    });
    let pods = api(&client, "", "Pod");
    let refused = pods.create(&PostParams::default(), &object(pod("early"))).await;
    assert_eq!(refusal(refused), (403, "Forbidden".into()), "nobody makes one");
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let accounts = api(&client, "", "ServiceAccount");
    // The Pod is sent first; both are under way at once.
    let (pod, _) = tokio::join!(create(&pods, pod("patient")), create(&accounts, account));
    assert_eq!(pod.data["spec"]["serviceAccountName"], "default");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_is_charged_to_the_budget_that_guards_the_pod() {
    let client = client();
    let pods = api(&client, "", "Pod");
    let budgets = api(&client, "policy", "PodDisruptionBudget");
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    create(&budgets, budget).await;
    let runs = Patch::Merge(json!({"status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}]}}));
    for name in ["one", "two"] {
        create(&pods, pod(name)).await;
        pods.patch_status(name, &PatchParams::default(), &runs).await.unwrap();
    }
    let evict = |name: &str| {
        let (client, name) = (client.clone(), name.to_owned());
        async move {
            let eviction = json!({"metadata": {"name": name}});
            post(&client, &format!("pods/{name}/eviction"), eviction).await
        }
    };
    assert_eq!(refusal(evict("one").await).0, 429, "nobody has counted yet");
    let counted = Patch::Merge(json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 1,
        "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}}));
    budgets.patch_status("b", &PatchParams::default(), &counted).await.unwrap();
    evict("one").await.unwrap();
    let charged = budgets.get("b").await.unwrap();
    assert_eq!(charged.data["status"]["disruptionsAllowed"], 0);
    assert!(charged.data["status"]["disruptedPods"]["one"].is_string());
    let evicted = pods.get("one").await.unwrap();
    assert!(evicted.metadata.deletion_timestamp.is_some());
    assert_eq!(refusal(evict("two").await).0, 429, "the budget is used up");
}
