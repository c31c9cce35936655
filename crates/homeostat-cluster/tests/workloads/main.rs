//! Deployments, replica sets, stateful sets, daemon sets, jobs, endpoints, volumes, roles and the scheduler.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod batch;
mod budgets;
mod daemons;
mod jobs;
mod ordered;
mod policies;
mod ranges;
mod retained;
mod roles;
mod rollouts;
mod room;
mod volumes;

use homeostat::kube::ResourceExt;
use homeostat::kube::api::DeleteParams;
use homeostat_testing::{on_world, pod_template as template};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Endpoints, Event, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

/// A Deployment with surge.
fn deployment(replicas: i32, image: &str) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}}, "template": template("web", image),
        "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}})
}

fn is_rolled_out(deployment: &Deployment, replicas: i32) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && [status.replicas, status.updated_replicas, status.available_replicas]
            .iter()
            .all(|count| count.unwrap_or(0) == replicas)
        && status.conditions.iter().flatten().any(|c| {
            c.type_ == "Progressing" && c.reason.as_deref() == Some("NewReplicaSetAvailable")
        })
}

#[test]
fn a_deployment_makes_its_pods_and_heals_them() {
    on_world(async |world| {
        world.create::<Deployment>(deployment(3, "one")).await;
        world.until_one("web", "a rollout", |d| is_rolled_out(d, 3)).await;
        let pods = world.list::<Pod>("app=web").await;
        assert_eq!(pods.len(), 3);
        let sets = world.list::<ReplicaSet>("app=web").await;
        assert_eq!(sets.len(), 1);
        assert_eq!(sets[0].annotations()["deployment.kubernetes.io/revision"], "1");
        let victim = pods[0].name_any();
        world.api::<Pod>().delete(&victim, &DeleteParams::default()).await.unwrap();
        world
            .until::<Pod>("a replacement", |all| {
                all.len() == 3 && all.iter().all(|pod| pod.name_any() != victim)
            })
            .await;
        world.nothing_more().await;
        assert_eq!(world.list::<Pod>("app=web").await.len(), 3);
        world.patch::<Deployment>("web", json!({"spec": {"replicas": 1}})).await;
        world.until_one("web", "a smaller rollout", |d| is_rolled_out(d, 1)).await;
        world.until::<Pod>("one pod", |all| all.len() == 1).await;
        world.api::<Deployment>().delete("web", &DeleteParams::default()).await.unwrap();
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
        world.until::<ReplicaSet>("the end of the sets", <[ReplicaSet]>::is_empty).await;
    });
}

#[test]
fn rolling_update_never_drops_below_available() {
    on_world(async |world| {
        world.create::<Deployment>(deployment(3, "one")).await;
        world.until_one("web", "a rollout", |d| is_rolled_out(d, 3)).await;
        world
            .patch::<Deployment>("web", json!({"spec": {"template": template("web", "two")}}))
            .await;
        let is_new =
            |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("two");
        let pods = world.until::<Pod>("only new pods", |all| {
            let available = all
                .iter()
                .filter(|pod| pod.metadata.deletion_timestamp.is_none())
                .filter(|pod| {
                    let conditions = pod.status.iter().flat_map(|s| s.conditions.iter().flatten());
                    conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True")
                })
                .count();
            assert!(available >= 3, "only {available} available");
            all.len() == 3 && all.iter().all(is_new)
        });
        // How many are asked for: a Pod that has to go may go a moment after another has come.
        let sets = world.until::<ReplicaSet>("one set with all", |all| {
            let asked = |set: &ReplicaSet| set.spec.as_ref().and_then(|spec| spec.replicas);
            let together: i32 = all.iter().filter_map(asked).sum();
            assert!(together <= 4, "{together} pods at once");
            all.len() == 2 && all.iter().any(|set| asked(set) == Some(0))
        });
        tokio::join!(pods, sets);
        let done = world.until_one("web", "the second rollout", |d| is_rolled_out(d, 3)).await;
        assert_eq!(done.annotations()["deployment.kubernetes.io/revision"], "2");
        // Back to the first template: the same set, a new number.
        world
            .patch::<Deployment>("web", json!({"spec": {"template": template("web", "one")}}))
            .await;
        world
            .until_one::<Deployment>("web", "the way back", |d| {
                is_rolled_out(d, 3) && d.annotations()["deployment.kubernetes.io/revision"] == "3"
            })
            .await;
        let sets = world.list::<ReplicaSet>("app=web").await;
        assert_eq!(sets.len(), 2);
    });
}

#[test]
fn a_rollout_that_never_gets_ready_misses_its_deadline() {
    on_world(async |world| {
        let mut web = deployment(1, "one");
        web["spec"]["progressDeadlineSeconds"] = json!(2);
        world.create::<Deployment>(web).await;
        world.until_one("web", "a rollout", |d| is_rolled_out(d, 1)).await;
        world
            .patch::<Deployment>("web", json!({"spec": {"template": template("web", "starts")}}))
            .await;
        let stuck = world
            .until_one::<Deployment>("web", "the deadline", |d| {
                d.status.iter().any(|s| {
                    s.conditions
                        .iter()
                        .flatten()
                        .any(|c| c.reason.as_deref() == Some("ProgressDeadlineExceeded"))
                })
            })
            .await;
        assert_eq!(stuck.status.unwrap().available_replicas, Some(1), "the old pod still serves");
    });
}

#[test]
fn a_replica_set_adopts_what_matches_and_releases_what_does_not() {
    on_world(async |world| {
        let mut orphan = template("web", "one");
        orphan["metadata"]["name"] = json!("orphan");
        world.create::<Pod>(orphan).await;
        // The scheduler has seen it: so has the cache, which all controllers share.
        let placed = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        world.until_one::<Pod>("orphan", "a node", placed).await;
        world
            .create::<ReplicaSet>(json!({"metadata": {"name": "web"}, "spec": {"replicas": 1,
                "selector": {"matchLabels": {"app": "web"}}, "template": template("web", "one")}}))
            .await;
        let adopted = |pod: &Pod| !pod.owner_references().is_empty();
        world.until_one::<Pod>("orphan", "adoption", adopted).await;
        world.nothing_more().await;
        assert_eq!(world.list::<Pod>("app=web").await.len(), 1, "it counts");
        world.patch::<Pod>("orphan", json!({"metadata": {"labels": {"app": "other"}}})).await;
        world.until_one::<Pod>("orphan", "release", |pod| !adopted(pod)).await;
        world
            .until::<Pod>("a pod in its place", |all| {
                all.iter()
                    .filter(|p| p.labels().get("app").map(String::as_str) == Some("web"))
                    .count()
                    == 1
            })
            .await;
    });
}

#[test]
fn a_service_leads_to_its_ready_pods() {
    on_world(async |world| {
        world
            .create::<Service>(json!({"metadata": {"name": "web"}, "spec":
                {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}}))
            .await;
        world.create::<Deployment>(deployment(2, "one")).await;
        let addresses = |slices: &[EndpointSlice]| {
            slices
                .iter()
                .filter(|s| {
                    s.labels().get("kubernetes.io/service-name").map(String::as_str) == Some("web")
                })
                .flat_map(|s| s.endpoints.iter().flatten())
                .filter(|e| e.conditions.as_ref().is_some_and(|c| c.ready == Some(true)))
                .count()
        };
        world.until::<EndpointSlice>("two addresses", |all| addresses(all) == 2).await;
        world
            .until_one::<Endpoints>("web", "two addresses", |endpoints| {
                let subsets = endpoints.subsets.iter().flatten();
                subsets.flat_map(|s| s.addresses.iter().flatten()).count() == 2
            })
            .await;
        world.patch::<Deployment>("web", json!({"spec": {"replicas": 0}})).await;
        world.until::<EndpointSlice>("no addresses", |all| addresses(all) == 0).await;
        world.api::<Service>().delete("web", &DeleteParams::default()).await.unwrap();
        world.until::<EndpointSlice>("the end of the slice", <[EndpointSlice]>::is_empty).await;
    });
}

#[test]
fn a_pod_that_fits_nowhere_waits_and_says_why() {
    on_world(async |world| {
        let mut pod = template("web", "runs");
        pod["metadata"]["name"] = json!("p");
        pod["spec"]["nodeSelector"] = json!({"disk": "none-such"});
        world.create::<Pod>(pod).await;
        world
            .until_one::<Pod>("p", "a refusal", |pod| {
                pod.status.iter().any(|s| {
                    s.conditions.iter().flatten().any(|c| {
                        c.type_ == "PodScheduled"
                            && c.status == "False"
                            && c.reason.as_deref() == Some("Unschedulable")
                    })
                })
            })
            .await;
        world
            .until::<Event>("an event", |all| {
                all.iter().any(|event| event.reason.as_deref() == Some("FailedScheduling"))
            })
            .await;
    });
}
