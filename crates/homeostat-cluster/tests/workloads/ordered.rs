//! In which order the Pods of a StatefulSet come and change.

use homeostat::kube::ResourceExt;
use homeostat_testing::{on_world, pod_template as template};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn set(image: &str, policy: &str) -> Value {
    json!({"metadata": {"name": "db"}, "spec": {"replicas": 3, "serviceName": "db",
        "podManagementPolicy": policy, "selector": {"matchLabels": {"app": "db"}},
        "template": template("db", image)}})
}

fn has_ready(count: i32) -> impl Fn(&StatefulSet) -> bool {
    move |set| {
        set.status.as_ref().is_some_and(|status| {
            status.ready_replicas == Some(count)
                && status.observed_generation == set.metadata.generation
        })
    }
}

fn images(pods: &[Pod]) -> Vec<(String, String)> {
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    let mut images: Vec<_> = pods.iter().map(|pod| (pod.name_any(), image(pod))).collect();
    images.sort();
    images
}

#[test]
fn a_pod_waits_for_the_one_before_it() {
    on_world(async |world| {
        world.create::<StatefulSet>(set("starts", "OrderedReady")).await;
        world.until::<Pod>("the first pod", |all| !all.is_empty()).await;
        world.nothing_more().await;
        let pods = world.list::<Pod>("app=db").await;
        assert_eq!(images(&pods), [("db-0".to_owned(), "starts".to_owned())]);
    });
}

#[test]
fn pods_that_need_not_wait_come_together() {
    on_world(async |world| {
        world.create::<StatefulSet>(set("starts", "Parallel")).await;
        world.until::<Pod>("all pods", |all| all.len() == 3).await;
    });
}

#[test]
fn an_update_stops_at_the_partition() {
    on_world(async |world| {
        world.create::<StatefulSet>(set("one", "OrderedReady")).await;
        world.until_one("db", "three pods", has_ready(3)).await;
        let update = |partition: i32| {
            json!({"spec": {"template": template("db", "two"), "updateStrategy":
                {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}})
        };
        let has_updated = |count: i32| {
            move |set: &StatefulSet| {
                has_ready(3)(set)
                    && set.status.as_ref().is_some_and(|s| s.updated_replicas == Some(count))
            }
        };
        world.patch::<StatefulSet>("db", update(2)).await;
        world.until_one("db", "one updated pod", has_updated(1)).await;
        world.nothing_more().await;
        let of = |name: &str, image: &str| (name.to_owned(), image.to_owned());
        let pods = world.list::<Pod>("app=db").await;
        assert_eq!(images(&pods), [of("db-0", "one"), of("db-1", "one"), of("db-2", "two")]);
        let status = world.get::<StatefulSet>("db").await.unwrap().status.unwrap();
        assert_ne!(status.current_revision, status.update_revision);
        assert_eq!(status.current_replicas, Some(2));

        world.patch::<StatefulSet>("db", update(0)).await;
        world.until_one("db", "the whole update", has_updated(3)).await;
        let pods = world.list::<Pod>("app=db").await;
        assert_eq!(images(&pods), [of("db-0", "two"), of("db-1", "two"), of("db-2", "two")]);
    });
}
