//! What is as declared is left alone: over two hours nobody writes anything, no Event either.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod operated;

use homeostat::k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use homeostat::k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod, Secret, Service};
use homeostat_testing::{World, on_world_with};
use kube::ResourceExt;
use kube::api::DeleteParams;
use operated::{is_ready, notes, operators};
use operator_at::{At, Phase};
use operator_database::Database;
use operator_logical_database::LogicalDatabase;
use operator_webapp::WebApp;
use serde_json::json;

/// One object of each kind, all come to rest.
async fn converged(world: &World) {
    let at = json!({ "schedule": "2020-01-01T00:00:00Z", "command": "echo hello" });
    world.create::<At>(json!({ "metadata": { "name": "now" }, "spec": at })).await;
    let later = json!({ "schedule": "2999-01-01T00:00:00Z", "command": "echo hello" });
    world.create::<At>(json!({ "metadata": { "name": "later" }, "spec": later })).await;
    let site = json!({ "image": "homeostat.dev/hello:1", "replicas": 2, "port": 8080 });
    world.create::<WebApp>(json!({ "metadata": { "name": "site" }, "spec": site })).await;
    world.create::<Database>(json!({ "metadata": { "name": "shop" }, "spec": {} })).await;
    let orders = json!({ "serverSecret": "absent", "databaseName": "orders", "owner": "clerk" });
    world
        .create::<LogicalDatabase>(json!({ "metadata": { "name": "orders" }, "spec": orders }))
        .await;

    let phase = |phase| move |at: &At| at.status.as_ref().is_some_and(|s| s.phase == Some(phase));
    world.until_one("now", "its end", phase(Phase::Done)).await;
    world.until_one("later", "its wait", phase(Phase::Pending)).await;
    world.until_one("site", "readiness", is_ready).await;
    let is_up = |database: &Database| database.status.as_ref().is_some_and(|status| status.ready);
    world.until_one("shop", "readiness", is_up).await;
    let waits = |object: &LogicalDatabase| object.status.is_some();
    world.until_one("orders", "its wait", waits).await;
    world.quiet().await;
}

#[test]
fn nothing_is_written_once_everything_is_as_declared() {
    on_world_with(operators, async |world| {
        converged(world).await;
        assert!(!world.writes.take().is_empty(), "getting there took writes");
        world.nothing_more().await;
        // A real cluster has other namespaces, whose objects may still be on their way.
        let here = format!("/namespaces/{}/", world.namespace);
        let mut writes = world.writes.take();
        writes.retain(|write| write.contains(&here) || !write.contains("/namespaces/"));
        assert_eq!(writes, Vec::<String>::new());
    });
}

#[test]
fn conditions_speak_of_the_generation_they_saw() {
    on_world_with(operators, async |world| {
        converged(world).await;
        world.patch::<WebApp>("site", json!({ "spec": { "replicas": 3 } })).await;
        let caught_up = |app: &WebApp| {
            let status = app.status.as_ref();
            is_ready(app) && status.and_then(|s| s.observed_generation) == app.metadata.generation
        };
        let app = world.until_one("site", "three replicas", caught_up).await;
        let status = app.status.unwrap();
        assert_eq!((status.available_replicas, status.observed_generation), (3, Some(2)));
        assert_eq!(status.conditions[0].observed_generation, Some(2));
    });
}

#[test]
fn events_tell_a_new_wish_from_somebody_elses_edit() {
    on_world_with(operators, async |world| {
        converged(world).await;
        assert_eq!(
            notes(world, "site", "Created").await,
            ["created Deployment site", "created Service site"]
        );
        assert!(notes(world, "site", "Updated").await.is_empty());
        assert!(notes(world, "site", "Corrected").await.is_empty());
        let alarms = notes(world, "shop", "Unschedulable").await;
        assert!(alarms.is_empty(), "a volume on its way is no trouble: {alarms:?}");

        world.patch::<WebApp>("site", json!({ "spec": { "replicas": 3 } })).await;
        let has = |count: i32| {
            move |app: &WebApp| {
                is_ready(app) && app.status.as_ref().is_some_and(|s| s.available_replicas == count)
            }
        };
        world.until_one("site", "three replicas", has(3)).await;
        world.quiet().await;
        assert_eq!(notes(world, "site", "Updated").await, ["updated Deployment site"]);
        assert!(notes(world, "site", "Corrected").await.is_empty());

        world.patch::<Deployment>("site", json!({ "spec": { "replicas": 1 } })).await;
        let declared = |d: &Deployment| d.spec.as_ref().unwrap().replicas == Some(3);
        world.until_one("site", "three again", declared).await;
        world.quiet().await;
        let words = ["Deployment site is as declared again"];
        assert_eq!(notes(world, "site", "Corrected").await, words);
    });
}

#[test]
fn a_volume_made_for_a_database_is_its_own_and_not_announced_as_adopted() {
    on_world_with(operators, async |world| {
        converged(world).await;
        let claim = world.get::<PersistentVolumeClaim>("data-shop-0").await.unwrap();
        assert_eq!(claim.owner_references()[0].kind, "Database");
        assert_eq!(notes(world, "shop", "Adopted").await, Vec::<String>::new());
    });
}

#[test]
fn deleted_children_come_back_with_their_labels_and_owner() {
    on_world_with(operators, async |world| {
        converged(world).await;
        let everything = DeleteParams::default();
        world.api::<Service>().delete("site", &everything).await.unwrap();
        world.api::<Secret>().delete("shop-credentials", &everything).await.unwrap();
        let site = world.until_one::<Service>("site", "its return", |_| true).await;
        let shop = world.until_one::<Secret>("shop-credentials", "its return", |_| true).await;
        let label = |object: &dyn Fn(&str) -> Option<String>| {
            ["name", "instance", "managed-by"]
                .map(|key| object(&format!("app.kubernetes.io/{key}")))
        };
        let expected = |words: [&str; 3]| words.map(|word| Some(word.to_owned()));
        assert_eq!(
            label(&|key| site.labels().get(key).cloned()),
            expected(["webapp", "site", "webapp-operator"])
        );
        assert_eq!(
            label(&|key| shop.labels().get(key).cloned()),
            expected(["database", "shop", "database-operator"])
        );
        assert_eq!(site.owner_references()[0].kind, "WebApp");
        assert_eq!(shop.owner_references()[0].kind, "Database");
        world.quiet().await;
        let lost = |child: &str| [format!("{child} was lost and is there again")];
        assert_eq!(notes(world, "site", "Corrected").await, lost("Service site"));
        assert_eq!(notes(world, "shop", "Corrected").await, lost("Secret shop-credentials"));
        // The servers are told the new password: that is a new wish, and nobody's edit.
        assert_eq!(notes(world, "shop", "Updated").await, ["updated StatefulSet shop"]);
    });
}

#[test]
fn an_edit_that_the_data_does_not_allow_is_refused_in_words_and_harms_nothing() {
    on_world_with(operators, async |world| {
        converged(world).await;
        let degraded = |words: &'static str| {
            move |database: &Database| {
                database.status.iter().flat_map(|s| &s.conditions).any(|c| {
                    c.type_ == "Degraded"
                        && c.message.contains(words)
                        && c.observed_generation == database.metadata.generation
                })
            }
        };
        let image = async || {
            let set = world.get::<StatefulSet>("shop").await.unwrap();
            set.spec.unwrap().template.spec.unwrap().containers[0].image.clone().unwrap()
        };
        world.patch::<Database>("shop", json!({ "spec": { "version": "16" } })).await;
        let seen = world.until_one("shop", "a refusal", degraded("set version back to 15")).await;
        assert!(seen.status.unwrap().ready, "the servers go on");
        assert_eq!(image().await, "postgres:15");
        world.api::<Service>().delete("shop", &DeleteParams::default()).await.unwrap();
        world.until_one::<Service>("shop", "its return", |_| true).await;
        world.quiet().await;
        let events = world.list::<Event>("").await;
        let refusals: Vec<&Event> = events
            .iter()
            .filter(|event| event.reason.as_deref() == Some("MajorVersionChanged"))
            .collect();
        assert!(
            matches!(refusals[..], [one] if one.series.is_none() && one.count.unwrap_or(1) <= 1)
        );

        // What else is asked for is carried out, and drift still corrected.
        world.patch::<Database>("shop", json!({ "spec": { "replicas": 2 } })).await;
        let two = |set: &StatefulSet| set.spec.as_ref().unwrap().replicas == Some(2);
        world.until_one("shop", "two servers", two).await;

        world
            .patch::<Database>("shop", json!({ "spec": { "version": "15.4", "storage": "5Mi" } }))
            .await;
        world.until_one("shop", "a refusal", degraded("set storage back to 1Gi")).await;
        world.patch::<Database>("shop", json!({ "spec": { "storage": "1Gi" } })).await;
        let well = |database: &Database| {
            let status = database.status.clone().unwrap_or_default();
            status.ready && status.conditions.iter().all(|c| c.type_ != "Degraded")
        };
        world.until_one("shop", "health", well).await;
        assert_eq!(image().await, "postgres:15.4");
        assert_eq!(world.list::<Pod>("app.kubernetes.io/instance=shop").await.len(), 2);
    });
}

#[test]
fn a_stateful_set_that_somebody_deletes_comes_back_to_its_data() {
    on_world_with(operators, async |world| {
        converged(world).await;
        let claim = world.get::<PersistentVolumeClaim>("data-shop-0").await.unwrap();
        let before = world.get::<StatefulSet>("shop").await.unwrap().uid();
        world.api::<StatefulSet>().delete("shop", &DeleteParams::background()).await.unwrap();
        let is_back = |set: &StatefulSet| {
            set.uid() != before && set.status.as_ref().is_some_and(|s| s.ready_replicas == Some(1))
        };
        world.until_one("shop", "its return", is_back).await;
        world.quiet().await;
        let after = world.get::<PersistentVolumeClaim>("data-shop-0").await.unwrap();
        assert_eq!(after.uid(), claim.uid());

        world.api::<Database>().delete("shop", &DeleteParams::background()).await.unwrap();
        world.until_gone::<PersistentVolumeClaim>("data-shop-0").await;
        world.until_gone::<StatefulSet>("shop").await;
    });
}
