//! What the agent does when the API refuses, or does not answer at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_env::Env;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::ServiceExt;

use crate::cluster::{self, Cluster};
use crate::shell;

#[tokio::test]
async fn the_agent_stops_although_the_api_does_not_answer() {
    let down = Arc::new(AtomicBool::new(false));
    let stuck = Arc::new(Notify::new());
    let (switch, waits) = (down.clone(), stuck.clone());
    let cluster = Cluster::start_through(move |server| {
        let client = tower::service_fn(move |request: Request<Body>| {
            let (server, down, stuck) = (server.clone(), switch.clone(), waits.clone());
            async move {
                if down.load(Ordering::SeqCst) {
                    if request.uri().path().ends_with("/pods/ends/status") {
                        stuck.notify_one();
                    }
                    std::future::pending::<()>().await;
                }
                server.oneshot(request).await
            }
        });
        kube::Client::new(client, "default")
    })
    .await;
    let shared = tempfile::tempdir().unwrap();
    let mut ends = shell("until test -e /shared/go; do sleep 0.05; done");
    ends["volumeMounts"] = json!([{ "name": "shared", "mountPath": "/shared" }]);
    let volumes = json!([{ "name": "shared", "hostPath": { "path": shared.path() } }]);
    let spec = json!({ "restartPolicy": "Never", "volumes": volumes, "containers": [ends] });
    cluster.run("ends", spec).await;
    cluster.run("stays", json!({ "containers": [shell("sleep 1000")] })).await;
    for name in ["ends", "stays"] {
        cluster.until(name, |pod| pod["status"]["phase"] == "Running").await;
    }
    let data = cluster.agent.data().to_owned();
    down.store(true, Ordering::SeqCst);
    std::fs::write(shared.path().join("go"), "").unwrap();
    stuck.notified().await;
    let limit = Duration::from_secs(30);
    let env = cluster.env.clone();
    env.timeout(limit, cluster.stop()).await.expect("it stops");
    assert!(!data.exists());
}

/// Answers for tokens: not there at first, then one after the other, each good for two seconds.
#[derive(Default)]
struct Issuer {
    open: AtomicBool,
    asked: Mutex<Vec<Value>>,
}

impl Issuer {
    async fn answer(&self, request: Request<Body>) -> Response<homeostat_apiserver::Body> {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let respond = |code: u16, object: &Value| {
            let body = Full::from(object.to_string()).map_err(|never| match never {});
            Response::builder().status(code).body(body.boxed_unsync()).unwrap()
        };
        if !self.open.load(Ordering::SeqCst) {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "the server could not find the requested resource", "reason": "NotFound", "code": 404 });
            return respond(404, &status);
        }
        let mut object: Value = serde_json::from_slice(&body).unwrap();
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(object["spec"].clone());
            asked.len()
        };
        let expires = Env::system().now() + Duration::from_secs(2);
        object["status"] = json!({ "token": format!("token-{number}"), "expirationTimestamp": expires.to_string() });
        respond(201, &object)
    }
}

#[tokio::test]
async fn a_projected_token_is_waited_for_bound_to_the_pod_and_renewed() {
    let issuer = Arc::new(Issuer::default());
    let answering = issuer.clone();
    let cluster = Cluster::start_through(move |server| {
        let client = tower::service_fn(move |request: Request<Body>| {
            let (server, issuer) = (server.clone(), answering.clone());
            async move {
                if request.uri().path().ends_with("/serviceaccounts/default/token") {
                    return Ok(issuer.answer(request).await);
                }
                server.oneshot(request).await
            }
        });
        kube::Client::new(client, "default")
    })
    .await;
    cluster
        .create("configmaps", json!({ "metadata": { "name": "m" }, "data": { "c": "map" } }))
        .await;
    let script = "cat /all/c /all/name; first=$(cat /all/token); echo; echo $first; \
                  while test $(cat /all/token) = $first; do sleep 0.05; done; echo renewed";
    let sources = json!([
        { "serviceAccountToken": { "path": "token", "audience": "vault", "expirationSeconds": 600 } },
        { "configMap": { "name": "m" } },
        { "downwardAPI": { "items": [{ "path": "name", "fieldRef": { "fieldPath": "metadata.name" } }] } },
    ]);
    let mut container = shell(script);
    container["volumeMounts"] = json!([{ "name": "all", "mountPath": "/all" }]);
    let volumes = json!([{ "name": "all", "projected": { "sources": sources } }]);
    let spec = json!({ "restartPolicy": "Never", "volumes": volumes, "containers": [container],
        "serviceAccountName": "default" });
    let made = cluster.run("bearer", spec).await;
    let event = cluster.until_event("bearer", "FailedMount").await;
    let words = "MountVolume.SetUp failed for volume \"all\" : failed to fetch token: ";
    assert!(event["message"].as_str().unwrap().starts_with(words), "{event}");
    let pod = cluster.get("bearer").await.unwrap();
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ContainerCreating");
    issuer.open.store(true, Ordering::SeqCst);
    cluster.until("bearer", |pod| pod["status"]["phase"] == "Succeeded").await;
    assert_eq!(cluster.logs("bearer", "").await, "mapbearer\ntoken-1\nrenewed\n");
    let asked = issuer.asked.lock().unwrap()[0].clone();
    assert_eq!(asked["audiences"], json!(["vault"]));
    assert_eq!(asked["expirationSeconds"], 600);
    let bound = &asked["boundObjectRef"];
    assert_eq!((&bound["kind"], &bound["name"]), (&json!("Pod"), &json!("bearer")));
    assert_eq!(bound["uid"], made["metadata"]["uid"]);
    cluster.stop().await;
}

#[tokio::test]
async fn a_service_answers_as_soon_as_its_address_is_free() {
    let cluster = Cluster::start().await;
    let ip = format!("127.96.{}.{}", 1 + std::process::id() % 250, std::process::id() / 250 % 250);
    let taken = std::net::TcpListener::bind((ip.as_str(), 8001)).unwrap();
    let container = json!({ "name": "main", "image": "homeostat.dev/hello:1" });
    cluster.run("web", json!({ "containers": [container] })).await;
    let pod = cluster.until("web", |pod| cluster::condition(pod, "Ready") == "True").await;
    let spec = json!({ "clusterIP": ip, "clusterIPs": [ip], "ports": [{ "port": 8001, "targetPort": 8080 }] });
    cluster.create("services", json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    let endpoint =
        json!({ "addresses": [pod["status"]["podIP"]], "conditions": { "ready": true } });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
        "ports": [{ "port": 8080, "protocol": "TCP" }], "endpoints": [endpoint],
    });
    cluster.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await;
    cluster.until_event("web", "AddressUnavailable").await;
    drop(taken);
    let answered = async {
        loop {
            if let Some(said) = cluster.http(&format!("{ip}:8001")).await {
                return said;
            }
            cluster.env.sleep(Duration::from_millis(20)).await;
        }
    };
    let said = cluster.env.timeout(Duration::from_secs(30), answered).await.unwrap();
    assert_eq!(said, "hello 1 from web\n");
    cluster.stop().await;
}
