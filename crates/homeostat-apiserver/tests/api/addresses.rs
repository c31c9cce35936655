use homeostat_apiserver::ServerConfig;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::durable::start;
use super::{api, client, cluster_api, create, object, refusal};

fn service(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["ports"] = json!([{"port": 80}]);
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn range(name: &str, cidr: &str) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": name}, "spec": {"cidrs": [cidr]}})
}

async fn names(client: &Client) -> Vec<String> {
    let all = cluster_api(client, "networking.k8s.io", "IPAddress");
    let all = all.list(&kube::api::ListParams::default()).await.unwrap();
    all.items.into_iter().filter_map(|address| address.metadata.name).collect()
}

#[tokio::test(start_paused = true)]
async fn an_address_is_an_object_as_long_as_a_service_has_it() {
    let client = client();
    let services = api(&client, "", "Service");
    assert_eq!(names(&client).await, ["127.96.0.1"], "the API has the first");
    let made = create(&services, service("a", json!({}))).await;
    let ip = made.data["spec"]["clusterIP"].as_str().unwrap();
    let addresses = cluster_api(&client, "networking.k8s.io", "IPAddress");
    let address = addresses.get(ip).await.unwrap();
    let parent = json!({"resource": "services", "namespace": "default", "name": "a"});
    assert_eq!(address.data["spec"]["parentRef"], parent);

    addresses.delete(ip, &DeleteParams::default()).await.unwrap();
    assert!(addresses.get(ip).await.is_ok(), "what a Service has comes back");

    let outside =
        Patch::Merge(json!({"spec": {"type": "ExternalName", "externalName": "a.example",
        "clusterIP": null, "clusterIPs": null}}));
    services.patch("a", &PatchParams::default(), &outside).await.unwrap();
    assert_eq!(names(&client).await, ["127.96.0.1"]);
    let inside = Patch::Merge(json!({"spec": {"type": "ClusterIP", "externalName": null}}));
    services.patch("a", &PatchParams::default(), &inside).await.unwrap();
    assert_eq!(names(&client).await.len(), 2);
    services.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(names(&client).await, ["127.96.0.1"]);
    let headless = create(&services, service("b", json!({"clusterIP": "None"}))).await;
    assert_eq!(headless.data["spec"]["clusterIP"], "None");
    assert_eq!(names(&client).await, ["127.96.0.1"]);
}

#[tokio::test(start_paused = true)]
async fn the_address_of_a_service_is_on_record_before_the_service_is() {
    let client = client();
    let services = api(&client, "", "Service");
    let revision = |object: &kube::api::DynamicObject| -> u64 {
        object.metadata.resource_version.as_ref().unwrap().parse().unwrap()
    };
    let made = create(&services, service("a", json!({}))).await;
    let ip = made.data["spec"]["clusterIP"].as_str().unwrap();
    let addresses = cluster_api(&client, "networking.k8s.io", "IPAddress");
    let address = addresses.get(ip).await.unwrap();
    assert!(revision(&address) < revision(&made), "{address:?} {made:?}");

    let again = services.create(&PostParams::default(), &object(service("a", json!({})))).await;
    assert_eq!(refusal(again), (409, "AlreadyExists".to_owned()));
    assert_eq!(names(&client).await.len(), 2, "nobody has an address for nothing");
}

#[tokio::test(start_paused = true)]
async fn services_get_addresses_of_every_range_that_is_ready() {
    let client = super::client_of(|config| ServerConfig {
        service_range: homeostat_apiserver::AddressRange { base: [10, 0, 0, 0].into(), prefix: 30 },
        ..config
    });
    let services = api(&client, "", "Service");
    let second = create(&services, service("second", json!({}))).await;
    assert_eq!(second.data["spec"]["clusterIP"], "10.0.0.2");
    let third = object(service("third", json!({})));
    let full = services.create(&PostParams::default(), &third).await;
    assert_eq!(refusal(full), (500, "InternalError".into()));
    let ranges = cluster_api(&client, "networking.k8s.io", "ServiceCIDR");
    create(&ranges, range("more", "10.0.1.0/24")).await;
    let ready = |status: &str| {
        Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": status,
            "reason": "", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}}))
    };
    ranges.patch_status("more", &PatchParams::default(), &ready("False")).await.unwrap();
    let full = services.create(&PostParams::default(), &third).await;
    assert_eq!(refusal(full).0, 500, "the range is not ready");
    ranges.patch_status("more", &PatchParams::default(), &ready("True")).await.unwrap();
    let third = services.create(&PostParams::default(), &third).await.unwrap();
    let address = third.data["spec"]["clusterIP"].as_str().unwrap();
    // The first ones are left to those who ask for them.
    let last: u8 = address.strip_prefix("10.0.1.").unwrap().parse().unwrap();
    assert!((17..255).contains(&last), "{address}");
}

#[tokio::test]
async fn addresses_are_there_again_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let before = {
        let client = start(&place).await;
        create(&api(&client, "", "Service"), service("a", json!({}))).await;
        names(&client).await
    };
    assert_eq!(before.len(), 2);
    assert_eq!(names(&start(&place).await).await, before);
}
