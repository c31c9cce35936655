//! Whole objects written back through the context: never over what somebody else wrote meanwhile, read
//! back at once, and told field by field.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DynamicObject, Patch, PatchParams};
use homeostat::{Change, Context, Controller, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::cluster::{config, endings, on_cluster, secret};

/// With one more value, and without the one it had.
fn turned(config: &ConfigMap, value: &str) -> ConfigMap {
    let data = [("turned".to_owned(), value.to_owned())];
    ConfigMap { data: Some(data.into()), ..config.clone() }
}

#[test]
fn what_was_replaced_is_read_back_at_once_and_told_field_by_field() {
    for declared in [true, false] {
        on_cluster(async |cluster| {
            async fn turn(_: Arc<Secret>, ctx: Context<Secret>) -> Result<Outcome> {
                let found = ctx.get::<ConfigMap>("a").await?.unwrap();
                let written = ctx.replace(turned(&found, "yes")).await?;
                let read = ctx.get::<ConfigMap>("a").await?.unwrap();
                assert_eq!(read.data.as_ref().unwrap().len(), 1, "what was left out is gone");
                assert_eq!(read.resource_version(), written.resource_version());
                // The same once more is no change.
                ctx.replace(ConfigMap::clone(&read)).await?;
                Ok(Outcome::Done)
            }
            cluster.create(&config("a", "1")).await;
            cluster.create(&secret("s", "1")).await;
            let controller = Controller::new(turn);
            let controller = if declared { controller.reads::<ConfigMap>() } else { controller };
            let running = cluster.start(controller).await;
            let records = cluster.runs(&running.journal(), 1).await;
            assert_eq!(endings(&records)[0], "done", "{}", running.journal());
            let writes = &records[0].writes;
            assert!(writes.iter().all(|write| write.verb == "replace" && write.key.name() == "a"));
            let paths = |number: usize| -> Vec<&str> {
                writes[number].fields.iter().map(|field| &*field.path).collect()
            };
            if declared {
                assert_eq!(paths(0), ["data.turned", "data.value"], "{}", running.journal());
                assert_eq!(writes[1].change, Change::Unchanged);
            }
            assert_eq!((writes[0].change, paths(1).len()), (Change::Changed, 0));
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn a_replacement_of_what_somebody_changed_meanwhile_is_a_quick_retry_from_fresh_state() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let runs = Arc::new(AtomicUsize::new(0));
        let (count, meddler) = (runs.clone(), cluster.client.clone());
        let reconcile = move |config: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let (first, meddler) = (count.fetch_add(1, Ordering::SeqCst) == 0, meddler.clone());
            async move {
                if config.data.as_ref().is_some_and(|data| data.contains_key("turned")) {
                    return Ok(Outcome::Done);
                }
                if first {
                    let api: Api<ConfigMap> =
                        Api::namespaced(meddler, ctx.key().namespace().unwrap());
                    let patch =
                        Patch::Merge(json!({ "metadata": { "labels": { "theirs": "1" } } }));
                    api.patch("a", &PatchParams::default(), &patch).await?;
                }
                let turned = ctx.replace(turned(&config, "yes")).await?;
                // The primary is the one that was written: what comes next is guarded by its version.
                ctx.finalizer("test.homeostat.dev/turned", || async { Ok(()) }).await?;
                assert!(turned.labels().contains_key("theirs"));
                Ok(Outcome::Done)
            }
        };
        let running = cluster.start(Controller::new(reconcile)).await;
        let turned = |config: &ConfigMap| config.finalizers().len() == 1;
        let config = cluster.until_one::<ConfigMap>("a", "a finalizer", turned).await;
        assert!(config.labels().contains_key("theirs"), "nothing of theirs was lost");
        let records = cluster.runs(&running.journal(), 2).await;
        assert!(endings(&records)[0].starts_with("conflict: "), "{}", running.journal());
        assert_eq!(endings(&records)[1], "done");
        let waited = records[1].time.duration_since(records[0].time);
        assert!(waited.as_secs() < 1, "it is no failure: {waited}");
        running.stop().await.unwrap();
    });
}

#[test]
fn what_was_not_read_cannot_replace_anything() {
    on_cluster(async |cluster| {
        async fn overwrite(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            ctx.replace(secret("s", "mine")).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&secret("s", "theirs")).await;
        let before = cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(overwrite)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let ending = &endings(&records)[0];
        assert!(ending.starts_with("terminal: Secret "), "{ending}");
        assert!(ending.contains("without a resourceVersion"), "{ending}");
        let namespace = before.namespace().unwrap();
        assert!(ending.contains(&format!("{namespace}/s")), "the object is named: {ending}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_replacement_that_drops_the_last_finalizer_is_the_end_of_what_was_being_deleted() {
    on_cluster(async |cluster| {
        async fn let_go(secret: Arc<Secret>, ctx: Context<Secret>) -> Result<Outcome> {
            if secret.metadata.deletion_timestamp.is_none() {
                return Ok(Outcome::Done);
            }
            let mut free = Secret::clone(&secret);
            free.metadata.finalizers = None;
            ctx.replace(free).await?;
            assert!(ctx.get::<Secret>("s").await?.is_none());
            Ok(Outcome::Done)
        }
        let mut held = secret("s", "1");
        held.metadata.finalizers = Some(vec!["test.homeostat.dev/held".to_owned()]);
        cluster.create(&held).await;
        let running = cluster.start(Controller::new(let_go)).await;
        cluster.runs(&running.journal(), 1).await;
        cluster.api::<Secret>().delete("s", &<_>::default()).await.unwrap();
        cluster.until_gone::<Secret>("s").await;
        let records = cluster.runs(&running.journal(), 2).await;
        assert_eq!(endings(&records)[1], "done", "{}", running.journal());
        running.stop().await.unwrap();
    });
}

#[test]
fn an_object_of_a_kind_known_at_run_time_is_replaced_whole() {
    on_cluster(async |cluster| {
        async fn turn(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let kind = homeostat::Kind::of::<ConfigMap>();
            let found = ctx.get_of::<DynamicObject>(&kind, ctx.key()).await?.unwrap();
            let mut found = DynamicObject::clone(&found);
            found.data["data"] = json!({ "turned": config.name_any() });
            ctx.replace(found).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(turn)).await;
        let turned = |config: &ConfigMap| config.data.as_ref().unwrap().contains_key("turned");
        cluster.until_one::<ConfigMap>("a", "the other value", turned).await;
        running.stop().await.unwrap();
    });
}
