//! What keeps an operator's object from being ready is said, and nothing but its end is needed to
//! go on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod operated;

use homeostat::condition;
use homeostat::k8s_openapi::api::apps::v1::Deployment;
use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod, Service};
use homeostat_testing::{World, on_world_with, pod_template};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use operated::{is_ready, notes, operators};
use operator_at::{At, Phase};
use operator_database::Database;
use operator_webapp::{WebApp, WebAppStatus};
use serde_json::{Value, json};

async fn create_webapp(world: &World, image: &str) {
    let spec = json!({ "image": image, "replicas": 1, "port": 8080 });
    world.create::<WebApp>(json!({ "metadata": { "name": "site" }, "spec": spec })).await;
}

/// An owner reference to somebody else, who is there.
async fn somebody_else(world: &World) -> Value {
    let other = world.create::<ConfigMap>(json!({ "metadata": { "name": "other" } })).await;
    json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other.uid(),
        "controller": true }])
}

async fn until_event(world: &World, name: &str, reason: &str, words: &str) {
    world
        .until::<Event>(&format!("an event {reason} that says {words:?}"), |events| {
            events.iter().any(|event| {
                event.involved_object.name.as_deref() == Some(name)
                    && event.reason.as_deref() == Some(reason)
                    && event.message.as_ref().is_some_and(|message| message.contains(words))
            })
        })
        .await;
}

/// Neither ready nor silent about it.
fn is_refused(status: Option<&WebAppStatus>) -> bool {
    status.is_some_and(|status| {
        let says = |type_: &str, so: &str| {
            condition::get(&status.conditions, type_).is_some_and(|condition| {
                (&*condition.status, &*condition.reason) == (so, "NotOurs")
                    && condition.message.contains("ConfigMap other")
            })
        };
        !status.ready && says("Ready", "False") && says("Degraded", "True")
    })
}

fn is_well(app: &WebApp) -> bool {
    let status = app.status.clone().unwrap_or_default();
    is_ready(app) && condition::get(&status.conditions, "Degraded").is_none()
}

#[test]
fn an_image_that_cannot_be_had_is_said_at_once_and_in_an_event() {
    on_world_with(operators, async |world| {
        create_webapp(world, "absent").await;
        let degraded = |app: &WebApp| {
            let conditions = app.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|condition| {
                condition.type_ == "Degraded"
                    && condition.reason == "ErrImagePull"
                    && condition.message.ends_with("there is no image absent")
            })
        };
        let before = world.env.now();
        world.until_one("site", "a word on the image", degraded).await;
        let took = world.env.now().duration_since(before);
        assert!(took.as_secs() < 60, "long before the rollout misses its deadline: {took}");
        until_event(world, "site", "ErrImagePull", "there is no image absent").await;
        world.quiet().await;
        assert_eq!(notes(world, "site", "ErrImagePull").await.len(), 1, "it is said once");
        world
            .patch::<WebApp>("site", json!({ "spec": { "image": "homeostat.dev/hello:1" } }))
            .await;
        world.until_one("site", "health", is_well).await;
    });
}

/// Lets no Pod onto any node, or lets them again.
async fn cordon(world: &World, closed: bool) {
    let nodes: Api<Node> = Api::all(world.client.clone());
    for node in nodes.list(&ListParams::default()).await.unwrap() {
        let patch = Patch::Merge(json!({ "spec": { "unschedulable": closed } }));
        nodes.patch(&node.name_any(), &PatchParams::default(), &patch).await.unwrap();
    }
}

#[test]
fn a_pod_that_fits_nowhere_is_trouble_after_a_while_and_none_once_there_is_room() {
    on_world_with(operators, async |world| {
        cordon(world, true).await;
        create_webapp(world, "homeostat.dev/hello:1").await;
        let told = |app: &WebApp| {
            let conditions = app.status.iter().flat_map(|status| &status.conditions);
            let mut degraded = conditions.filter(|one| one.type_ == "Degraded");
            degraded.any(|one| one.reason == "Unschedulable")
        };
        world.until_one("site", "a word on the nodes", told).await;
        until_event(world, "site", "Unschedulable", "unschedulable").await;
        cordon(world, false).await;
        world.until_one("site", "health", is_well).await;
    });
}

#[test]
fn an_at_whose_pod_cannot_start_says_so_and_runs_once_it_can() {
    on_world_with(operators, async |world| {
        cordon(world, true).await;
        let spec = json!({ "schedule": "2020-01-01T00:00:00Z", "command": "echo hello" });
        world.create::<At>(json!({ "metadata": { "name": "now" }, "spec": spec })).await;
        let told = |at: &At| {
            let status = at.status.clone().unwrap_or_default();
            let of = |type_| condition::get(&status.conditions, type_);
            of("Degraded").is_some_and(|one| one.reason == "Unschedulable")
                && of("Ready").is_some_and(|one| one.reason == "Starting")
        };
        world.until_one("now", "a word on the nodes", told).await;
        until_event(world, "now", "Unschedulable", "unschedulable").await;
        cordon(world, false).await;
        let done = |at: &At| {
            let status = at.status.clone().unwrap_or_default();
            let well = condition::get(&status.conditions, "Degraded").is_none();
            status.phase == Some(Phase::Done) && well
        };
        world.until_one("now", "its end", done).await;
    });
}

#[test]
fn what_the_api_refuses_in_a_child_is_said_once_and_waits_for_a_change() {
    on_world_with(operators, async |world| {
        // Nobody's, so it would be adopted; but a selector cannot be changed.
        let theirs = json!({ "metadata": { "name": "site" }, "spec": { "replicas": 0,
            "selector": { "matchLabels": { "app": "theirs" } },
            "template": pod_template("theirs", "homeostat.dev/hello:1") } });
        world.create::<Deployment>(theirs).await;
        create_webapp(world, "homeostat.dev/hello:1").await;
        let refused = |app: &WebApp| {
            let status = app.status.clone().unwrap_or_default();
            let says = |type_: &str, so: &str| {
                condition::get(&status.conditions, type_).is_some_and(|one| {
                    (&*one.status, &*one.reason) == (so, "RejectedByApi")
                        && one.message.contains("spec.selector")
                        && one.message.contains("and it goes on")
                })
            };
            says("Ready", "False") && says("Degraded", "True")
        };
        world.until_one("site", "a refusal", refused).await;
        until_event(world, "site", "RejectedByApi", "spec.selector").await;
        world.quiet().await;
        let _ = world.writes.take();
        world.nothing_more().await;
        let tries = world.writes.take();
        assert!(!tries.iter().any(|write| write.contains("/site")), "not tried again: {tries:?}");
        world.api::<Deployment>().delete("site", &DeleteParams::background()).await.unwrap();
        world.until_one("site", "health", is_well).await;
    });
}

#[test]
fn an_image_that_cannot_be_had_is_not_hidden_by_the_one_before() {
    on_world_with(operators, async |world| {
        create_webapp(world, "homeostat.dev/hello:1").await;
        world.until_one("site", "health", is_well).await;
        world.patch::<WebApp>("site", json!({ "spec": { "image": "absent" } })).await;
        let told = |app: &WebApp| {
            let status = app.status.clone().unwrap_or_default();
            let of = |type_| condition::get(&status.conditions, type_);
            of("Degraded").is_some_and(|one| one.reason == "ErrImagePull")
                && of("Ready").is_some_and(|one| {
                    one.reason == "RollingOut" && one.message.contains("the version before")
                })
        };
        world.until_one("site", "a word on both versions", told).await;
    });
}

fn is_up(database: &Database) -> bool {
    let status = database.status.clone().unwrap_or_default();
    status.ready && condition::get(&status.conditions, "Degraded").is_none()
}

#[test]
fn a_version_that_cannot_be_had_is_mended_by_an_edit_until_there_is_data() {
    on_world_with(operators, async |world| {
        let wish = json!({ "metadata": { "name": "shop" }, "spec": { "version": "404" } });
        world.create::<Database>(wish).await;
        let told = |words: &'static str| {
            move |database: &Database| {
                let conditions = database.status.iter().flat_map(|status| &status.conditions);
                let mut degraded = conditions.filter(|one| one.type_ == "Degraded");
                degraded.any(|one| one.message.contains(words))
            }
        };
        world.until_one("shop", "a word on the version", told("no image postgres:404")).await;
        world.patch::<Database>("shop", json!({ "spec": { "version": "16" } })).await;
        world.until_one("shop", "readiness", is_up).await;

        // Now there is data, of this major version. A minor one that cannot be had is mended too.
        world.patch::<Database>("shop", json!({ "spec": { "version": "17" } })).await;
        world.until_one("shop", "a refusal", told("set version back to 16")).await;
        world.patch::<Database>("shop", json!({ "spec": { "version": "16.404" } })).await;
        world.until_one("shop", "a word on the version", told("no image postgres:16.404")).await;
        world.patch::<Database>("shop", json!({ "spec": { "version": "16.1" } })).await;
        world.until_one("shop", "health", is_up).await;
        let pod = world.get::<Pod>("shop-0").await.unwrap();
        assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("postgres:16.1"));
    });
}

#[test]
fn a_webapp_goes_on_once_the_deployment_in_its_way_is_gone() {
    on_world_with(operators, async |world| {
        let owners = somebody_else(world).await;
        let theirs = json!({
            "metadata": { "name": "site", "ownerReferences": owners },
            "spec": { "replicas": 0, "selector": { "matchLabels": { "app": "theirs" } },
                "template": pod_template("theirs", "homeostat.dev/hello:1") },
        });
        world.create::<Deployment>(theirs).await;
        create_webapp(world, "homeostat.dev/hello:1").await;
        world.until_one("site", "a refusal", |a: &WebApp| is_refused(a.status.as_ref())).await;
        until_event(world, "site", "NotOurs", "ConfigMap other").await;
        world.quiet().await;
        let theirs = world.get::<Deployment>("site").await.unwrap();
        assert_eq!(theirs.spec.unwrap().replicas, Some(0), "it is left alone");
        world.api::<Deployment>().delete("site", &DeleteParams::background()).await.unwrap();
        world.until_one("site", "health", is_well).await;
    });
}

#[test]
fn a_webapp_is_not_ready_while_its_service_is_somebody_elses_and_adopts_it_when_given_up() {
    on_world_with(operators, async |world| {
        create_webapp(world, "homeostat.dev/hello:1").await;
        world.until_one("site", "health", is_well).await;
        let owners = somebody_else(world).await;
        let take = json!({ "metadata": { "ownerReferences": owners } });
        world.patch::<Service>("site", take).await;
        world.until_one("site", "a refusal", |a: &WebApp| is_refused(a.status.as_ref())).await;
        world.quiet().await;
        assert_eq!(notes(world, "site", "Adopted").await, Vec::<String>::new());
        let give_up = json!({ "metadata": { "ownerReferences": null } });
        world.patch::<Service>("site", give_up).await;
        world.until_one("site", "health", is_well).await;
        until_event(world, "site", "Adopted", "took over Service site").await;
        let service = world.get::<Service>("site").await.unwrap();
        assert_eq!(service.owner_references()[0].kind, "WebApp");
    });
}

#[test]
fn an_at_runs_once_the_pod_in_its_way_is_gone() {
    on_world_with(operators, async |world| {
        let theirs = json!({ "metadata": { "name": "now-pod" },
            "spec": { "containers": [{ "name": "c", "image": "runs" }] } });
        world.create::<Pod>(theirs).await;
        let spec = json!({ "schedule": "2020-01-01T00:00:00Z", "command": "echo hello" });
        world.create::<At>(json!({ "metadata": { "name": "now" }, "spec": spec })).await;
        let refused = |at: &At| {
            let conditions = at.status.iter().flat_map(|status| &status.conditions);
            let mut ready = conditions.filter(|one| one.type_ == "Ready");
            ready.any(|one| (&*one.status, &*one.reason) == ("False", "NotOurs"))
        };
        world.until_one("now", "a refusal", refused).await;
        world.api::<Pod>().delete("now-pod", &DeleteParams::default()).await.unwrap();
        let done = |at: &At| at.status.as_ref().is_some_and(|s| s.phase == Some(Phase::Done));
        world.until_one("now", "its end", done).await;
    });
}
