//! Kinds of which a controller watches a part: selectors of its own for each, what is read then from
//! the cache and what from the API.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::controller::{Lookup, Related};
use homeostat::journal::{ReadFrom, Record};
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Patch, PatchParams};
use homeostat::kube::core::PartialObjectMeta;
use homeostat::{Context, Controller, Error, Key, Kind, Manager, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::cluster::{config, endings, idle, on_cluster, secret, triggers};
use crate::faults::{is, late};

fn labelled(name: &str) -> Secret {
    let mut secret = secret(name, "1");
    secret.labels_mut().insert("seen".into(), "yes".into());
    secret
}

fn seen() -> Related {
    Related::owned(Kind::of::<Secret>()).labels("seen=yes")
}

/// A secret within the selection and one outside, read back in every way.
async fn both(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ctx.apply(labelled("in")).await?;
    ctx.apply(secret("out", "1")).await?;
    assert!(ctx.get::<Secret>("in").await?.is_some() && ctx.get::<Secret>("out").await?.is_some());
    let names =
        |all: Vec<Arc<Secret>>| -> Vec<String> { all.iter().map(|s| s.name_any()).collect() };
    assert_eq!(names(ctx.list_labelled::<Secret>("seen=yes").await?), ["in"]);
    assert_eq!(names(ctx.owned::<Secret>().await?), ["in", "out"]);
    Ok(Outcome::Done)
}

#[test]
fn what_a_selection_leaves_out_is_not_cached_and_still_read() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(both).relates(seen())).await;
        let journal = running.journal();
        cluster.quiet().await;
        let records = journal.records();
        assert!(endings(&records).iter().all(|end| end == "done"), "{journal}");
        let informers = running.caches().informers();
        let secrets = informers.iter().find(|informer| informer.kind().kind() == "Secret").unwrap();
        let names: Vec<String> =
            secrets.entries().iter().map(|entry| entry.header.key.name().to_owned()).collect();
        assert_eq!(names, ["in"]);

        // Once it is in the cache, what the cache knows is not asked of the API.
        let before = journal.records().len();
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, before + 1).await;
        let from = |from: ReadFrom| {
            let reads = records[before].reads.iter().filter(|read| read.kind.kind() == "Secret");
            reads.filter(|read| read.from == from).count()
        };
        // `in` and the labelled ones; `out` and all that are owned.
        assert_eq!((from(ReadFrom::Cache), from(ReadFrom::Api)), (2, 2), "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_child_that_leaves_the_selection_is_told_as_deleted_and_comes_back() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(both).relates(seen())).await;
        let journal = running.journal();
        cluster.quiet().await;
        let before = journal.records().len();
        cluster.patch::<Secret>("in", json!({ "metadata": { "labels": { "seen": null } } })).await;
        let is_back = |secret: &Secret| secret.labels().contains_key("seen");
        cluster.until_one::<Secret>("in", "the label", is_back).await;
        let records = cluster.runs(&journal, before + 1).await;
        let gone = format!("Secret {}/in deleted", cluster.namespace);
        assert_eq!(triggers(&records[before]), gone);

        // A child outside the selection is nobody's news.
        cluster.quiet().await;
        let before = journal.records().len();
        cluster.patch::<Secret>("out", json!({ "metadata": { "labels": { "x": "y" } } })).await;
        cluster.nothing_more().await;
        assert_eq!(journal.records().len(), before, "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn fields_select_too_and_equal_selections_share_an_informer() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let namespace = cluster.namespace.clone();
        let lit = move || {
            let namespace = namespace.clone();
            let map = move |_: &Secret| vec![Key::namespaced(&*namespace, "a")];
            Related::watched(Kind::of::<Secret>(), map).fields("type=test.dev/lit")
        };
        let one = Controller::new(idle::<ConfigMap>).relates(lit()).named("one");
        let two = Controller::new(idle::<ConfigMap>).relates(lit()).named("two");
        let other = Controller::new(idle::<ConfigMap>).relates(seen()).named("other");
        let mut manager = cluster.manager();
        for controller in [one, two, other] {
            manager = manager.with(controller.namespace(&cluster.namespace));
        }
        let running = cluster.start_manager(manager).await;
        let kinds = |kind: &str| {
            running.caches().informers().iter().filter(|i| i.kind().kind() == kind).count()
        };
        assert_eq!((kinds("ConfigMap"), kinds("Secret")), (1, 2));
        let journal = running.journal();
        cluster.runs(&journal, 3).await;
        cluster.create(&secret("dark", "1")).await;
        let mut lit = secret("lit", "1");
        lit.type_ = Some("test.dev/lit".into());
        cluster.create(&lit).await;
        let records = cluster.runs(&journal, 5).await;
        cluster.nothing_more().await;
        let woken = format!("Secret {}/lit added", cluster.namespace);
        let by = |r: &Arc<Record>| (r.controller.to_string(), triggers(r));
        let mut woken_by: Vec<_> = records[3..].iter().map(by).collect();
        woken_by.sort();
        assert_eq!(woken_by, [("one".into(), woken.clone()), ("two".into(), woken)], "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn primaries_are_selected_by_their_fields() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        cluster.create(&config("b", "1")).await;
        let controller = Controller::new(idle::<ConfigMap>).fields("metadata.name=b");
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.nothing_more().await;
        let names: Vec<String> =
            journal.records().iter().map(|r| r.key.name().to_owned()).collect();
        assert_eq!(names, ["b"]);
        let words = running.health().to_string();
        assert_eq!(words, "ok source ConfigMap (metadata.name=b)\n");
        running.stop().await.unwrap();
    });
}

/// Wakes `a` for every secret of the selection: at once, after a failure, or after a wait.
fn wakers() -> [(&'static str, Related); 4] {
    let kind = || Kind::of::<Secret>();
    let to_a = |secret: &Secret| vec![Key::namespaced(secret.namespace().unwrap(), "a")];
    let asked = Arc::new(AtomicUsize::new(0));
    let at_second_try = move |secret: &Secret| match asked.fetch_add(1, Ordering::SeqCst) % 2 {
        0 => Err(Error::transient("not now")),
        _ => Ok(to_a(secret)),
    };
    let later = move |secret: Arc<Secret>, lookup: Lookup| async move {
        lookup.env().sleep(Duration::from_millis(10)).await;
        Ok(to_a(&secret))
    };
    [
        ("owned", seen()),
        ("watched", Related::watched(kind(), to_a).labels("seen=yes")),
        ("retried", Related::try_watched(kind(), at_second_try).labels("seen=yes")),
        ("watched_async", Related::watched_async(kind(), later).labels("seen=yes")),
    ]
}

#[test]
fn who_is_woken_by_one_cache_finds_the_reason_in_another() {
    for (how, related) in wakers() {
        on_cluster(async |cluster| {
            cluster.create(&config("a", "1")).await;
            let read = Arc::<Mutex<Vec<Option<String>>>>::default();
            let notes = Arc::clone(&read);
            let look = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
                let notes = Arc::clone(&notes);
                async move {
                    let found = ctx.get::<Secret>("in").await?;
                    let round = found.and_then(|secret| secret.labels().get("round").cloned());
                    notes.lock().unwrap().push(round);
                    ctx.create(labelled("in")).await?;
                    Ok(Outcome::Done)
                }
            };
            let controller = Controller::new(look).relates(related).reads::<Secret>();
            // Later than the second try of a map that fails.
            let behind = Duration::from_secs(3);
            let client = late(&cluster.client, &cluster.env, behind, |request| {
                let query = request.uri().query().unwrap_or_default();
                is(request, "GET", "/secrets") && !query.contains("labelSelector")
            });
            let manager = Manager::new(client, cluster.env.clone());
            let manager = manager.with(controller.namespace(&cluster.namespace));
            let running = cluster.start_manager(manager).await;
            cluster.until_one::<Secret>("in", "the child", |_| true).await;
            cluster.quiet().await;
            for round in ["1", "2", "3"] {
                let before = running.journal().records().len();
                let patch = json!({ "metadata": { "labels": { "round": round } } });
                cluster.patch::<Secret>("in", patch).await;
                cluster.runs(&running.journal(), before + 1).await;
                cluster.env.sleep(Duration::from_secs(6)).await;
                let last = read.lock().unwrap().last().unwrap().clone();
                assert_eq!(last.as_deref(), Some(round), "{how}: {}", running.journal());
            }
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn a_cache_that_stays_behind_is_a_quick_retry_and_nothing_is_made_twice() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let count = async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            if ctx.owned::<Secret>().await?.is_empty() {
                let mut child = secret("", "1");
                (child.metadata.name, child.metadata.generate_name) = (None, Some("made-".into()));
                ctx.create(child).await?;
            }
            assert_eq!(ctx.owned::<Secret>().await?.len(), 1);
            Ok(Outcome::Done)
        };
        let eight = Duration::from_secs(8);
        let client = late(&cluster.client, &cluster.env, eight, |r| is(r, "GET", "/secrets"));
        let controller = Controller::new(count).owns::<Secret>().namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        let journal = running.journal();
        let done = |all: &[Arc<Record>]| endings(all).last().is_some_and(|end| end == "done");
        let records = cluster.until_recorded(&journal, done).await;
        let first = &endings(&records)[0];
        assert!(first.starts_with("conflict: the cache is behind"), "{journal}");
        assert_eq!(cluster.list::<Secret>("").await.len(), 1, "{journal}");
        let vain = records.iter().filter(|one| one.result.to_string().starts_with("conflict"));
        let line =
            format!("homeostat_stale_reads_total{{controller=\"configmap\"}} {}\n", vain.count());
        assert!(running.metrics().contains(&line), "{}", running.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn every_owner_is_woken_where_that_is_asked_for() {
    on_cluster(async |cluster| {
        let [a, b] =
            [cluster.create(&config("a", "1")).await, cluster.create(&config("b", "1")).await];
        let reference = |owner: &ConfigMap, controller: bool| {
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(),
                "uid": owner.uid(), "controller": controller })
        };
        let owners = json!([reference(&a, true), reference(&b, false)]);
        let child = json!({ "metadata": { "name": "child", "ownerReferences": owners } });
        cluster.create::<Secret>(child).await;
        let related = Related::owned_by_any(Kind::of::<Secret>());
        let running = cluster.start(Controller::new(idle::<ConfigMap>).relates(related)).await;
        let journal = running.journal();
        cluster.runs(&journal, 2).await;
        cluster.quiet().await;
        let before = journal.records().len();
        cluster.patch::<Secret>("child", json!({ "metadata": { "labels": { "x": "y" } } })).await;
        let records = cluster.runs(&journal, before + 2).await;
        let woken: Vec<&str> = records[before..].iter().map(|record| record.key.name()).collect();
        assert_eq!(woken, ["a", "b"], "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn an_index_of_a_selection_does_not_wait_for_what_the_selection_leaves_out() {
    let kind = || Kind::of::<Secret>();
    let selections = [
        ("labels", Related::read(kind()).labels("seen=yes")),
        ("name", Related::read(kind()).fields("metadata.name=in")),
        ("type", Related::read(kind()).fields("type=test.dev/lit")),
    ];
    for (how, selected) in selections {
        on_cluster(async |cluster| {
            cluster.create(&config("a", "1")).await;
            let look = async |a: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
                let mut child = labelled("in");
                child.type_ = Some("test.dev/lit".into());
                ctx.apply(child).await?;
                let mut child = secret("out", "1");
                child.labels_mut().insert("of".into(), a.data.clone().unwrap()["value"].clone());
                ctx.apply(child).await?;
                let found = ctx.by_index::<Secret>("type", "test.dev/lit").await?;
                let names: Vec<String> = found.iter().map(|found| found.name_any()).collect();
                assert_eq!(names, ["in"], "its own write");
                Ok(Outcome::Done)
            };
            // Its children wake it, whatever they are; reconciles read those of a selection.
            let controller = Controller::new(look).owns::<PartialObjectMeta<Secret>>();
            let controller = controller.relates(selected).index_field::<Secret>("type");
            let running = cluster.start(controller).await;
            let journal = running.journal();
            cluster.until_one::<Secret>("out", "the other child", |_| true).await;
            cluster.quiet().await;
            cluster.patch::<Secret>("out", json!({ "metadata": { "labels": { "x": "y" } } })).await;
            cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
            let of = |secret: &Secret| secret.labels().get("of").is_some_and(|of| of == "2");
            cluster.until_one::<Secret>("out", "another version", of).await;
            cluster.quiet().await;
            assert!(endings(&journal.records()).iter().all(|e| e == "done"), "{how}: {journal}");
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn a_second_selector_narrows_the_first() {
    on_cluster(async |cluster| {
        for (name, labels) in
            [("both", json!({ "a": "1", "b": "1" })), ("one", json!({ "b": "1" }))]
        {
            let labelled = json!({ "metadata": { "name": name, "labels": labels } });
            cluster.create::<ConfigMap>(labelled.clone()).await;
            cluster.create::<Secret>(labelled).await;
        }
        async fn count(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            assert_eq!(ctx.list_labelled::<Secret>("a=1,b=1").await?.len(), 1);
            Ok(Outcome::Done)
        }
        let secrets = Related::read(Kind::of::<Secret>()).labels("a=1").labels("b=1");
        let controller = Controller::new(count).labels("a").labels("b=1").relates(secrets);
        let running = cluster.start(controller).await;
        cluster.runs(&running.journal(), 1).await;
        cluster.nothing_more().await;
        let informers = running.caches().informers();
        let cached: Vec<usize> = informers.iter().map(|informer| informer.len()).collect();
        assert_eq!(cached, [1, 1], "of both kinds");
        assert_eq!(running.journal().total(), 1, "{}", running.journal());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_primary_that_leaves_the_selection_in_a_reconcile_that_writes_it_is_not_waited_for() {
    on_cluster(async |cluster| {
        let mut a = config("a", "1");
        a.labels_mut().insert("of".into(), "x".into());
        cluster.create(&a).await;
        let api = cluster.api::<ConfigMap>();
        let write = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let api = api.clone();
            async move {
                // By somebody else; the cache of the primaries hears of nothing that comes after.
                let away = Patch::Merge(json!({ "metadata": { "labels": { "of": null } } }));
                api.patch("a", &PatchParams::default(), &away).await?;
                let patch = json!({ "data": { "value": "2" } });
                ctx.merge_patch::<ConfigMap>(ctx.key(), &patch).await?;
                Ok(Outcome::Done)
            }
        };
        // What reconciles read selects nothing, and shows that version.
        let controller = Controller::new(write).labels("of=x").reads::<ConfigMap>();
        let running = cluster.start(controller).await;
        cluster.runs(&running.journal(), 1).await;
        cluster.env.sleep(Duration::from_secs(20)).await;
        assert_eq!(endings(&running.journal().records()), ["done"]);
        let line = "homeostat_stale_reads_total{controller=\"configmap\"} 0\n";
        assert!(running.metrics().contains(line), "{}", running.metrics());
        running.stop().await.unwrap();
    });
}
