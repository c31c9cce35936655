//! An object whose server has no Secret yet says so, and needs nothing but the Secret to go on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::k8s_openapi::api::core::v1::{Event, Secret};
use homeostat_testing::on_cluster;
use operator_logical_database::LogicalDatabase;
use serde_json::json;

fn says(reason: &str) -> impl Fn(&LogicalDatabase) -> bool {
    move |object| {
        object.status.iter().flat_map(|status| &status.conditions).any(|condition| {
            (&*condition.type_, &*condition.status) == ("Ready", "False")
                && condition.reason == reason
        })
    }
}

#[test]
fn a_missing_server_secret_is_told_of_and_its_coming_is_noticed_at_once() {
    on_cluster(async |cluster| {
        let controller = operator_logical_database::controller().namespace(&cluster.namespace);
        let manager = cluster.manager().with_crd::<LogicalDatabase>().with(controller);
        let running = cluster.start_manager(manager).await;
        let spec = json!({ "serverSecret": "server", "databaseName": "orders", "owner": "clerk" });
        let object = json!({ "metadata": { "name": "orders" }, "spec": spec });
        cluster.create::<LogicalDatabase>(object).await;
        cluster.until_one("orders", "its wait", says("WaitingForServer")).await;
        cluster
            .until::<Event>("a warning that names the Secret", |events| {
                events.iter().any(|event| {
                    event.type_.as_deref() == Some("Warning")
                        && event.reason.as_deref() == Some("WaitingForServer")
                        && event.message.as_ref().is_some_and(|message| {
                            message.starts_with("there is no Secret server in this namespace")
                        })
                })
            })
            .await;
        cluster.quiet().await;
        let before = cluster.env.now();
        // A port where nothing listens: that the object is looked at again is all that matters here.
        let data = json!({ "host": "127.0.0.1", "port": "1", "username": "a", "password": "b" });
        let secret = json!({ "metadata": { "name": "server" }, "stringData": data });
        cluster.create::<Secret>(secret).await;
        cluster.until_one("orders", "a look at the server", says("ServerUnavailable")).await;
        let took = cluster.env.now().duration_since(before);
        assert!(took.as_secs() < 5, "no timer was waited for: {took}");
        running.stop().await.unwrap();
    });
}
