//! A server that accepts connections and then says nothing does not hold anything up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::k8s_openapi::api::core::v1::{Event, Secret};
use homeostat_testing::on_cluster;
use kube::api::{DeleteParams, Patch, PatchParams};
use operator_logical_database::LogicalDatabase;
use serde_json::json;
use tokio::net::TcpListener;

#[test]
fn a_login_that_hangs_is_given_up_and_what_is_to_stay_is_let_go() {
    on_cluster(async |cluster| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let controller = operator_logical_database::controller().namespace(&cluster.namespace);
        let manager = cluster.manager().with_crd::<LogicalDatabase>().with(controller);
        let running = cluster.start_manager(manager).await;

        let data = json!({ "host": "127.0.0.1", "port": port, "username": "a", "password": "b" });
        let secret = json!({ "metadata": { "name": "server" }, "stringData": data });
        cluster.create::<Secret>(secret).await;
        let spec = json!({ "serverSecret": "server", "databaseName": "orders", "owner": "clerk",
            "deletionPolicy": "Retain" });
        let object = json!({ "metadata": { "name": "orders" }, "spec": spec });
        cluster.create::<LogicalDatabase>(object).await;
        let gave_up = |object: &LogicalDatabase| {
            object.status.iter().flat_map(|status| &status.conditions).any(|condition| {
                condition.reason == "ServerUnavailable"
                    && condition.message.contains("did not let us in within 5s")
            })
        };
        cluster.until_one("orders", "the end of patience", gave_up).await;

        // As if it had been made there before the server fell silent.
        let objects = cluster.api::<LogicalDatabase>();
        let made = Patch::Merge(json!({ "status": { "externalId": "somewhere/orders" } }));
        objects.patch_status("orders", &PatchParams::default(), &made).await.unwrap();
        objects.delete("orders", &DeleteParams::default()).await.unwrap();
        cluster.until_gone::<LogicalDatabase>("orders").await;
        cluster
            .until::<Event>("a word on what stays", |events| {
                events.iter().any(|event| event.reason.as_deref() == Some("NotReleased"))
            })
            .await;
        running.stop().await.unwrap();
    });
}
