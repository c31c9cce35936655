//! DaemonSets.

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use homeostat_testing::{World, object, on_world, pod_template as template};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

/// A node with two processors, and a label that the nodes of others do not have.
pub(crate) async fn add_node(world: &World, name: &str) -> String {
    let nodes: Api<Node> = Api::all(world.client.clone());
    let name = format!("{name}-{}", world.namespace);
    let node = json!({"metadata": {"name": name, "labels": {"pool": world.namespace}}});
    nodes.create(&PostParams::default(), &object(node)).await.unwrap();
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}});
    nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
    name
}

pub(crate) async fn remove_node(world: &World, name: &str) {
    let nodes: Api<Node> = Api::all(world.client.clone());
    nodes.delete(name, &DeleteParams::default()).await.unwrap();
}

/// A template for the nodes of this test.
fn on_pool(world: &World, image: &str) -> Value {
    let mut template = template("agent", image);
    template["spec"]["nodeSelector"] = json!({"pool": world.namespace});
    template
}

async fn create(world: &World) {
    let spec = json!({"selector": {"matchLabels": {"app": "agent"}},
        "template": on_pool(world, "one")});
    world.create::<DaemonSet>(json!({"metadata": {"name": "agent"}, "spec": spec})).await;
}

/// So many nodes, each with a Pod of the current template that is ready.
fn has_settled(nodes: i32) -> impl Fn(&DaemonSet) -> bool {
    move |set| {
        set.status.as_ref().is_some_and(|status| {
            status.observed_generation == set.metadata.generation
                && status.desired_number_scheduled == nodes
                && status.number_ready == nodes
                && status.number_available == Some(nodes)
                && status.updated_number_scheduled == Some(nodes)
                && status.number_misscheduled == 0
        })
    }
}

fn nodes_of(pods: &[Pod]) -> Vec<String> {
    let names = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_daemon_set_has_one_pod_on_every_node_that_suits() {
    on_world(async |world| {
        let first = add_node(world, "a").await;
        create(world).await;
        world.until_one("agent", "the first node", has_settled(1)).await;
        let second = add_node(world, "b").await;
        world.until_one("agent", "the second node", has_settled(2)).await;
        let pods = world.list::<Pod>("app=agent").await;
        assert_eq!(nodes_of(&pods), [first.as_str(), second.as_str()]);

        let gone = pods[0].name_any();
        world.api::<Pod>().delete(&gone, &DeleteParams::default()).await.unwrap();
        world.until_gone::<Pod>(&gone).await;
        world.until_one("agent", "a pod in its place", has_settled(2)).await;

        let nodes: Api<Node> = Api::all(world.client.clone());
        let elsewhere = Patch::Merge(json!({"metadata": {"labels": {"pool": "another"}}}));
        nodes.patch(&first, &PatchParams::default(), &elsewhere).await.unwrap();
        world.until_one("agent", "fewer nodes", has_settled(1)).await;
        world.until::<Pod>("one pod", |all| nodes_of(all) == [second.as_str()]).await;

        world.api::<DaemonSet>().delete("agent", &DeleteParams::default()).await.unwrap();
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
        remove_node(world, &first).await;
        remove_node(world, &second).await;
    });
}

#[test]
fn a_daemon_set_updates_one_node_after_the_other() {
    on_world(async |world| {
        let nodes = [add_node(world, "a").await, add_node(world, "b").await];
        create(world).await;
        world.until_one("agent", "two nodes", has_settled(2)).await;
        let image = |image: &str| json!({"spec": {"template": on_pool(world, image)}});
        world.patch::<DaemonSet>("agent", image("starts")).await;
        world
            .until_one::<DaemonSet>("agent", "a new pod", |set| {
                set.status.as_ref().is_some_and(|status| status.updated_number_scheduled == Some(1))
            })
            .await;
        world.nothing_more().await;
        let status = world.get::<DaemonSet>("agent").await.unwrap().status.unwrap();
        assert_eq!(status.updated_number_scheduled, Some(1), "it waits for the first");
        assert_eq!(status.number_available, Some(1), "the other serves");

        world.patch::<DaemonSet>("agent", image("two")).await;
        world.until_one("agent", "the update", has_settled(2)).await;
        let pods = world.list::<Pod>("app=agent").await;
        let images = pods.iter().map(|pod| pod.spec.as_ref().unwrap().containers[0].image.clone());
        assert_eq!(images.collect::<Vec<_>>(), [Some("two".to_owned()), Some("two".to_owned())]);
        assert_eq!(world.list::<ControllerRevision>("").await.len(), 3);
        for node in &nodes {
            remove_node(world, node).await;
        }
    });
}
