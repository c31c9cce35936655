//! The scheduler counts what Pods ask for.

use homeostat::kube::ResourceExt;
use homeostat::kube::api::DeleteParams;
use homeostat_testing::{World, on_world};
use k8s_openapi::api::core::v1::{Event, Pod};
use serde_json::{Value, json};

use crate::daemons::{add_node, remove_node};

/// A Pod for the nodes of this test that asks for so much.
fn asking(world: &World, name: &str, requests: &Value) -> Value {
    let container = json!({"name": "c", "image": "runs", "resources": {"requests": requests}});
    json!({"metadata": {"name": name}, "spec": {"nodeSelector": {"pool": world.namespace},
        "terminationGracePeriodSeconds": 0, "containers": [container]}})
}

fn runs(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
}

/// Why it is on no node.
fn refusal(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let refused = conditions.filter(|c| c.type_ == "PodScheduled" && c.status == "False");
    let refused = refused.filter(|c| c.reason.as_deref() == Some("Unschedulable"));
    refused.filter_map(|c| c.message.clone()).next()
}

#[test]
fn a_pod_that_asks_for_more_than_is_left_waits_until_room_comes_free() {
    on_world(async |world| {
        let node = add_node(world, "small").await;
        world.create::<Pod>(asking(world, "first", &json!({"cpu": "1500m"}))).await;
        world.until_one("first", "a place", runs).await;
        world.create::<Pod>(asking(world, "second", &json!({"cpu": "1", "memory": "1Gi"}))).await;
        let second = world.until_one::<Pod>("second", "a refusal", |p| refusal(p).is_some()).await;
        let words = refusal(&second).unwrap();
        assert!(words.starts_with("0/") && words.contains("1 Insufficient cpu"), "{words}");
        assert!(words.contains("1 No preemption victims found for incoming pod"), "{words}");
        assert!(!words.contains("memory"), "{words}");
        let told = |all: &[Event]| {
            all.iter().any(|event| {
                event.reason.as_deref() == Some("FailedScheduling")
                    && event.type_.as_deref() == Some("Warning")
                    && event.message.as_deref() == Some(words.as_str())
            })
        };
        world.until("an event", told).await;
        assert_eq!(second.spec.unwrap().node_name, None);
        // What fits is not held up by what does not.
        world.create::<Pod>(asking(world, "third", &json!({"cpu": "500m"}))).await;
        world.until_one("third", "a place", runs).await;

        world.api::<Pod>().delete("first", &DeleteParams::default()).await.unwrap();
        let second = world.until_one("second", "a place", runs).await;
        assert_eq!(second.spec.unwrap().node_name, Some(node.clone()));
        remove_node(world, &node).await;
    });
}

#[test]
fn a_pod_that_has_ended_gives_its_room_back() {
    on_world(async |world| {
        let node = add_node(world, "small").await;
        let mut brief = asking(world, "brief", &json!({"memory": "4Gi"}));
        brief["spec"]["containers"][0]["image"] = json!("succeeds");
        brief["spec"]["restartPolicy"] = json!("Never");
        world.create::<Pod>(brief).await;
        world.create::<Pod>(asking(world, "next", &json!({"memory": "4Gi"}))).await;
        world.until_one("next", "a place", runs).await;
        remove_node(world, &node).await;
    });
}

#[test]
fn room_is_given_to_one_pod_only_however_many_ask_at_once() {
    on_world(async |world| {
        let node = add_node(world, "small").await;
        for number in 0..6 {
            let name = format!("p-{number}");
            world.create::<Pod>(asking(world, &name, &json!({"cpu": "600m"}))).await;
        }
        world
            .until::<Pod>("three places and three refusals", |all| {
                all.iter().filter(|pod| runs(pod)).count() == 3
                    && all.iter().filter(|pod| refusal(pod).is_some()).count() == 3
            })
            .await;
        world.nothing_more().await;
        let placed = |pods: Vec<Pod>| -> Vec<String> {
            let placed =
                pods.into_iter().filter(|pod| pod.spec.as_ref().unwrap().node_name.is_some());
            placed.map(|pod| pod.name_any()).collect()
        };
        assert_eq!(placed(world.list::<Pod>("").await).len(), 3);
        remove_node(world, &node).await;
    });
}

#[test]
fn what_no_node_has_is_said_to_be_beyond_help() {
    on_world(async |world| {
        let node = add_node(world, "small").await;
        world.create::<Pod>(asking(world, "large", &json!({"cpu": "3", "memory": "5Gi"}))).await;
        let large = world.until_one::<Pod>("large", "a refusal", |p| refusal(p).is_some()).await;
        let words = refusal(&large).unwrap();
        assert!(words.contains("1 Insufficient cpu, 1 Insufficient memory"), "{words}");
        assert!(words.contains("Preemption is not helpful for scheduling"), "{words}");
        remove_node(world, &node).await;
    });
}
