//! With the node agent, real processes and a PostgreSQL of this host.

use homeostat::k8s_openapi::ByteString;
use homeostat::k8s_openapi::api::core::v1::Secret;
use homeostat_cluster::node::image::postgresql_versions;
use homeostat_cluster::node::{Agent, AgentConfig};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::both::{Place, on_both};
use crate::kinds::{ENDPOINT_SLICE, ENDPOINTS, EVERY, KindOf, LOGICAL_DATABASE, POD, SECRET};
use crate::{declare, settle};

fn kinds_without(left_out: &[KindOf]) -> Vec<KindOf> {
    EVERY.into_iter().filter(|kind| !left_out.contains(kind)).collect()
}

/// The Secret of a Database, with the address of its Pod instead of that of its Service:
/// kube-apiserver refuses loopback addresses in endpoints, and the Pods of the node agent have no
/// others.
async fn secret_that_names_the_pod(place: &Place) {
    let is_it = |pod: &Value| pod["metadata"]["name"] == "shop-0";
    let pods = place.until(POD, "the Pod of the Database", |all| all.iter().any(is_it)).await;
    let pod = pods.into_iter().find(is_it).unwrap();
    let secrets: Api<Secret> = Api::namespaced(place.client.clone(), &place.namespace);
    let mut data = secrets.get("shop-credentials").await.unwrap().data.unwrap();
    let address = pod["status"]["podIP"].as_str().unwrap();
    data.insert("host".to_owned(), ByteString(address.into()));
    let secret = Secret {
        metadata: kube::api::ObjectMeta { name: Some("server".to_owned()), ..Default::default() },
        data: Some(data),
        ..Secret::default()
    };
    secrets.create(&PostParams::default(), &secret).await.unwrap();
}

#[tokio::test]
async fn operators_come_to_the_same_good_end_on_both_apis_with_processes_and_postgresql() {
    let version = postgresql_versions().pop().expect("PostgreSQL is installed");
    let objects = on_both(async |place| {
        let place = place.start().await;
        let mut config = AgentConfig::new(place.client.clone(), place.env.clone());
        config.node = Some("node".to_owned());
        config.helper = Some(env!("CARGO_BIN_EXE_homeostat").into());
        let agent = Agent::start(config).await.unwrap();
        declare(&place, &version.to_string()).await;
        settle(&place).await;
        secret_that_names_the_pod(&place).await;
        let orders =
            json!({ "serverSecret": "server", "databaseName": "orders", "owner": "clerk" });
        place.create(LOGICAL_DATABASE, "orders", orders).await;
        place.until_value(LOGICAL_DATABASE, "orders", "/status/ready", &json!(true)).await;
        let kinds = kinds_without(&[ENDPOINTS, ENDPOINT_SLICE]);
        let objects = place.snapshot(&kinds).await;
        place.clear().await;
        agent.stop().await;
        objects
    })
    .await;
    let orders = &objects["LogicalDatabase orders"];
    assert_eq!(orders["status"]["conditions"][0]["reason"], "Provisioned");
    assert!(objects.contains_key(&format!("{} orders-credentials", SECRET.2)));
}
