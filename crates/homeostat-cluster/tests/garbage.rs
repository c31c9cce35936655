//! What becomes of dependents when their owner goes, and of a namespace's content.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use homeostat::Object;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use homeostat::kube::core::DynamicObject;
use homeostat_testing::{World, object, on_world, pod_template as template};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// An owner reference to `owner` that blocks its deletion.
fn owner<T: Object>(owner: &T) -> Value {
    let mut reference = owner.owner_ref(&()).unwrap();
    reference.block_owner_deletion = Some(true);
    serde_json::to_value(vec![reference]).unwrap()
}

#[test]
fn deleting_the_owner_deletes_its_children() {
    on_world(async |world| {
        let parent: ConfigMap = world.create(json!({"metadata": {"name": "parent"}})).await;
        let refs = owner(&parent);
        let child: Secret =
            world.create(json!({"metadata": {"name": "child", "ownerReferences": refs}})).await;
        let refs = owner(&child);
        world
            .create::<Secret>(json!({"metadata": {"name": "grandchild", "ownerReferences": refs}}))
            .await;
        world.create::<Secret>(json!({"metadata": {"name": "stranger"}})).await;
        world.api::<ConfigMap>().delete("parent", &DeleteParams::background()).await.unwrap();
        world.until_gone::<Secret>("child").await;
        world.until_gone::<Secret>("grandchild").await;
        assert!(world.get::<Secret>("stranger").await.is_some());
    });
}

#[test]
fn foreground_waits_for_dependents() {
    on_world(async |world| {
        let parent: ConfigMap = world.create(json!({"metadata": {"name": "parent"}})).await;
        let refs = owner(&parent);
        world
            .create::<Secret>(json!({"metadata": {"name": "child", "ownerReferences": refs,
                "finalizers": ["homeostat.dev/hold"]}}))
            .await;
        world.api::<ConfigMap>().delete("parent", &DeleteParams::foreground()).await.unwrap();
        world
            .until_one::<Secret>("child", "deletion of the child", |child| {
                child.metadata.deletion_timestamp.is_some()
            })
            .await;
        world.nothing_more().await;
        let waiting = world.get::<ConfigMap>("parent").await.expect("the parent waits");
        assert_eq!(waiting.finalizers(), ["foregroundDeletion"]);
        world.patch::<Secret>("child", json!({"metadata": {"finalizers": null}})).await;
        world.until_gone::<ConfigMap>("parent").await;
    });
}

#[test]
fn orphan_keeps_children() {
    on_world(async |world| {
        let parent: ConfigMap = world.create(json!({"metadata": {"name": "parent"}})).await;
        let refs = owner(&parent);
        world
            .create::<Secret>(json!({"metadata": {"name": "child", "ownerReferences": refs}}))
            .await;
        world.api::<ConfigMap>().delete("parent", &DeleteParams::orphan()).await.unwrap();
        world.until_gone::<ConfigMap>("parent").await;
        world.nothing_more().await;
        let child = world.get::<Secret>("child").await.expect("the child stays");
        assert!(child.owner_references().is_empty());
    });
}

#[test]
fn an_object_is_kept_while_one_owner_is_left() {
    on_world(async |world| {
        let first: ConfigMap = world.create(json!({"metadata": {"name": "first"}})).await;
        let second: ConfigMap = world.create(json!({"metadata": {"name": "second"}})).await;
        let refs = json!([owner(&first)[0], owner(&second)[0]]);
        world
            .create::<Secret>(json!({"metadata": {"name": "child", "ownerReferences": refs}}))
            .await;
        world.api::<ConfigMap>().delete("first", &DeleteParams::default()).await.unwrap();
        let child = world
            .until_one::<Secret>("child", "loss of one owner", |child| {
                child.owner_references().len() == 1
            })
            .await;
        assert_eq!(child.owner_references()[0].name, "second");
        world.api::<ConfigMap>().delete("second", &DeleteParams::default()).await.unwrap();
        world.until_gone::<Secret>("child").await;
    });
}

#[test]
fn a_namesake_of_the_owner_is_not_the_owner() {
    on_world(async |world| {
        world.create::<ConfigMap>(json!({"metadata": {"name": "parent"}})).await;
        let refs = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "parent",
            "uid": "00000000-0000-0000-0000-000000000000"}]);
        world
            .create::<Secret>(json!({"metadata": {"name": "child", "ownerReferences": refs}}))
            .await;
        world.until_gone::<Secret>("child").await;
        assert!(world.get::<ConfigMap>("parent").await.is_some());
    });
}

#[test]
fn owners_that_wait_for_each_other_go_all_the_same() {
    on_world(async |world| {
        let a: ConfigMap = world.create(json!({"metadata": {"name": "a"}})).await;
        let b: ConfigMap =
            world.create(json!({"metadata": {"name": "b", "ownerReferences": owner(&a)}})).await;
        world.patch::<ConfigMap>("a", json!({"metadata": {"ownerReferences": owner(&b)}})).await;
        world.api::<ConfigMap>().delete("a", &DeleteParams::foreground()).await.unwrap();
        world.until_gone::<ConfigMap>("a").await;
        world.until_gone::<ConfigMap>("b").await;
    });
}

const WIDGETS: &str = "widgets.gc.homeostat.dev";

/// Versions of a definition: `(name, is it the stored one)`.
fn versions(all: &[(&str, bool)]) -> Value {
    let version = |(name, storage): &(&str, bool)| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    all.iter().map(version).collect()
}

/// Defines widgets and makes one, named `w`.
async fn make_widget(
    world: &World,
    stored: &[(&str, bool)],
) -> (Api<DynamicObject>, DynamicObject) {
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let definition = object(json!({
        "metadata": {"name": WIDGETS},
        "spec": {"group": "gc.homeostat.dev", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": versions(stored)},
    }));
    let _ = definitions.create(&PostParams::default(), &definition).await;
    let kind = homeostat::Kind::new("gc.homeostat.dev", "v1", "Widget", "widgets", true);
    let widgets: Api<DynamicObject> =
        Api::namespaced_with(world.client.clone(), &world.namespace, &kind.api_resource());
    let wish = DynamicObject::new("w", &kind.api_resource());
    // A real API serves a new kind a moment after it is established.
    let mut widget = widgets.create(&PostParams::default(), &wish).await;
    for _ in 0..50 {
        if widget.is_ok() {
            break;
        }
        world.env.sleep(std::time::Duration::from_millis(100)).await;
        widget = widgets.create(&PostParams::default(), &wish).await;
    }
    (widgets, widget.unwrap())
}

/// Makes a Secret that the widget owns.
async fn make_child(world: &World, widget: &DynamicObject) {
    let refs = json!([{"apiVersion": "gc.homeostat.dev/v1", "kind": "Widget", "name": "w",
        "uid": widget.uid()}]);
    world.create::<Secret>(json!({"metadata": {"name": "child", "ownerReferences": refs}})).await;
    world.nothing_more().await;
    assert!(world.get::<Secret>("child").await.is_some(), "its owner is there");
}

async fn undefine(world: &World) {
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    definitions.delete(WIDGETS, &DeleteParams::default()).await.unwrap();
    // The next test defines it anew.
    while definitions.get_opt(WIDGETS).await.unwrap().is_some() {
        world.env.sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[test]
fn with_a_definition_goes_what_its_objects_owned() {
    on_world(async |world| {
        let (_, widget) = make_widget(world, &[("v1", true)]).await;
        make_child(world, &widget).await;
        undefine(world).await;
        world.until_gone::<Secret>("child").await;
    });
}

#[test]
fn a_custom_owner_that_was_defined_later_counts_too() {
    on_world(async |world| {
        let (widgets, widget) = make_widget(world, &[("v1", true)]).await;
        make_child(world, &widget).await;
        widgets.delete("w", &DeleteParams::default()).await.unwrap();
        world.until_gone::<Secret>("child").await;
        undefine(world).await;
    });
}

#[test]
fn a_custom_owner_counts_in_whichever_version_it_is_stored() {
    on_world(async |world| {
        let (widgets, widget) = make_widget(world, &[("v1", true), ("v2", false)]).await;
        make_child(world, &widget).await;
        let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
        let other = json!({"spec": {"versions": versions(&[("v1", false), ("v2", true)])}});
        definitions.patch(WIDGETS, &PatchParams::default(), &Patch::Merge(other)).await.unwrap();
        world.nothing_more().await;
        assert!(world.get::<Secret>("child").await.is_some(), "its owner is there still");
        widgets.delete("w", &DeleteParams::default()).await.unwrap();
        world.until_gone::<Secret>("child").await;
        undefine(world).await;
    });
}

#[test]
fn a_namespace_begins_with_an_account_and_ends_with_its_content() {
    on_world(async |world| {
        world
            .until::<ServiceAccount>("a default account", |all| {
                all.iter().any(|account| account.name_any() == "default")
            })
            .await;
        world
            .until_one::<ConfigMap>("kube-root-ca.crt", "the root certificate", |map| {
                map.data.as_ref().is_some_and(|data| data["ca.crt"] == "CA")
            })
            .await;
        let mut pod = template("web", "runs");
        pod["metadata"]["name"] = json!("p");
        world.create::<Pod>(pod).await;
        world
            .create::<Secret>(json!({"metadata": {"name": "held",
                "finalizers": ["homeostat.dev/hold"]}}))
            .await;
        let namespaces: Api<Namespace> = Api::all(world.client.clone());
        namespaces.delete(&world.namespace, &DeleteParams::default()).await.unwrap();
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
        world.nothing_more().await;
        let waiting = namespaces.get(&world.namespace).await.unwrap();
        let status = waiting.status.unwrap();
        let held =
            status.conditions.iter().flatten().find(|c| c.type_ == "NamespaceFinalizersRemaining");
        assert_eq!(held.map(|c| c.status.as_str()), Some("True"));
        world.patch::<Secret>("held", json!({"metadata": {"finalizers": null}})).await;
        world.nothing_more().await;
        assert!(namespaces.get_opt(&world.namespace).await.unwrap().is_none());
    });
}
