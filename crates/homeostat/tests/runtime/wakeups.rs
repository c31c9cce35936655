//! Wake-ups from outside the API, maps that fail, filters on other kinds, several controllers of
//! one kind, bursts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::controller::{Lookup, Source};
use homeostat::journal::Record;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::Api;
use homeostat::queue::Rate;
use homeostat::{Context, Controller, Error, Key, Outcome, Predicate, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::cluster::{config, idle, on_cluster, secret, triggers};

#[test]
fn a_channel_wakes_the_keys_it_names_and_strangers_do_no_harm() {
    on_cluster(async |cluster| {
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let (keys, inbox) = tokio::sync::mpsc::channel(4);
        let controller = Controller::new(idle::<ConfigMap>);
        let source = Source::channel("orders", inbox);
        let running = cluster.start(controller.watches_source(source)).await;
        let journal = running.journal();
        cluster.runs(&journal, 2).await;
        for name in ["stranger", "b"] {
            keys.send(Key::namespaced(&*cluster.namespace, name)).await.unwrap();
        }
        let records = cluster.runs(&journal, 3).await;
        assert_eq!((records[2].key.name(), &*triggers(&records[2])), ("b", "source orders"));
        drop(keys);
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        cluster.runs(&journal, 4).await;
        running.stop().await.unwrap();
    });
}

#[test]
fn a_clock_wakes_every_object_again_and_again() {
    on_cluster(async |cluster| {
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let controller = Controller::new(idle::<ConfigMap>).concurrency(1);
        let clock = Source::every("clock", Duration::from_secs(2));
        let running = cluster.start(controller.watches_source(clock)).await;
        let records = cluster.runs(&running.journal(), 6).await;
        let names: Vec<&str> = records.iter().map(|record| record.key.name()).collect();
        assert_eq!(names, ["a", "b", "a", "b", "a", "b"]);
        cluster.assert_apart(records[2].time, records[4].time, Duration::from_secs(2));
        assert_eq!(triggers(&records[5]), "source clock");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_clock_wakes_none_that_the_filter_leaves_out() {
    on_cluster(async |cluster| {
        for name in ["a", "b"] {
            cluster.create(&config(name, name)).await;
        }
        let is_a = |_: Option<&ConfigMap>, new: Option<&ConfigMap>| {
            new.is_some_and(|config| config.name_any() == "a")
        };
        let clock = Source::every("clock", Duration::from_secs(2));
        let controller = Controller::new(idle::<ConfigMap>).watches_source(clock);
        let running = cluster.start(controller.filter(Predicate::typed(is_a))).await;
        let records = cluster.runs(&running.journal(), 4).await;
        let names: Vec<&str> = records.iter().map(|record| record.key.name()).collect();
        assert_eq!(names, ["a"; 4], "{}", running.journal());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_map_that_fails_or_panics_is_asked_again_until_it_answers() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let map = move |secret: &Secret| -> Result<Vec<Key>> {
            match counter.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Error::transient("not now")),
                1 => panic!("nor now"),
                _ => Ok(vec![Key::namespaced(secret.namespace().unwrap(), "a")]),
            }
        };
        let running = cluster.start(Controller::new(idle::<ConfigMap>).try_watches(map)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.create(&secret("s", "1")).await;
        let records = cluster.runs(&journal, 2).await;
        assert_eq!(triggers(&records[1]), format!("Secret {}/s added", cluster.namespace));
        assert_eq!(asked.load(Ordering::SeqCst), 3);
        let line = "homeostat_map_failures_total{controller=\"configmap\"} 2\n";
        assert!(running.metrics().contains(line), "{}", running.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn more_versions_than_a_map_that_fails_can_remember_wake_everybody() {
    on_cluster(async |cluster| {
        for name in ["a", "b", "c"] {
            cluster.create(&config(name, "1")).await;
        }
        let open = Arc::new(AtomicBool::new(false));
        let flag = open.clone();
        // Names whom its label names, once it works.
        let map = move |secret: &Secret| -> Result<Vec<Key>> {
            if !flag.load(Ordering::SeqCst) {
                return Err(Error::transient("not now"));
            }
            let named = secret.labels().get("of").cloned().unwrap_or_default();
            Ok(vec![Key::namespaced(secret.namespace().unwrap(), named)])
        };
        let running = cluster.start(Controller::new(idle::<ConfigMap>).try_watches(map)).await;
        let journal = running.journal();
        cluster.runs(&journal, 3).await;
        cluster.create(&secret("s", "1")).await;
        for count in 0..30 {
            // In between for a while somebody else's.
            let of = if (3..6).contains(&count) { "b" } else { "a" };
            let labels = json!({ "of": of, "count": count.to_string() });
            cluster.patch::<Secret>("s", json!({ "metadata": { "labels": labels } })).await;
        }
        cluster.quiet().await;
        open.store(true, Ordering::SeqCst);
        let woken =
            |record: &Arc<Record>| record.key.name() == "b" && triggers(record).contains("Secret");
        cluster.until_recorded(&journal, |records| records.iter().any(woken)).await;
        running.stop().await.unwrap();
    });
}

/// Wakes the config maps that name the secret, after a question to the API.
async fn those_who_name(secret: Arc<Secret>, lookup: Lookup) -> Result<Vec<Key>> {
    let api: Api<Secret> = Api::namespaced(lookup.client().clone(), &secret.namespace().unwrap());
    if api.get_opt("closed").await?.is_some() {
        return Err(Error::transient("closed"));
    }
    lookup.by_index("data.value", &secret.name_any())
}

#[test]
fn a_map_may_look_around_and_is_asked_again_when_it_fails() {
    on_cluster(async |cluster| {
        for (name, of) in [("a", "s"), ("b", "t"), ("c", "s")] {
            cluster.create(&config(name, of)).await;
        }
        let controller = Controller::new(idle::<ConfigMap>)
            .index_field::<ConfigMap>("data.value")
            .watches_async(those_who_name)
            .concurrency(1);
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 3).await;
        cluster.create(&secret("s", "1")).await;
        let records = cluster.runs(&journal, 5).await;
        let woken: Vec<&str> = records[3..].iter().map(|record| record.key.name()).collect();
        assert_eq!(woken, ["a", "c"]);
        assert_eq!(triggers(&records[3]), format!("Secret {}/s added", cluster.namespace));

        // It fails while `closed` is there; what happened meanwhile is not forgotten.
        cluster.create(&secret("closed", "1")).await;
        cluster.patch::<Secret>("s", json!({ "stringData": { "value": "2" } })).await;
        cluster.create(&secret("t", "1")).await;
        cluster.nothing_more().await;
        assert_eq!(journal.records().len(), 5, "{journal}");
        cluster.api::<Secret>().delete("closed", &<_>::default()).await.unwrap();
        let mut woken: Vec<String> = cluster
            .runs(&journal, 8)
            .await
            .split_off(5)
            .iter()
            .map(|record| format!("{}: {}", record.key.name(), triggers(record)))
            .collect();
        woken.sort_unstable();
        let event =
            |name: &str, change: &str| format!("Secret {}/{name} {change}", cluster.namespace);
        let expected = [
            format!("a: {}", event("s", "updated")),
            format!("b: {}", event("t", "added")),
            format!("c: {}", event("s", "updated")),
        ];
        assert_eq!(woken, expected);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_map_that_waits_is_asked_again_when_it_panics_or_never_answers() {
    on_cluster(async |cluster| {
        assert!(cluster.is_virtual, "no answer takes half a minute");
        cluster.create(&config("a", "1")).await;
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (log, env) = (Arc::clone(&asked), cluster.env.clone());
        let map = move |secret: Arc<Secret>, _: Lookup| {
            let before = {
                let mut times = log.lock().unwrap();
                times.push(env.now());
                times.len() - 1
            };
            async move {
                match before {
                    0 => panic!("not now"),
                    1 => std::future::pending().await,
                    _ => Ok(vec![Key::namespaced(secret.namespace().unwrap(), "a")]),
                }
            }
        };
        let running = cluster.start(Controller::new(idle::<ConfigMap>).watches_async(map)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.create(&secret("s", "1")).await;
        let records = cluster.runs(&journal, 2).await;
        assert_eq!(triggers(&records[1]), format!("Secret {}/s added", cluster.namespace));
        let asked = asked.lock().unwrap().clone();
        // It is dropped after its half minute; then comes the second backoff.
        let gaps = asked.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs());
        let gaps: Vec<i64> = gaps.collect();
        assert!(gaps.len() == 2 && gaps[0] < 5 && (30..36).contains(&gaps[1]), "{gaps:?}");
        let line = "homeostat_map_failures_total{controller=\"configmap\"} 2\n";
        assert!(running.metrics().contains(line), "{}", running.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn filters_of_other_kinds_see_the_object_before_and_after() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        cluster.create(&secret("s", "1")).await;
        // Leaving counts: a filter that looked at the new object only would miss it.
        let lit = |secret: Option<&Secret>| secret.is_some_and(|s| s.labels().contains_key("lit"));
        let switched = Predicate::typed(move |old, new| lit(old) != lit(new));
        let to_a = |secret: &Secret| vec![Key::namespaced(secret.namespace().unwrap(), "a")];
        let controller = Controller::new(idle::<ConfigMap>);
        let running = cluster.start(controller.watches_when(switched, to_a)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let patch = async |labels| {
            cluster.patch::<Secret>("s", json!({ "metadata": { "labels": labels } })).await;
        };
        patch(json!({ "other": "x" })).await;
        patch(json!({ "lit": "yes" })).await;
        cluster.runs(&journal, 2).await;
        patch(json!({ "other": "y" })).await;
        patch(json!({ "lit": null })).await;
        cluster.runs(&journal, 3).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 3);
    });
}

#[test]
fn a_view_of_the_object_that_stays_the_same_wakes_nobody() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let value = |config: &ConfigMap| config.data.clone();
        let controller = Controller::new(idle::<ConfigMap>).filter(Predicate::changed(value));
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.patch::<ConfigMap>("a", json!({ "metadata": { "labels": { "x": "y" } } })).await;
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, 2).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 2, "{journal}");
        assert!(triggers(&records[1]).ends_with("updated"));
    });
}

#[test]
fn two_controllers_of_one_kind_share_a_cache_and_both_see_everything() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let one = Controller::new(idle::<ConfigMap>).namespace(&cluster.namespace);
        let two = Controller::new(idle::<ConfigMap>).namespace(&cluster.namespace).named("auditor");
        let running = cluster.start_manager(cluster.manager().with(one).with(two)).await;
        assert_eq!(running.caches().informers().len(), 1);
        let journal = running.journal();
        cluster.runs(&journal, 2).await;
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, 4).await;
        for name in ["configmap", "auditor"] {
            assert_eq!(records.iter().filter(|r| &*r.controller == name).count(), 2, "{journal}");
        }
        running.stop().await.unwrap();
    });
}

#[test]
fn a_subscriber_whose_object_is_gone_hears_of_the_next_one() {
    on_cluster(async |cluster| {
        // Both share a cache; each has one worker, and that is busy while an object comes and goes.
        let gate = Arc::new(Semaphore::new(0));
        let waiting = |gate: &Arc<Semaphore>| {
            let gate = gate.clone();
            Controller::new(move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
                let gate = gate.clone();
                async move {
                    gate.acquire().await.unwrap().forget();
                    Ok(Outcome::Done)
                }
            })
        };
        cluster.create(&config("a", "1")).await;
        let both = ["one", "two"]
            .map(|name| waiting(&gate).named(name).concurrency(1).namespace(&cluster.namespace));
        let [one, two] = both;
        let running = cluster.start_manager(cluster.manager().with(one).with(two)).await;
        let journal = running.journal();
        cluster.create(&config("gone", "1")).await;
        cluster.api::<ConfigMap>().delete("gone", &<_>::default()).await.unwrap();
        cluster.create(&config("next", "1")).await;
        gate.add_permits(100);
        let seen = |all: &[Arc<Record>], by: &str, name: &str| {
            all.iter().any(|r| &*r.controller == by && r.key.name() == name)
        };
        let next = |all: &[Arc<Record>]| seen(all, "one", "next") && seen(all, "two", "next");
        let records = cluster.until_recorded(&journal, next).await;
        assert!(!seen(&records, "one", "gone") && !seen(&records, "two", "gone"), "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_burst_of_changes_is_one_reconcile_with_a_debounce() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "0")).await;
        let controller = Controller::new(idle::<ConfigMap>);
        let (quiet, at_most) = (Duration::from_secs(2), Duration::from_secs(20));
        let running = cluster.start(controller.debounce(quiet, at_most)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let mut last = cluster.env.now();
        for value in ["1", "2", "3"] {
            last = cluster.env.now();
            cluster.patch::<ConfigMap>("a", json!({ "data": { "value": value } })).await;
        }
        let records = cluster.runs(&journal, 2).await;
        cluster.assert_apart(last, records[1].time, quiet);
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 2);
    });
}

/// One worker, which goes on when the gate lets it.
fn one_at_a_time(gate: &Arc<Semaphore>) -> Controller<ConfigMap> {
    let gate = gate.clone();
    let reconcile = move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(Outcome::Done)
        }
    };
    Controller::new(reconcile).concurrency(1)
}

#[test]
fn changes_that_nobody_waits_for_go_behind_the_others() {
    on_cluster(async |cluster| {
        for name in ["a", "b", "c"] {
            cluster.create(&config(name, "1")).await;
        }
        // The first one holds the only worker until all changes are there.
        let gate = Arc::new(Semaphore::new(3));
        let controller = one_at_a_time(&gate).background(Predicate::labels_changed());
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 3).await;
        let value = async |name: &str, value: &str| {
            cluster.patch::<ConfigMap>(name, json!({ "data": { "value": value } })).await
        };
        value("a", "2").await;
        let label = json!({ "metadata": { "labels": { "x": "y" } } });
        cluster.patch::<ConfigMap>("b", label).await;
        let last = value("c", "2").await;
        let cache = running.caches().informers().remove(0);
        let revision = last.resource_version().unwrap();
        cache.wait_for_revision(&revision, Duration::from_secs(60)).await.unwrap();
        gate.add_permits(3);
        let records = cluster.runs(&journal, 6).await;
        let order: Vec<&str> = records[3..].iter().map(|record| record.key.name()).collect();
        assert_eq!(order, ["a", "c", "b"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_change_goes_before_what_the_first_list_has_left_to_do() {
    on_cluster(async |cluster| {
        for name in ["a", "b", "c", "d"] {
            cluster.create(&config(name, "1")).await;
        }
        // The first one holds the only worker until the change is there.
        let gate = Arc::new(Semaphore::new(0));
        let running = cluster.start(one_at_a_time(&gate)).await;
        let cache = running.caches().informers().remove(0);
        assert!(cache.wait_for_sync().await);
        let last = cluster.patch::<ConfigMap>("d", json!({ "data": { "value": "2" } })).await;
        let revision = last.resource_version().unwrap();
        cache.wait_for_revision(&revision, Duration::from_secs(60)).await.unwrap();
        gate.add_permits(4);
        let records = cluster.runs(&running.journal(), 4).await;
        let order: Vec<&str> = records.iter().map(|record| record.key.name()).collect();
        assert_eq!(order, ["a", "d", "b", "c"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_rate_spreads_reconciles_out() {
    on_cluster(async |cluster| {
        for name in ["a", "b", "c"] {
            cluster.create(&config(name, "1")).await;
        }
        let rate = Rate { every: Duration::from_secs(2), burst: 1 };
        let running = cluster.start(Controller::new(idle::<ConfigMap>).rate(rate)).await;
        let records = cluster.runs(&running.journal(), 3).await;
        for pair in records.windows(2) {
            cluster.assert_apart(pair[0].time, pair[1].time, rate.every);
        }
    });
}
