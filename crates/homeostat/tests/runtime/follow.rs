//! Single objects that a reconcile follows: the Secret that a spec names.

use std::sync::Arc;

use homeostat::journal::Record;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DynamicObject};
use homeostat::{Context, Controller, Key, Kind, Outcome, Result, Running};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::cluster::{Cluster, config, endings, on_cluster, secret, triggers};

/// Notes in the config map what the secret that it names says; without a name it follows nothing.
async fn quote(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    let named = config.data.as_ref().and_then(|data| data.get("value")).cloned();
    let quoted = match named.filter(|name| !name.is_empty()) {
        None => "nothing".to_owned(),
        Some(name) => match ctx.follow::<Secret>(&name).await? {
            Some(secret) => {
                String::from_utf8(secret.data.clone().unwrap()["value"].0.clone()).unwrap()
            }
            None => "missing".to_owned(),
        },
    };
    let patch = json!({ "metadata": { "annotations": { "quoted": quoted } } });
    if config.annotations().get("quoted") != Some(&quoted) {
        ctx.merge_patch::<ConfigMap>(ctx.key(), &patch).await?;
    }
    Ok(Outcome::Done)
}

async fn start(cluster: &Cluster) -> Running {
    cluster.start(Controller::new(quote)).await
}

async fn quoted(cluster: &Cluster, name: &str, words: &str) {
    let says = |config: &ConfigMap| config.annotations().get("quoted").is_some_and(|q| q == words);
    cluster.until_one::<ConfigMap>(name, words, says).await;
}

fn watched(running: &Running) -> Vec<Kind> {
    let informers = running.caches().informers();
    informers.iter().map(|i| i.kind().clone()).filter(|k| k.kind() == "Secret").collect()
}

#[test]
fn a_followed_object_wakes_those_who_follow_it_and_nobody_else() {
    on_cluster(async |cluster| {
        cluster.create(&secret("s", "one")).await;
        for (name, of) in [("a", "s"), ("b", "s"), ("c", "other")] {
            cluster.create(&config(name, of)).await;
        }
        let running = start(&cluster).await;
        let journal = running.journal();
        for (name, words) in [("a", "one"), ("b", "one"), ("c", "missing")] {
            quoted(&cluster, name, words).await;
        }
        assert_eq!(watched(&running).len(), 2, "one watch for each object, however many follow it");
        cluster.quiet().await;
        let before = journal.records().len();
        cluster.patch::<Secret>("s", json!({ "stringData": { "value": "two" } })).await;
        quoted(&cluster, "a", "two").await;
        quoted(&cluster, "b", "two").await;
        let news = format!("Secret {}/s updated", cluster.namespace);
        let woken = |record: &&Arc<Record>| triggers(record).contains(&news);
        let records = journal.records();
        assert_eq!(records.iter().filter(woken).count(), 2, "{journal}");
        assert!(records[before..].iter().all(|record| record.key.name() != "c"), "{journal}");

        // One that comes, and one that goes.
        cluster.create(&secret("other", "late")).await;
        quoted(&cluster, "c", "late").await;
        cluster.api::<Secret>().delete("other", &<_>::default()).await.unwrap();
        quoted(&cluster, "c", "missing").await;
        assert!(endings(&journal.records()).iter().all(|end| end == "done"), "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_watch_ends_with_the_last_who_follows_it() {
    on_cluster(async |cluster| {
        cluster.create(&secret("s", "one")).await;
        for name in ["a", "b"] {
            cluster.create(&config(name, "s")).await;
        }
        let running = start(&cluster).await;
        quoted(&cluster, "a", "one").await;
        quoted(&cluster, "b", "one").await;
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "" } })).await;
        quoted(&cluster, "a", "nothing").await;
        assert_eq!(watched(&running).len(), 1, "b follows it still");
        let count = running.journal().records().len();
        cluster.api::<ConfigMap>().delete("b", &<_>::default()).await.unwrap();
        // Its last key is gone, and no reconcile of it is recorded: something else shows the time.
        cluster.create(&config("later", "")).await;
        quoted(&cluster, "later", "nothing").await;
        cluster.quiet().await;
        assert!(watched(&running).is_empty(), "{:?}", running.caches());
        assert!(running.journal().records().len() > count);
        running.stop().await.unwrap();
    });
}

#[test]
fn what_cannot_be_watched_is_a_failure_that_is_tried_again() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let nowhere = Kind::new("nowhere.example.com", "v1", "Thing", "things", true);
        let controller = Controller::new(move |config: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let kind = nowhere.clone();
            async move {
                let key = Key::namespaced(config.namespace().unwrap(), "x");
                ctx.follow_of::<DynamicObject>(&kind, &key).await?;
                Ok(Outcome::Done)
            }
        });
        let running = cluster.start(controller).await;
        let records = cluster.runs(&running.journal(), 2).await;
        assert!(endings(&records)[0].contains("cannot be followed"), "{:?}", endings(&records));
        assert!(running.health().is_ready(), "one object's trouble: {}", running.health());
        running.stop().await.unwrap();
    });
}

#[test]
fn writes_to_a_followed_object_are_read_back() {
    on_cluster(async |cluster| {
        cluster.create(&secret("s", "0")).await;
        cluster.create(&config("a", "1")).await;
        let count = async |config: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let key = Key::namespaced(config.namespace().unwrap(), "s");
            let secret = ctx.follow::<Secret>("s").await?.unwrap();
            if secret.labels().contains_key("round") {
                return Ok(Outcome::Done);
            }
            for round in 1..=3 {
                let patch: Value =
                    json!({ "metadata": { "labels": { "round": round.to_string() } } });
                ctx.merge_patch::<Secret>(&key, &patch).await?;
                let read = ctx.get::<Secret>("s").await?.unwrap();
                assert_eq!(read.labels()["round"], round.to_string());
            }
            Ok(Outcome::Done)
        };
        let running = cluster.start(Controller::new(count)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done");
        let api: Api<Secret> = cluster.api();
        assert_eq!(api.get("s").await.unwrap().labels()["round"], "3");
        running.stop().await.unwrap();
    });
}
