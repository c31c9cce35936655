//! PodDisruptionBudgets: who may be evicted, and when again.

use homeostat::kube::api::{Api, EvictParams};
use homeostat_testing::{on_world, pod_template as template};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};

use super::deployment;

fn budget(mut spec: Value) -> Value {
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    json!({"metadata": {"name": "web"}, "spec": spec})
}

/// Whether the status is of the current spec and says so.
fn says(budget: &PodDisruptionBudget, expected: i32, desired: i32, allowed: i32) -> bool {
    budget.status.as_ref().is_some_and(|status| {
        let counts = [status.expected_pods, status.desired_healthy, status.disruptions_allowed];
        status.observed_generation == budget.metadata.generation
            && counts == [Some(expected), Some(desired), Some(allowed)]
    })
}

#[test]
fn a_budget_is_a_share_of_what_the_workload_asks_for() {
    on_world(async |world| {
        world.create::<Deployment>(deployment(3, "one")).await;
        world.create::<PodDisruptionBudget>(budget(json!({"maxUnavailable": "40%"}))).await;
        world.until_one("web", "a budget of three", |budget| says(budget, 3, 1, 2)).await;
        world.patch::<Deployment>("web", json!({"spec": {"replicas": 5}})).await;
        world.until_one("web", "a budget of five", |budget| says(budget, 5, 3, 2)).await;
    });
}

#[test]
fn evictions_wait_for_the_budget_and_go_on_when_there_is_one_more() {
    on_world(async |world| {
        let pod = |name: &str| {
            let template = template("web", "one");
            let labels = template["metadata"]["labels"].clone();
            json!({"metadata": {"name": name, "labels": labels}, "spec": template["spec"]})
        };
        for name in ["a", "b", "c"] {
            world.create::<Pod>(pod(name)).await;
        }
        world.create::<PodDisruptionBudget>(budget(json!({"minAvailable": 2}))).await;
        world.until_one("web", "room for one", |budget| says(budget, 3, 2, 1)).await;

        let pods: Api<Pod> = world.api();
        pods.evict("a", &EvictParams::default()).await.unwrap();
        let refused = pods.evict("b", &EvictParams::default()).await.unwrap_err();
        let homeostat::kube::Error::Api(status) = refused else { panic!("{refused}") };
        assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));

        world.until_one("web", "the first is gone", |budget| says(budget, 2, 2, 0)).await;
        world.create::<Pod>(pod("d")).await;
        world.until_one("web", "room again", |budget| says(budget, 3, 2, 1)).await;
        pods.evict("b", &EvictParams::default()).await.unwrap();
    });
}
