//! An object that is deleted lets go of its server only when there is none any more, and says what
//! may be left there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::k8s_openapi::api::core::v1::{Event, Secret};
use homeostat_testing::{TestCluster, on_cluster};
use kube::api::{DeleteParams, Patch, PatchParams};
use operator_logical_database::LogicalDatabase;
use serde_json::json;

/// An object as if its role and database had been made, and its Secret become unreadable since.
async fn made_before(cluster: &TestCluster) {
    let secret = json!({ "metadata": { "name": "server" }, "stringData": { "host": "nowhere" } });
    cluster.create::<Secret>(secret).await;
    let spec = json!({ "serverSecret": "server", "databaseName": "orders", "owner": "clerk" });
    let object = json!({ "metadata": { "name": "orders" }, "spec": spec });
    cluster.create::<LogicalDatabase>(object).await;
    cluster
        .until_one("orders", "a finalizer", |object: &LogicalDatabase| {
            object.metadata.finalizers.is_some()
        })
        .await;
    let made = Patch::Merge(json!({ "status": { "externalId": "somewhere/orders" } }));
    let objects = cluster.api::<LogicalDatabase>();
    objects.patch_status("orders", &PatchParams::default(), &made).await.unwrap();
    objects.delete("orders", &DeleteParams::default()).await.unwrap();
}

async fn until_warning(cluster: &TestCluster, reason: &str, words: &str) {
    cluster
        .until::<Event>(&format!("a warning {reason} with {words:?}"), |events| {
            events.iter().any(|event| {
                event.type_.as_deref() == Some("Warning")
                    && event.reason.as_deref() == Some(reason)
                    && event.message.as_ref().is_some_and(|message| message.contains(words))
            })
        })
        .await;
}

#[test]
fn a_secret_that_cannot_be_read_keeps_the_object_and_one_that_is_gone_lets_it_go_with_a_warning() {
    on_cluster(async |cluster| {
        let controller = operator_logical_database::controller().namespace(&cluster.namespace);
        let manager = cluster.manager().with_crd::<LogicalDatabase>().with(controller);
        let running = cluster.start_manager(manager).await;
        made_before(&cluster).await;
        let stays = |object: &LogicalDatabase| {
            object.status.iter().flat_map(|status| &status.conditions).any(|condition| {
                (&*condition.type_, &*condition.reason) == ("Degraded", "CleanupFailed")
                    && condition.message.contains("no usable key")
            })
        };
        cluster.until_one("orders", "a word on the Secret", stays).await;
        until_warning(&cluster, "CleanupFailed", "no usable key").await;

        let everything = DeleteParams::default();
        cluster.api::<Secret>().delete("server", &everything).await.unwrap();
        cluster.until_gone::<LogicalDatabase>("orders").await;
        until_warning(
            &cluster,
            "LeftBehind",
            "role clerk and database may be left at somewhere/orders",
        )
        .await;
        running.stop().await.unwrap();
    });
}
