use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{api, client, create, object, refusal};

fn service(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["ports"] = json!([{"port": 80}]);
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn every_service_gets_its_own_loopback_address_and_keeps_it() {
    let services = api(&client(), "", "Service");
    let a = create(&services, service("a", json!({}))).await;
    let b = create(&services, service("b", json!({}))).await;
    let address = a.data["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("127.96."), "{address}");
    assert_ne!(a.data["spec"]["clusterIP"], b.data["spec"]["clusterIP"]);
    assert_eq!(a.data["spec"]["clusterIPs"], json!([address]));

    let mut bare = service("a", json!({"selector": {"app": "web"}}));
    bare["metadata"]["resourceVersion"] = a.metadata.resource_version.clone().unwrap().into();
    let replaced = services.replace("a", &PostParams::default(), &object(bare)).await.unwrap();
    assert_eq!(replaced.data["spec"]["clusterIP"], address.as_str());

    let taken = service("c", json!({"clusterIP": address}));
    let refused = services.create(&PostParams::default(), &object(taken)).await;
    assert_eq!(refusal(refused), (422, "Invalid".into()));
}

#[tokio::test(start_paused = true)]
async fn a_node_port_comes_with_the_type_and_goes_with_it() {
    let services = api(&client(), "", "Service");
    let made = create(&services, service("a", json!({"type": "NodePort"}))).await;
    let port = made.data["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
    assert!((30_000..=32_767).contains(&port));
    let patch = Patch::Merge(json!({"spec": {"type": "ClusterIP"}}));
    let back = services.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(back.data["spec"]["ports"][0].get("nodePort"), None);
}

#[tokio::test(start_paused = true)]
async fn a_node_port_belongs_to_one_service_until_that_goes() {
    let services = api(&client(), "", "Service");
    let with = |name: &str, port: i64| {
        let mut wanted = service(name, json!({"type": "NodePort"}));
        wanted["spec"]["ports"][0]["nodePort"] = port.into();
        wanted
    };
    create(&services, with("a", 30_001)).await;
    let params = PostParams::default();
    let refused = services.create(&params, &object(with("b", 30_001))).await;
    assert_eq!(refusal(refused), (422, "Invalid".into()));
    let refused = services.create(&params, &object(with("b", 29_999))).await;
    assert_eq!(refusal(refused), (422, "Invalid".into()));
    services.delete("a", &DeleteParams::default()).await.unwrap();
    create(&services, with("b", 30_001)).await;
}

#[tokio::test(start_paused = true)]
async fn a_headless_service_has_no_address() {
    let services = api(&client(), "", "Service");
    let made = create(&services, service("a", json!({"clusterIP": "None"}))).await;
    assert_eq!(made.data["spec"]["clusterIP"], "None");
}

#[tokio::test(start_paused = true)]
async fn an_address_outside_the_range_is_refused() {
    let services = api(&client(), "", "Service");
    for address in ["0.0.0.0", "127.0.0.1", "8.8.8.8"] {
        let foreign = object(service("a", json!({"clusterIP": address})));
        let refused = services.create(&PostParams::default(), &foreign).await;
        assert_eq!(refusal(refused), (422, "Invalid".into()), "{address}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_endpoints_of_a_service_go_with_it_and_no_others() {
    let client = client();
    let (services, endpoints) = (api(&client, "", "Service"), api(&client, "", "Endpoints"));
    create(&services, service("a", json!({}))).await;
    for name in ["a", "b"] {
        let made = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name}});
        create(&endpoints, made).await;
    }
    services.delete("a", &DeleteParams::default().dry_run()).await.unwrap();
    assert!(endpoints.get_opt("a").await.unwrap().is_some());
    services.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(endpoints.get_opt("a").await.unwrap().is_none());
    assert!(endpoints.get_opt("b").await.unwrap().is_some());
}
