//! Certificates for those who ask: approved by hand, signed by the cluster, accepted by the API.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures::StreamExt as _;
use homeostat::kube::api::{Api, DeleteParams, PostParams, WatchEvent, WatchParams};
use homeostat::kube::config::{KubeConfigOptions, Kubeconfig};
use homeostat::kube::{Client, Config};
use homeostat::{Manager, Running};
use homeostat_apiserver::{Identity, Server, ServerConfig};
use homeostat_cluster::{CertificateAuthority, ClusterConfig, controllers};
use homeostat_env::Env;
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Jane, who reads and writes: two groups in one subject.
const REQUEST: &[u8] = include_bytes!("jane.csr");
const KEY: &[u8] = include_bytes!("jane.key");
/// A node that wants to be a client.
const NODE: &[u8] = include_bytes!("node.csr");

async fn start(env: &Env, client: &Client, identity: &Identity) -> Running {
    let authority = CertificateAuthority::from_pem(identity.authority()).unwrap();
    let config = ClusterConfig { authority: Some(authority), ..ClusterConfig::default() };
    controllers(Manager::new(client.clone(), env.clone()), &config).start().await.unwrap()
}

/// Asks, approves, and gives the status once the signer has spoken.
async fn asked(client: &Client, name: &str, spec: Value) -> Value {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let request = json!({"metadata": {"name": name}, "spec": spec});
    let request: CertificateSigningRequest = serde_json::from_value(request).unwrap();
    requests.create(&PostParams::default(), &request).await.unwrap();
    let approved = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "Test", "message": ""},
    ]}});
    let path = format!("/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval");
    let approval = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(approved.to_string().into_bytes())
        .unwrap();
    client.request::<Value>(approval).await.unwrap();
    let one = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = requests.watch(&one, "0").await.unwrap().boxed();
    let status = loop {
        let event = events.next().await.unwrap().unwrap();
        let (WatchEvent::Added(request) | WatchEvent::Modified(request)) = event else { continue };
        let status = request.status.unwrap_or_default();
        let mut said = status.conditions.iter().flatten();
        if status.certificate.is_some() || said.any(|said| said.type_ == "Failed") {
            break status;
        }
    };
    requests.delete(name, &DeleteParams::default()).await.unwrap();
    serde_json::to_value(status).unwrap()
}

fn spec(signer: &str, usages: &[&str]) -> Value {
    json!({"request": ByteString(REQUEST.to_vec()), "signerName": signer, "usages": usages})
}

#[tokio::test]
async fn an_approved_request_becomes_a_certificate_that_opens_the_door() {
    let env = Env::system();
    let server = Server::new(ServerConfig::new(env.clone()));
    let identity = Identity::generate(&env, &[]).unwrap();
    let client = Client::new(server.clone(), "default");
    let running = start(&env, &client, &identity).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let served = identity.clone();
    let serving = tokio::spawn(async move { server.serve_tls(listener, served).await });

    let usages = ["client auth", "digital signature"];
    let status = asked(&client, "jane", spec("kubernetes.io/kube-apiserver-client", &usages)).await;
    let key = json!(ByteString(KEY.to_vec()));
    let shown = format!(
        "client-certificate-data: {}\n    client-key-data: {}",
        status["certificate"].as_str().unwrap(),
        key.as_str().unwrap(),
    );
    let access = identity.access();
    let kubeconfig = access.kubeconfig(&url).replace(&format!("token: {}", access.token), &shown);
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let jane = Client::try_from(config).unwrap();
    let reviews: Api<SelfSubjectReview> = Api::all(jane);
    let who = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = who.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("jane"));
    assert_eq!(user.groups.unwrap(), ["readers", "writers", "system:authenticated"]);
    running.stop().await.unwrap();
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn a_signer_refuses_what_is_not_its_business() {
    let env = Env::system();
    let server = Server::new(ServerConfig::new(env.clone()));
    let client = Client::new(server, "default");
    let identity = Identity::generate(&env, &[]).unwrap();
    let running = start(&env, &client, &identity).await;
    let why = |status: &Value| {
        let said = status["conditions"].as_array().unwrap().iter();
        let failed = said.clone().find(|said| said["type"] == "Failed").unwrap();
        failed["message"].as_str().unwrap().to_owned()
    };
    let server = asked(&client, "a", spec("kubernetes.io/kube-apiserver-client", &["server auth"]));
    assert_eq!(why(&server.await), "invalid usage for client certificate: server auth");
    let usages = ["client auth", "digital signature"];
    let node = asked(&client, "b", spec("kubernetes.io/kube-apiserver-client-kubelet", &usages));
    assert_eq!(why(&node.await), "subject organization is not system:nodes");
    running.stop().await.unwrap();
}

/// Waits until the request is as `wanted`, which sees nothing once it is gone.
async fn until(client: &Client, name: &str, wanted: impl Fn(Option<&Value>) -> bool) {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let one = WatchParams::default().fields(&format!("metadata.name={name}"));
    loop {
        let found = requests.get_opt(name).await.unwrap();
        let found = found.map(|request| serde_json::to_value(request).unwrap());
        if wanted(found.as_ref()) {
            return;
        }
        // Something happens, or the watch has lasted long enough; then look again.
        let from = found.map_or("0".to_owned(), |found| {
            found["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
        });
        requests.watch(&one, &from).await.unwrap().boxed().next().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_may_gets_its_certificate_unasked_and_the_request_goes_in_the_end() {
    let env = Env::simulated(1, jiff::Timestamp::UNIX_EPOCH);
    let server = Server::new(ServerConfig::new(env.clone()));
    let client = Client::new(server, "default");
    let identity = Identity::generate(&Env::system(), &[]).unwrap();
    let running = start(&env, &client, &identity).await;
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let mut spec =
        spec("kubernetes.io/kube-apiserver-client-kubelet", &["client auth", "digital signature"]);
    spec["request"] = json!(ByteString(NODE.to_vec()));
    let request = json!({"metadata": {"name": "node"}, "spec": spec});
    let request: CertificateSigningRequest = serde_json::from_value(request).unwrap();
    requests.create(&PostParams::default(), &request).await.unwrap();
    until(&client, "node", |request| {
        let status = request.map(|request| &request["status"]);
        status.is_some_and(|status| status["certificate"].is_string())
    })
    .await;
    let issued = requests.get("node").await.unwrap().status.unwrap();
    assert_eq!(issued.conditions.unwrap()[0].reason.as_deref(), Some("AutoApproved"));
    let before = env.now();
    until(&client, "node", |request| request.is_none()).await;
    assert!(env.now().duration_since(before) >= jiff::SignedDuration::from_mins(59));
    running.stop().await.unwrap();
}
