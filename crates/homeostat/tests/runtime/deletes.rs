//! Deletions through the context: of the object that is meant, and of no other of its name.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use homeostat::controller::Related;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{DeleteParams, Preconditions};
use homeostat::{Context, Controller, Kind, Manager, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::cluster::{config, endings, on_cluster, secret};
use crate::faults::{Fault, faulty, is};

/// The secret that the reconcile makes and does not want any more: of that name, as it would be made.
async fn unwanted(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ctx.delete(&secret("child", "1")).await?;
    Ok(Outcome::Done)
}

/// The same, with the secrets in a cache, as metadata alone in a cache, and in none.
fn controllers() -> [Controller<ConfigMap>; 3] {
    let metadata = Related::owned(Kind::of::<Secret>()).metadata_only();
    [
        Controller::new(unwanted).owns::<Secret>(),
        Controller::new(unwanted).relates(metadata),
        Controller::new(unwanted),
    ]
}

#[test]
fn a_child_is_deleted_by_its_name_beside_the_primary_and_nothing_is_no_error() {
    for index in 0..controllers().len() {
        on_cluster(async |cluster| {
            let owner = cluster.create(&config("a", "1")).await;
            let mut child = secret("child", "1");
            child.metadata.owner_references = Some(vec![
                serde_json::from_value(json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner.uid(),
                    "controller": true,
                }))
                .unwrap(),
            ]);
            cluster.create(&child).await;
            let running = cluster.start(controllers().into_iter().nth(index).unwrap()).await;
            cluster.until_gone::<Secret>("child").await;
            let journal = running.journal();
            let records = cluster.runs(&journal, 1).await;
            assert_eq!(records[0].writes[0].verb, "delete", "{journal}");
            cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
            let edited = format!("ConfigMap {}/a updated", cluster.namespace);
            let again = |record: &Arc<homeostat::journal::Record>| {
                crate::cluster::triggers(record).contains(&edited)
            };
            let records = cluster.until_recorded(&journal, |all| all.iter().any(again)).await;
            let last = records.iter().find(|record| again(record)).unwrap();
            assert_eq!((&*last.result.to_string(), last.writes.len()), ("done", 0));
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn a_strangers_object_that_has_the_name_of_a_child_is_not_deleted() {
    for index in 0..controllers().len() {
        on_cluster(async |cluster| {
            cluster.create(&config("a", "1")).await;
            cluster.create(&secret("child", "theirs")).await;
            let running = cluster.start(controllers().into_iter().nth(index).unwrap()).await;
            let journal = running.journal();
            let records = cluster.runs(&journal, 1).await;
            let ending = &endings(&records)[0];
            assert!(ending.starts_with("terminal: "), "{ending}");
            assert!(
                ending.contains("/child") && ending.contains("not owned by anyone"),
                "{ending}"
            );
            cluster.nothing_more().await;
            assert!(cluster.get::<Secret>("child").await.is_some());
            // Once it is gone there is nothing left to delete.
            cluster.api::<Secret>().delete("child", &<_>::default()).await.unwrap();
            cluster.until_recorded(&journal, |all| endings(all).last().unwrap() == "done").await;
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn a_refusal_to_delete_what_is_still_there_is_no_success() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let refuses = Arc::new(AtomicBool::new(true));
        let asked = refuses.clone();
        let client = faulty(&cluster.client, move |request| {
            let refused = asked.load(Ordering::SeqCst) && is(request, "DELETE", "/secrets/");
            refused.then_some(Fault::Conflict)
        });
        let make_and_delete = async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let child = ctx.create(secret("child", "1")).await?;
            ctx.delete(child).await?;
            Ok(Outcome::Done)
        };
        let controller = Controller::new(make_and_delete).namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let ending = &endings(&records)[0];
        assert!(ending.contains("the webhook says no"), "{ending}");
        assert!(cluster.get::<Secret>("child").await.is_some());
        refuses.store(false, Ordering::SeqCst);
        cluster.until_gone::<Secret>("child").await;
        running.stop().await.unwrap();
    });
}

#[test]
fn what_was_changed_since_it_was_read_is_not_deleted_where_that_version_is_asked_for() {
    for is_namesake in [false, true] {
        on_cluster(async |cluster| {
            cluster.create(&config("a", "1")).await;
            let read = cluster.create(&secret("victim", "1")).await;
            if is_namesake {
                cluster.api::<Secret>().delete("victim", &<_>::default()).await.unwrap();
                cluster.create(&secret("victim", "2")).await;
            } else {
                let edit = json!({ "stringData": { "value": "2" } });
                cluster.patch::<Secret>("victim", edit).await;
            }
            // As it was read at first, and after the conflict as it is.
            let known = Arc::new(Mutex::new(Some(read)));
            let delete = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
                let known = known.lock().unwrap().take();
                async move {
                    let victim = match known {
                        Some(known) => Some(Arc::new(known)),
                        None => ctx.get_live::<Secret>("victim").await?,
                    };
                    let Some(victim) = victim else { return Ok(Outcome::Done) };
                    let resource_version = victim.resource_version();
                    let only = Preconditions { resource_version, ..Preconditions::default() };
                    let params = DeleteParams::default().preconditions(only);
                    ctx.delete_with(victim, &params).await?;
                    Ok(Outcome::Done)
                }
            };
            let running = cluster.start(Controller::new(delete)).await;
            let records = cluster.runs(&running.journal(), 2).await;
            let endings = endings(&records);
            assert!(endings[0].starts_with("conflict: "), "{endings:?}");
            assert!(records[0].writes.is_empty(), "{}", records[0]);
            assert_eq!((&*endings[1], records[1].writes[0].verb), ("done", "delete"));
            cluster.until_gone::<Secret>("victim").await;
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn who_may_delete_and_not_look_tries_again_soon_when_it_is_refused() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let refuses = AtomicBool::new(true);
        let client = faulty(&cluster.client, move |request| {
            let refused = is(request, "DELETE", "/secrets/");
            let conflict = refused && refuses.swap(false, Ordering::SeqCst);
            let look = is(request, "GET", "/secrets/child");
            conflict.then_some(Fault::Conflict).or_else(|| look.then_some(Fault::Forbid))
        });
        let child = cluster.create(&secret("child", "1")).await;
        let delete = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let child = child.clone();
            async move {
                ctx.delete(&child).await?;
                Ok(Outcome::Done)
            }
        };
        let controller = Controller::new(delete).namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        let records = cluster.runs(&running.journal(), 2).await;
        assert_eq!(endings(&records), ["conflict: the webhook says no", "done"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn what_has_no_name_cannot_be_deleted_and_the_primary_can_be() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let end = async |config: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let nameless = ctx.delete(&Secret::default()).await.unwrap_err();
            assert!(nameless.is_terminal() && nameless.to_string().contains("without a name"));
            let mut unread = ConfigMap::default();
            unread.metadata.name = Some(config.name_any());
            ctx.delete(&unread).await?;
            Ok(Outcome::Done)
        };
        let running = cluster.start(Controller::new(end)).await;
        cluster.until_gone::<ConfigMap>("a").await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_delete_for_show_is_none_and_is_not_waited_for() {
    on_cluster(async |cluster| {
        let show = async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            ctx.apply(secret("child", "1")).await?;
            let only_asked = DeleteParams { dry_run: true, ..DeleteParams::default() };
            ctx.delete_with(&secret("child", "1"), &only_asked).await?;
            assert_eq!(ctx.owned::<Secret>().await?.len(), 1);
            Ok(Outcome::Done)
        };
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(show).owns::<Secret>()).await;
        let journal = running.journal();
        let records = cluster.runs(&journal, 1).await;
        assert_eq!(endings(&records)[0], "done", "{journal}");
        assert_eq!(records[0].writes.len(), 1, "{journal}");
        assert!(cluster.get::<Secret>("child").await.is_some());
        running.stop().await.unwrap();
    });
}
