//! Functions of the user's that panic in tasks of the runtime: what they were asked about suffers,
//! and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use homeostat::controller::{Related, Source};
use homeostat::kube::{CustomResource, ResourceExt};
use homeostat::{Backoff, Context, Controller, Key, Kind, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::budget::budget;
use crate::cluster::{config, endings, idle, on_cluster, secret, triggers};
use crate::contract::{failure, scripted};

#[test]
fn a_transform_that_panics_keeps_one_object_out_and_all_others_in() {
    on_cluster(async |cluster| {
        for name in ["bad", "good"] {
            cluster.create(&config(name, "1")).await;
        }
        let controller = Controller::new(idle::<ConfigMap>).namespace(&cluster.namespace);
        let manager = cluster.manager().with(controller);
        let manager = manager.transform::<ConfigMap>(|config| {
            assert!(config["metadata"]["name"] != "bad", "it is bad");
        });
        let running = cluster.start_manager(manager).await;
        let named = |name: &str| {
            running.journal().records().iter().filter(|r| r.key.name() == name).count()
        };
        cluster.until_recorded(&running.journal(), |_| named("good") == 1).await;
        cluster.create(&config("later", "1")).await;
        cluster.until_recorded(&running.journal(), |_| named("later") == 1).await;
        cluster.patch::<ConfigMap>("bad", json!({ "data": { "value": "2" } })).await;
        cluster.patch::<ConfigMap>("good", json!({ "data": { "value": "2" } })).await;
        cluster.until_recorded(&running.journal(), |_| named("good") == 2).await;
        assert_eq!(named("bad"), 0);
        assert!(running.health().is_ready(), "{}", running.health());
        let text = running.metrics();
        let line = "homeostat_source_skipped_objects_total{kind=\"ConfigMap\"} 2";
        assert!(text.contains(line), "{text}");
        running.stop().await.unwrap();
    });
}

#[test]
fn what_was_cached_before_its_transform_panicked_stays_and_is_said_to_be_old() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let look = move |config: Arc<ConfigMap>, _: Context<ConfigMap>| {
            log.lock().unwrap().push(config.data.as_ref().unwrap()["value"].clone());
            async { Ok(Outcome::Done) }
        };
        let controller = Controller::new(look).namespace(&cluster.namespace);
        let manager = cluster.manager().with(controller).transform::<ConfigMap>(|config| {
            assert!(config["data"]["value"] != "bad", "it is bad");
        });
        let running = cluster.start_manager(manager).await;
        cluster.runs(&running.journal(), 1).await;
        let configs = running.caches().informers().remove(0);
        let says = |value: &str| json!({ "data": { "value": value } });
        let old = |count: u8| {
            let gauge = "homeostat_source_unreadable_objects{kind=\"ConfigMap\"}";
            running.metrics().contains(&format!("{gauge} {count}\n"))
        };

        let bad = cluster.patch::<ConfigMap>("a", says("bad")).await;
        let limit = std::time::Duration::from_secs(20);
        configs.wait_for_revision(&bad.resource_version().unwrap(), limit).await.unwrap();
        let key = Key::namespaced(&cluster.namespace, "a");
        let cached = configs.get::<ConfigMap>(&key).unwrap().unwrap();
        assert_eq!(cached.data.as_ref().unwrap()["value"], "1");
        assert_eq!(configs.unreadable(), std::slice::from_ref(&key));
        let health = running.health();
        assert!(health.is_ready() && health.to_string().contains(&key.to_string()), "{health}");
        assert!(old(1), "{}", running.metrics());

        cluster.patch::<ConfigMap>("a", says("2")).await;
        cluster.runs(&running.journal(), 2).await;
        assert_eq!(*seen.lock().unwrap(), ["1", "2"]);
        assert!(old(0) && !running.health().to_string().contains("cannot be read"));
        running.stop().await.unwrap();
    });
}

#[test]
fn an_index_that_panics_on_one_object_is_said_to_who_looks_something_up() {
    on_cluster(async |cluster| {
        for name in ["bad", "good"] {
            cluster.create(&secret(name, "1")).await;
        }
        cluster.create(&config("a", "1")).await;
        let look = async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            // Everything is cached, whatever the index is like.
            assert!(ctx.get::<Secret>("bad").await?.is_some());
            let found = ctx.by_index::<Secret>("touchy", "good").await?;
            assert_eq!(found.len(), 1);
            Ok(Outcome::Done)
        };
        let related = Related::read(Kind::of::<Secret>()).index("touchy", |entry| {
            assert!(entry.header.key.name() != "bad" || entry.header.labels.contains_key("mended"));
            vec![entry.header.key.name().to_owned()]
        });
        let running = cluster.start(Controller::new(look).relates(related)).await;
        let journal = running.journal();
        let records = cluster.runs(&journal, 1).await;
        let ending = &endings(&records)[0];
        assert!(ending.starts_with("terminal: ") && ending.contains("panicked on"), "{ending}");
        assert!(running.health().is_ready(), "{}", running.health());

        let patch = json!({ "metadata": { "labels": { "mended": "yes" } } });
        let mended = cluster.patch::<Secret>("bad", patch).await;
        let informers = running.caches().informers();
        let secrets = informers.iter().find(|one| one.kind().kind() == "Secret").unwrap();
        let revision = mended.resource_version().unwrap();
        secrets.wait_for_revision(&revision, std::time::Duration::from_secs(20)).await.unwrap();
        let before = journal.records().len();
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, before + 1).await;
        assert_eq!(endings(&records)[before], "done", "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn who_is_told_of_keys_that_are_given_up_may_panic() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let told = Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        let controller = scripted(|_| failure()).concurrency(1).give_up_after(1, move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            panic!("nobody is there");
        });
        let running = cluster.start(controller).await;
        let journal = running.journal();
        for round in 1..=3 {
            let records = cluster.runs(&journal, round).await;
            assert_eq!(endings(&records)[round - 1], "terminal: out of order");
            let value = format!("round {round}");
            cluster.patch::<ConfigMap>("a", json!({ "data": { "value": value } })).await;
        }
        assert!(told.load(Ordering::SeqCst) >= 3);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_source_that_panics_over_one_word_is_named_and_counted_and_goes_on_with_the_next() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let (names, mut inbox) = tokio::sync::mpsc::unbounded_channel::<&str>();
        let (noted, mut notes) = tokio::sync::mpsc::unbounded_channel();
        let namespace = cluster.namespace.clone();
        let words = futures::stream::poll_fn(move |context| inbox.poll_recv(context));
        let keys = words.map(move |name| {
            noted.send(name).unwrap();
            assert!(name != "bad", "a bad word");
            Key::namespaced(&namespace, name)
        });
        let controller = Controller::new(idle::<ConfigMap>);
        let controller = controller.watches_source(Source::stream("orders", keys));
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let counted = |count: u8| {
            let counter = "homeostat_source_panics_total{controller=\"configmap\"}";
            running.metrics().contains(&format!("{counter} {count}\n"))
        };
        assert!(running.health().is_ready() && counted(0), "{}", running.metrics());

        names.send("bad").unwrap();
        assert_eq!(notes.recv().await, Some("bad"));
        let health = running.health();
        let named = "not ok source orders of configmap: it panicked: a bad word\n";
        assert!(!health.is_ready() && health.to_string().contains(named), "{health}");
        assert!(counted(1), "{}", running.metrics());

        names.send("a").unwrap();
        let records = cluster.runs(&journal, 2).await;
        assert_eq!(triggers(&records[1]), "source orders");
        assert!(running.health().is_ready(), "{}", running.health());
        assert!(counted(1), "{}", running.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_source_that_only_panics_is_asked_ever_more_rarely_and_stays_named() {
    on_cluster(async |cluster| {
        let (noted, mut notes) = tokio::sync::mpsc::unbounded_channel();
        let env = cluster.env.clone();
        let cursed = futures::stream::poll_fn(move |_| {
            noted.send(env.instant()).unwrap();
            panic!("the line is cursed")
        });
        let controller = Controller::new(idle::<ConfigMap>);
        let controller = controller.watches_source(Source::stream("cursed", cursed));
        let running = cluster.start(controller).await;
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push(notes.recv().await.unwrap());
        }
        let (first, second) = (asked[1] - asked[0], asked[2] - asked[1]);
        // One second, then two; jitter takes away a tenth at most.
        assert!(first.as_millis() >= 900 && second.as_millis() >= 1800, "{first:?}, {second:?}");
        let health = running.health();
        let named = "not ok source cursed of configmap: it panicked: the line is cursed\n";
        assert!(health.to_string().contains(named), "{health}");
        running.stop().await.unwrap();
    });
}

/// A view of a kind whose decoder has a bug.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "policy", version = "v1", kind = "PodDisruptionBudget", namespaced)]
#[serde(rename_all = "camelCase")]
struct TouchySpec {
    #[serde(deserialize_with = "not_thirteen")]
    min_available: i64,
}

fn not_thirteen<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let number = i64::deserialize(from)?;
    assert!(number != 13, "thirteen");
    Ok(number)
}

#[test]
fn a_decoder_that_panics_costs_no_worker_and_strands_no_key() {
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 13)).await;
        let day = Duration::from_secs(24 * 3600);
        let backoff = Backoff { first: day, max: day, ..Backoff::default() };
        let controller = Controller::new(idle::<PodDisruptionBudget>).concurrency(1);
        let running = cluster.start(controller.backoff(backoff)).await;
        let journal = running.journal();
        let records = cluster.runs(&journal, 1).await;
        assert_eq!(
            endings(&records),
            ["failed: reconcile panicked: its object cannot be decoded: thirteen"]
        );
        let text = running.metrics();
        let of = "{controller=\"poddisruptionbudget\"} 1\n";
        for counted in ["errors", "panics"] {
            let line = format!("controller_runtime_reconcile_{counted}_total{of}");
            assert!(text.contains(&line), "{line}{text}");
        }
        cluster.create(&budget("b", 1)).await;
        let records = cluster.runs(&journal, 2).await;
        assert_eq!((records[1].key.name(), &*endings(&records)[1]), ("b", "done"));
        let patch = json!({ "spec": { "minAvailable": 1 } });
        cluster.patch::<crate::budget::PodDisruptionBudget>("a", patch).await;
        let records = cluster.runs(&journal, 3).await;
        assert_eq!((records[2].key.name(), &*endings(&records)[2]), ("a", "done"));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_key_whose_decoder_only_panics_is_given_up_and_told_of() {
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 13)).await;
        let (told, mut calls) = tokio::sync::mpsc::unbounded_channel();
        let controller = Controller::new(idle::<PodDisruptionBudget>);
        let controller = controller.give_up_after(2, move |key, error| {
            told.send(format!("{}: {error}", key.name())).unwrap();
        });
        let running = cluster.start(controller).await;
        let ends = endings(&cluster.runs(&running.journal(), 2).await);
        let words = "reconcile panicked: its object cannot be decoded: thirteen";
        assert_eq!(ends, [format!("failed: {words}"), format!("terminal: {words}")]);
        assert_eq!(calls.recv().await.unwrap(), format!("a: {words}"));
        cluster.nothing_more().await;
        assert_eq!(running.journal().total(), 2, "{}", running.journal());
        running.stop().await.unwrap();
    });
}

#[test]
fn an_edit_ends_the_backoff_of_a_key_whose_decoder_panicked_however_many_events_came_before() {
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 13)).await;
        let long = Duration::from_secs(600);
        let backoff = Backoff { first: long, max: long, ..Backoff::default() };
        let controller = Controller::new(idle::<PodDisruptionBudget>).backoff(backoff);
        let running = cluster.start(controller).await;
        let edit = async |patch| {
            cluster.patch::<crate::budget::PodDisruptionBudget>("a", patch).await;
        };
        for round in 0..7 {
            cluster.env.sleep(Duration::from_secs(1)).await;
            edit(json!({ "metadata": { "labels": { "round": round.to_string() } } })).await;
        }
        cluster.env.sleep(Duration::from_secs(1)).await;
        let panics =
            "controller_runtime_reconcile_panics_total{controller=\"poddisruptionbudget\"}";
        let text = running.metrics();
        assert!(text.contains(&format!("{panics} 6\n")), "five cut it short: {text}");
        let edited = cluster.env.now();
        edit(json!({ "spec": { "minAvailable": 1 } })).await;
        let records = cluster.runs(&running.journal(), 7).await;
        let waited = records[6].time.duration_since(edited);
        assert!(waited.as_secs() < 10, "{waited}");
        running.stop().await.unwrap();
    });
}
