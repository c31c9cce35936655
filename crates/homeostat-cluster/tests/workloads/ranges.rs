//! The ranges that Services get their addresses from.

use futures::StreamExt as _;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams, PostParams, WatchEvent, WatchParams};
use homeostat_testing::{object, on_world};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use serde_json::json;

fn is_ready(range: &ServiceCIDR) -> Option<bool> {
    let conditions = range.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(ready.status == "True")
}

#[test]
fn a_range_stays_until_no_service_has_an_address_of_it() {
    on_world(async |world| {
        let ranges: Api<ServiceCIDR> = Api::all(world.client.clone());
        let name = format!("range-{}", world.namespace);
        let range =
            object(json!({"metadata": {"name": name}, "spec": {"cidrs": ["10.123.45.0/24"]}}));
        ranges.create(&PostParams::default(), &range).await.unwrap();
        world.nothing_more().await;
        let made = ranges.get(&name).await.unwrap();
        assert_eq!(is_ready(&made), Some(true));
        assert_eq!(made.finalizers(), ["networking.k8s.io/service-cidr-finalizer"]);

        let service = json!({"metadata": {"name": "s"},
            "spec": {"clusterIP": "10.123.45.6", "ports": [{"port": 80}]}});
        world.create::<Service>(service).await;
        ranges.delete(&name, &DeleteParams::default()).await.unwrap();
        world.nothing_more().await;
        let held = ranges.get(&name).await.unwrap();
        assert_eq!(is_ready(&held), Some(false), "an address depends on it");

        let one = WatchParams::default().fields(&format!("metadata.name={name}"));
        let mut events = ranges.watch(&one, "0").await.unwrap().boxed();
        let services: Api<Service> = world.api();
        services.delete("s", &DeleteParams::default()).await.unwrap();
        while !matches!(events.next().await.unwrap().unwrap(), WatchEvent::Deleted(_)) {}
    });
}
