//! Deployments that are held, and what they remember.

use homeostat::kube::ResourceExt;
use homeostat_testing::{on_world, pod_template as template};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::{deployment, is_rolled_out};

#[test]
fn a_paused_deployment_changes_nothing_until_it_goes_on() {
    on_world(async |world| {
        world.create::<Deployment>(deployment(2, "one")).await;
        world.until_one("web", "a rollout", |d| is_rolled_out(d, 2)).await;
        let patch = json!({"spec": {"paused": true, "template": template("web", "two")}});
        let paused = world.patch::<Deployment>("web", patch).await;
        world
            .until_one::<Deployment>("web", "the pause", |d| {
                d.status.as_ref().is_some_and(|status| {
                    status.observed_generation == paused.metadata.generation
                        && status.conditions.iter().flatten().any(|c| {
                            c.type_ == "Progressing"
                                && c.reason.as_deref() == Some("DeploymentPaused")
                        })
                })
            })
            .await;
        world.nothing_more().await;
        assert_eq!(world.list::<ReplicaSet>("app=web").await.len(), 1, "no new set");
        // What does not change the Pods is still done.
        world.patch::<Deployment>("web", json!({"spec": {"replicas": 3}})).await;
        world.until::<Pod>("three old pods", |all| all.len() == 3).await;

        world.patch::<Deployment>("web", json!({"spec": {"paused": false}})).await;
        world.until_one("web", "the rollout", |d| is_rolled_out(d, 3)).await;
        let pods = world.list::<Pod>("app=web").await;
        let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
        assert!(
            pods.iter()
                .filter(|p| p.metadata.deletion_timestamp.is_none())
                .all(|p| image(p) == "two")
        );
    });
}

#[test]
fn a_deployment_remembers_as_many_templates_as_it_is_told() {
    on_world(async |world| {
        let mut web = deployment(1, "zero");
        web["spec"]["revisionHistoryLimit"] = json!(1);
        world.create::<Deployment>(web).await;
        world.until_one("web", "a rollout", |d| is_rolled_out(d, 1)).await;
        for image in ["one", "two", "three"] {
            let patch = json!({"spec": {"template": template("web", image)}});
            world.patch::<Deployment>("web", patch).await;
            world.until_one("web", image, |d| is_rolled_out(d, 1)).await;
        }
        let revision = |set: &ReplicaSet| {
            set.annotations()["deployment.kubernetes.io/revision"].parse::<i32>().unwrap()
        };
        let sets = world
            .until::<ReplicaSet>("two sets", |all| {
                let mut revisions: Vec<i32> = all.iter().map(revision).collect();
                revisions.sort_unstable();
                revisions == [3, 4]
            })
            .await;
        assert_eq!(sets.len(), 2);
    });
}
