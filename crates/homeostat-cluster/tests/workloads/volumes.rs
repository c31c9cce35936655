//! Claims, volumes, and the stateful sets that keep them.

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams};
use homeostat_testing::{on_world, pod_template as template};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod};
use serde_json::json;

#[test]
fn statefulset_pods_keep_their_claims() {
    on_world(async |world| {
        let set = json!({"metadata": {"name": "db"}, "spec": {"replicas": 2, "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "one"),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}});
        world.create::<StatefulSet>(set).await;
        let ready = |want: i32| {
            move |set: &StatefulSet| {
                set.status.as_ref().is_some_and(|s| {
                    s.ready_replicas == Some(want)
                        && s.replicas == want
                        && s.observed_generation == set.metadata.generation
                })
            }
        };
        world.until_one("db", "two pods", ready(2)).await;
        let claims = world.list::<PersistentVolumeClaim>("app=db").await;
        let names: Vec<String> = claims.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["data-db-0", "data-db-1"]);
        let before = world.get::<Pod>("db-0").await.unwrap().uid();
        world.api::<Pod>().delete("db-0", &DeleteParams::default()).await.unwrap();
        world
            .until_one::<Pod>("db-0", "its return", |pod| {
                pod.uid() != before
                    && pod.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Running"))
            })
            .await;
        let after = world.list::<PersistentVolumeClaim>("app=db").await;
        let uids = |claims: &[PersistentVolumeClaim]| {
            claims.iter().map(ResourceExt::uid).collect::<Vec<_>>()
        };
        assert_eq!(uids(&claims), uids(&after));
        world.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
        world.until_one("db", "one pod", ready(1)).await;
        assert_eq!(world.list::<PersistentVolumeClaim>("app=db").await.len(), 2, "the disk stays");
        world
            .patch::<StatefulSet>("db", json!({"spec": {"template": template("db", "two")}}))
            .await;
        world
            .until_one::<StatefulSet>("db", "the update", |set| {
                let status = set.status.clone().unwrap_or_default();
                status.updated_replicas == Some(1)
                    && status.current_revision == status.update_revision
                    && status.ready_replicas == Some(1)
                    && status.observed_generation == set.metadata.generation
            })
            .await;
        let pod = world.get::<Pod>("db-0").await.unwrap();
        assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("two"));
        assert_eq!(world.list::<ControllerRevision>("").await.len(), 2);
    });
}

#[test]
fn a_claim_gets_a_directory_and_gives_it_back() {
    on_world(async |world| {
        world
            .create::<PersistentVolumeClaim>(json!({"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))
            .await;
        let touched = json!({"metadata": {"annotations": {"touched": "meanwhile"}}});
        world.patch::<PersistentVolumeClaim>("data", touched).await;
        let bound = world
            .until_one::<PersistentVolumeClaim>("data", "a volume", |claim| {
                claim.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Bound"))
            })
            .await;
        let name = bound.spec.unwrap().volume_name.unwrap();
        world.quiet().await;
        let told = world.list::<Event>("").await;
        let told = told.iter().filter(|e| e.reason.as_deref() == Some("ProvisioningSucceeded"));
        let told: i32 =
            told.map(|event| event.series.as_ref().map_or(1, |s| s.count.unwrap_or(1))).sum();
        assert_eq!(told, 1, "it is told once, however often the claim is looked at");
        let volumes: Api<PersistentVolume> = Api::all(world.client.clone());
        let path = volumes.get(&name).await.unwrap().spec.unwrap().host_path.unwrap().path;
        assert!(std::path::Path::new(&path).starts_with(world.volumes.path()));
        std::fs::create_dir_all(&path).unwrap();
        let api = world.api::<PersistentVolumeClaim>();
        api.delete("data", &DeleteParams::default()).await.unwrap();
        world.until_gone::<PersistentVolumeClaim>("data").await;
        world.nothing_more().await;
        assert!(volumes.get_opt(&name).await.unwrap().is_none());
        assert!(!std::path::Path::new(&path).exists());
    });
}

#[test]
fn a_claim_that_a_pod_uses_stays_until_the_pod_is_gone() {
    on_world(async |world| {
        let claim = json!({"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        world.create::<PersistentVolumeClaim>(claim).await;
        let mut spec = template("a", "one")["spec"].clone();
        spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
        world.create::<Pod>(json!({"metadata": {"name": "user"}, "spec": spec})).await;
        world
            .until_one::<Pod>("user", "a node", |pod| {
                pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
            })
            .await;
        let claims = world.api::<PersistentVolumeClaim>();
        claims.delete("data", &DeleteParams::default()).await.unwrap();
        world.nothing_more().await;
        let held = claims.get("data").await.unwrap();
        assert!(held.metadata.deletion_timestamp.is_some());
        assert_eq!(held.finalizers(), ["kubernetes.io/pvc-protection"]);
        world.api::<Pod>().delete("user", &DeleteParams::default()).await.unwrap();
        world.until_gone::<PersistentVolumeClaim>("data").await;
    });
}
