//! What quotas count, and when they give back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use homeostat::kube;
use homeostat::kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use homeostat_testing::{World, object, on_world};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use serde_json::{Value, json};

/// Waits until the quota has this much in use.
async fn until_used(world: &World, resource: &str, amount: &str) {
    let what = format!("{amount} of {resource} in use");
    world
        .until_one::<ResourceQuota>("q", &what, |quota| {
            let used = quota.status.as_ref().and_then(|status| status.used.as_ref());
            used.and_then(|used| used.get(resource)).is_some_and(|used| used.0 == amount)
        })
        .await;
}

async fn quota(world: &World, hard: Value) {
    world.create::<ResourceQuota>(json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await;
}

async fn refused<T>(world: &World, value: Value) -> String
where
    T: homeostat::Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
{
    match world.api::<T>().create(&PostParams::default(), &object(value)).await {
        Err(kube::Error::Api(status)) if status.code == 403 => status.message,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_deleted_object_makes_room_for_another() {
    on_world(async |world| {
        // one is there already: the certificate authority's
        quota(world, json!({"count/configmaps": "2"})).await;
        until_used(world, "count/configmaps", "1").await;
        world.create::<ConfigMap>(json!({"metadata": {"name": "a"}})).await;
        let words = refused::<ConfigMap>(world, json!({"metadata": {"name": "b"}})).await;
        assert!(words.ends_with(
            "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, \
             limited: count/configmaps=2"
        ));
        world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        until_used(world, "count/configmaps", "1").await;
        world.create::<ConfigMap>(json!({"metadata": {"name": "b"}})).await;
    });
}

#[test]
fn a_finished_pod_gives_back_what_it_asked_for() {
    on_world(async |world| {
        quota(world, json!({"pods": "1", "requests.cpu": "1"})).await;
        until_used(world, "pods", "0").await;
        let pod = |name: &str| {
            json!({"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [
                {"name": "c", "image": "succeeds", "resources": {"requests": {"cpu": "700m"}}},
            ]}})
        };
        world.create::<Pod>(pod("a")).await;
        until_used(world, "requests.cpu", "0").await;
        world.create::<Pod>(pod("b")).await;
    });
}

#[test]
fn a_changed_quota_is_counted_anew() {
    on_world(async |world| {
        quota(world, json!({"pods": "1"})).await;
        until_used(world, "pods", "0").await;
        let patch = json!({"spec": {"hard": {"pods": "2", "count/secrets": "3"}}});
        world.patch::<ResourceQuota>("q", patch).await;
        until_used(world, "count/secrets", "0").await;
    });
}

#[test]
fn a_status_that_somebody_else_wrote_is_put_right() {
    on_world(async |world| {
        quota(world, json!({"pods": "1"})).await;
        until_used(world, "pods", "0").await;
        let patch = Patch::Merge(json!({"status": {"hard": {"pods": "9"}}}));
        let quotas = world.api::<ResourceQuota>();
        quotas.patch_status("q", &PatchParams::default(), &patch).await.unwrap();
        world
            .until_one::<ResourceQuota>("q", "the limit that holds", |quota| {
                let hard = quota.status.as_ref().and_then(|status| status.hard.as_ref());
                hard.is_some_and(|hard| hard["pods"].0 == "1")
            })
            .await;
    });
}
