//! The Greeting operator on the embedded API and virtual time, or on a real cluster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use first_operator::{Greeting, GreetingSpec, controller};
use homeostat_testing::on_cluster;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

#[test]
fn a_greeting_is_written_and_put_right_when_somebody_edits_it() {
    on_cluster(async |cluster| {
        let controller = controller().namespace(&cluster.namespace);
        let manager = cluster.manager().with_crd::<Greeting>().with(controller);
        let running = cluster.start_manager(manager).await;

        cluster.create(&Greeting::new("world", GreetingSpec { who: "world".into() })).await;
        cluster.runs(&running.journal(), 1).await;
        let card = cluster.get::<ConfigMap>("world").await.unwrap();
        assert_eq!(card.data.unwrap()["greeting"], "Hello, world!");

        cluster.patch::<ConfigMap>("world", json!({ "data": { "greeting": "Go away!" } })).await;
        cluster.quiet().await;
        let card = cluster.get::<ConfigMap>("world").await.unwrap();
        assert_eq!(card.data.unwrap()["greeting"], "Hello, world!");
        running.stop().await.unwrap();
    });
}
