//! When the claims of a StatefulSet go, and what is told when they cannot be made.

use homeostat::kube::ResourceExt;
use homeostat::kube::api::DeleteParams;
use homeostat_testing::{World, on_world, pod_template as template};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod, ResourceQuota};
use serde_json::{Value, json};

fn set(policy: &Value) -> Value {
    json!({"metadata": {"name": "db"}, "spec": {"replicas": 2, "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "one"),
        "persistentVolumeClaimRetentionPolicy": policy,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}})
}

async fn until_ready(world: &World, count: i32) {
    world
        .until_one::<StatefulSet>("db", &format!("{count} ready pods"), |set| {
            set.status.as_ref().is_some_and(|status| {
                status.ready_replicas == Some(count)
                    && status.replicas == count
                    && status.observed_generation == set.metadata.generation
            })
        })
        .await;
}

#[test]
fn a_smaller_set_gives_back_its_claims_if_it_is_told_to() {
    on_world(async |world| {
        let policy = json!({"whenDeleted": "Retain", "whenScaled": "Delete"});
        world.create::<StatefulSet>(set(&policy)).await;
        until_ready(world, 2).await;
        let claims = world.api::<PersistentVolumeClaim>();
        let first = claims.get("data-db-1").await.unwrap().uid();
        // A Pod that only goes for a moment keeps its claim.
        let pod = world.get::<Pod>("db-1").await.unwrap().uid();
        world.api::<Pod>().delete("db-1", &DeleteParams::default()).await.unwrap();
        world.until_one::<Pod>("db-1", "its return", |new| new.uid() != pod).await;
        until_ready(world, 2).await;
        assert_eq!(claims.get("data-db-1").await.unwrap().uid(), first);

        world.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
        world.until_gone::<PersistentVolumeClaim>("data-db-1").await;
        until_ready(world, 1).await;
        world.patch::<StatefulSet>("db", json!({"spec": {"replicas": 2}})).await;
        until_ready(world, 2).await;
        assert_ne!(claims.get("data-db-1").await.unwrap().uid(), first, "a new disk");

        world.api::<StatefulSet>().delete("db", &DeleteParams::default()).await.unwrap();
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
        world.nothing_more().await;
        assert_eq!(world.list::<PersistentVolumeClaim>("").await.len(), 2, "the disks stay");
    });
}

#[test]
fn what_becomes_of_claims_may_be_decided_later() {
    on_world(async |world| {
        world.create::<StatefulSet>(set(&json!(null))).await;
        until_ready(world, 2).await;
        let is_owned = |claim: &PersistentVolumeClaim| !claim.owner_references().is_empty();
        let decide = |deleted: &str| json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted}}});
        world.patch::<StatefulSet>("db", decide("Delete")).await;
        world
            .until::<PersistentVolumeClaim>("owners", |all| {
                all.iter().filter(|c| is_owned(c)).count() == 2
            })
            .await;
        world.patch::<StatefulSet>("db", decide("Retain")).await;
        world.until::<PersistentVolumeClaim>("freedom", |all| !all.iter().any(is_owned)).await;
        world.patch::<StatefulSet>("db", decide("Delete")).await;
        world
            .until::<PersistentVolumeClaim>("owners", |all| {
                all.iter().filter(|c| is_owned(c)).count() == 2
            })
            .await;
        world.api::<StatefulSet>().delete("db", &DeleteParams::default()).await.unwrap();
        world.until::<PersistentVolumeClaim>("the end", <[PersistentVolumeClaim]>::is_empty).await;
    });
}

#[test]
fn a_claim_that_cannot_be_made_is_told() {
    on_world(async |world| {
        let hard = json!({"persistentvolumeclaims": "0"});
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
        world.create::<ResourceQuota>(quota).await;
        let counts =
            |quota: &ResourceQuota| quota.status.as_ref().is_some_and(|s| s.used.is_some());
        world.until_one("q", "a quota that counts", counts).await;
        world.create::<StatefulSet>(set(&json!(null))).await;
        let is_told = |event: &Event| {
            event.reason.as_deref() == Some("FailedCreate")
                && event.message.as_deref().is_some_and(|message| {
                    message.starts_with(
                        "Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: ",
                    )
                })
        };
        world.until::<Event>("words", |all| all.iter().any(is_told)).await;
        assert!(world.list::<Pod>("").await.is_empty());
    });
}
