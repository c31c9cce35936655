//! A server that comes up is found soon: no long backoff is waited out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::time::Duration;

use homeostat::k8s_openapi::api::core::v1::Secret;
use homeostat_testing::on_cluster;
use operator_logical_database::LogicalDatabase;
use serde_json::json;
use tokio::net::TcpListener;

#[test]
fn a_server_that_begins_to_listen_is_asked_within_a_part_of_the_time_it_took() {
    on_cluster(async |cluster| {
        // A port where nothing listens yet.
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let controller = operator_logical_database::controller().namespace(&cluster.namespace);
        let manager = cluster.manager().with_crd::<LogicalDatabase>().with(controller);
        let running = cluster.start_manager(manager).await;
        let data = json!({ "host": "127.0.0.1", "port": address.port().to_string(),
            "username": "a", "password": "b" });
        let secret = json!({ "metadata": { "name": "server" }, "stringData": data });
        cluster.create::<Secret>(secret).await;
        let spec = json!({ "serverSecret": "server", "databaseName": "orders", "owner": "clerk" });
        let object = json!({ "metadata": { "name": "orders" }, "spec": spec });
        cluster.create::<LogicalDatabase>(object).await;
        let is_away = |object: &LogicalDatabase| {
            object.status.iter().flat_map(|status| &status.conditions).any(|condition| {
                condition.reason == "ServerUnavailable"
                    && condition.message.ends_with("nothing listens there")
            })
        };
        cluster.until_one("orders", "a word on the server", is_away).await;
        // About as long as a Database takes to start.
        cluster.env.sleep(Duration::from_secs(5)).await;
        let listener = TcpListener::bind(address).await.unwrap();
        let before = cluster.env.now();
        listener.accept().await.unwrap();
        let took = cluster.env.now().duration_since(before);
        // A backoff that doubles would have come two seconds later.
        assert!(took.as_millis() < 1900, "it was asked after {took}");
        running.stop().await.unwrap();
    });
}
