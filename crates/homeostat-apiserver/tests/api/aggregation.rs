//! What APIServices are told of the Services they lead to.

use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{api, client, cluster_api, create, durable};

const NAME: &str = "v1.served.example.com";

fn api_services(client: &Client) -> Api<DynamicObject> {
    cluster_api(client, "apiregistration.k8s.io", "APIService")
}

fn leading_to(service: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": NAME},
        "spec": {
            "group": "served.example.com",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "insecureSkipTLSVerify": true,
            "service": {"name": service, "namespace": "default"},
        },
    })
}

fn service(port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"name": "https", "port": port}]},
    })
}

fn slice(is_ready: bool) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": if is_ready { "ready" } else { "waiting" },
            "labels": {"kubernetes.io/service-name": "s"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": is_ready}}],
        "ports": [{"name": "https", "port": 443}],
    })
}

async fn reason(client: &Client) -> String {
    let now = api_services(client).get(NAME).await.unwrap();
    let condition = &now.data["status"]["conditions"][0];
    assert_eq!(condition["type"], "Available");
    assert_eq!(condition["status"], "False");
    condition["reason"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_api_service_is_told_what_keeps_requests_from_its_service() {
    let client = client();
    let services = api(&client, "", "Service");
    let slices = api(&client, "discovery.k8s.io", "EndpointSlice");
    let made = create(&api_services(&client), leading_to("s")).await;
    assert_eq!(made.data["status"], json!({}));
    assert_eq!(reason(&client).await, "ServiceNotFound");
    create(&services, service(80)).await;
    assert_eq!(reason(&client).await, "ServicePortError");
    services.delete("s", &DeleteParams::default()).await.unwrap();
    assert_eq!(reason(&client).await, "ServiceNotFound");
    create(&services, service(443)).await;
    assert_eq!(reason(&client).await, "EndpointsNotFound");
    create(&slices, slice(false)).await;
    assert_eq!(reason(&client).await, "MissingEndpoints");
    create(&slices, slice(true)).await;
    assert_eq!(reason(&client).await, "FailedDiscoveryCheck");
    slices.delete("ready", &DeleteParams::default()).await.unwrap();
    assert_eq!(reason(&client).await, "MissingEndpoints");
}

#[tokio::test]
async fn a_server_that_is_opened_again_knows_which_services_matter() {
    let place = TempDir::new().unwrap();
    {
        let client = durable::start(&place).await;
        create(&api_services(&client), leading_to("s")).await;
    }
    let client = durable::start(&place).await;
    assert_eq!(reason(&client).await, "ServiceNotFound");
    create(&api(&client, "", "Service"), service(80)).await;
    assert_eq!(reason(&client).await, "ServicePortError");
}
