//! A program in a Pod finds the API and is known there: by its environment, its token and the
//! certificate authority in its volume, as on every cluster.

use std::net::Ipv4Addr;

use homeostat_apiserver::{AddressRange, Identity, Server, ServerConfig};
use homeostat_env::Env;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::cluster::Cluster;

const INSIDE: &str = "HOMEOSTAT_TEST_INSIDE_A_POD";

#[tokio::test]
async fn a_program_in_a_pod_talks_to_the_api_as_its_service_account() {
    if std::env::var_os(INSIDE).is_some() {
        return println!("the API knows me as {}", who_am_i().await);
    }
    let said =
        in_a_pod("api::a_program_in_a_pod_talks_to_the_api_as_its_service_account", "").await;
    assert!(said.contains("the API knows me as system:serviceaccount:default:me\n"), "{said}");
}

#[tokio::test]
async fn a_program_in_a_pod_that_names_a_missing_kubeconfig_talks_to_no_other_cluster() {
    if std::env::var_os(INSIDE).is_some() {
        let refused = homeostat::client::from_env(Env::system()).await.map(drop).unwrap_err();
        return println!("{}", refused.chain());
    }
    let test = "api::a_program_in_a_pod_that_names_a_missing_kubeconfig_talks_to_no_other_cluster";
    let said = in_a_pod(test, "/nowhere/config").await;
    assert!(said.contains("there is no kubeconfig /nowhere/config: "), "{said}");
}

/// What that test of this program prints in a Pod, with that in `$KUBECONFIG`.
async fn in_a_pod(test: &str, kubeconfig: &str) -> String {
    let env = Env::system();
    // Any range will do that no other test is likely to have.
    let numbers = std::process::id() + u32::from(!kubeconfig.is_empty());
    let octet = u8::try_from(96 + numbers % 31).unwrap();
    let mut config = ServerConfig::new(env.clone());
    config.service_range = AddressRange { base: Ipv4Addr::new(127, octet, 0, 0), prefix: 16 };
    let server = Server::new(config);
    let identity = Identity::generate(&env, &[]).unwrap();
    let authority = identity.access().ca_pem.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tls = server.clone();
    let serving = tokio::spawn(async move { tls.serve_tls(listener, identity).await });
    let cluster = Cluster::start_on(server, |server| kube::Client::new(server, "default")).await;

    let account =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "me" } });
    cluster.post("/api/v1/namespaces/default/serviceaccounts", &account).await;
    let data = json!({ "ca.crt": authority });
    cluster.create("configmaps", json!({ "metadata": { "name": "root" }, "data": data })).await;
    let program = std::env::current_exe().unwrap();
    let name = program.file_name().unwrap().to_str().unwrap();
    let field = json!({ "fieldPath": "metadata.namespace" });
    let sources = json!([
        { "serviceAccountToken": { "path": "token" } },
        { "configMap": { "name": "root" } },
        { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": field }] } },
    ]);
    let spec = json!({
        "restartPolicy": "Never", "serviceAccountName": "me",
        "volumes": [
            { "name": "program", "hostPath": { "path": program.parent().unwrap() } },
            { "name": "access", "projected": { "sources": sources } },
        ],
        "containers": [{
            "name": "main", "image": "busybox",
            "command": [format!("/program/{name}"), "--exact", test, "--nocapture"],
            "env": [
                { "name": INSIDE, "value": "yes" },
                { "name": "KUBECONFIG", "value": kubeconfig },
            ],
            "volumeMounts": [
                { "name": "program", "mountPath": "/program", "readOnly": true },
                { "name": "access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" },
            ],
        }],
    });
    cluster.run("client", spec).await;
    let over =
        |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    cluster.until("client", over).await;
    let said = cluster.logs("client", "").await;
    cluster.stop().await;
    serving.abort();
    said
}

/// The name the API has for whoever asks from here.
async fn who_am_i() -> String {
    let client = homeostat::client::from_env(Env::system()).await.unwrap();
    let me: Api<SelfSubjectReview> = Api::all(client);
    let review = me.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    review.status.unwrap().user_info.unwrap().username.unwrap()
}
