//! Loops that never come to rest are found and named; the journal tells each reconcile in full.

use std::sync::Arc;
use std::time::Duration;

use homeostat::journal::{ReadFrom, Record};
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{ListParams, Patch};
use homeostat::{Change, Context, Controller, HotLoop, Kind, Outcome, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::cluster::{Cluster, config, object, on_cluster, secret};
use crate::faults::{Fault, faulty, is};
use crate::spans::listen;

/// Two controllers that want different things of one object, forever.
async fn wants<const N: u8>(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
    let key = context.key().clone();
    let wish = json!({ "data": { "value": N.to_string() } });
    context.merge_patch::<ConfigMap>(&key, &wish).await?;
    Ok(Outcome::Done)
}

#[test]
fn two_controllers_that_disagree_are_told_which_field_they_fight_over() {
    on_cluster(async |cluster| {
        let (log, _listening) = listen();
        cluster.create(&config("contested", "0")).await;
        let one = Controller::new(wants::<1>).named("one").namespace(&cluster.namespace);
        let two = Controller::new(wants::<2>).named("two").namespace(&cluster.namespace);
        let running = cluster.start_manager(cluster.manager().with(one).with(two)).await;
        let found = cluster
            .until::<Event>("a warning", |all| {
                all.iter().any(|event| event.reason.as_deref() == Some("HotLoop"))
            })
            .await;
        let event = found.iter().find(|e| e.reason.as_deref() == Some("HotLoop")).unwrap();
        let note = event.note.clone().unwrap();
        assert!(note.contains("again and again in data.value"), "{note}");
        assert!(note.contains(&format!("ConfigMap {}/contested", cluster.namespace)), "{note}");
        assert_eq!(event.regarding.clone().unwrap().name.as_deref(), Some("contested"));
        let metrics = running.metrics();
        let name = event.reporting_controller.clone().unwrap();
        let line = format!("homeostat_hot_loops_total{{controller=\"{name}\"}} 1");
        assert!(metrics.contains(&line), "{line} is missing:\n{metrics}");
        let warned = |words: &String| words.contains("data.value") && words.contains("contested");
        assert!(log.lines().iter().any(warned), "{:?}", log.lines());
        running.stop().await.unwrap();
    });
}

/// Two controllers reconcile one config map again and again: what is said of a hot loop.
async fn told(cluster: &Cluster, both: [Controller<ConfigMap>; 2]) -> String {
    cluster.create(&config("a", "0")).await;
    let limits = HotLoop { flips: 3, ..HotLoop::default() };
    let mut manager = cluster.manager();
    for (controller, name) in both.into_iter().zip(["one", "two"]) {
        let controller = controller.named(name).hot_loop(limits);
        manager = manager.with(controller.namespace(&cluster.namespace));
    }
    let running = cluster.start_manager(manager).await;
    let journal = running.journal();
    cluster.runs(&journal, 30).await;
    running.stop().await.unwrap();
    let all = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let found = all.into_iter().find(|event| event.reason.as_deref() == Some("HotLoop"));
    found.and_then(|event| event.note).unwrap_or_else(|| panic!("no warning:\n{journal}"))
}

/// About once a second, and not in step with another.
fn soon(whose: u8) -> Outcome {
    Outcome::RequeueAfter(Duration::from_millis(600 + 200 * u64::from(whose)))
}

#[test]
fn those_who_scale_one_object_differently_are_told_that_it_is_the_replicas() {
    async fn scale<const N: u8>(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
        ctx.scale(&Kind::of::<Deployment>(), &ctx.key().beside("web"), N.into()).await?;
        Ok(soon(N))
    }
    for is_declared in [true, false] {
        on_cluster(async |cluster| {
            let template = homeostat_testing::pod_template("web", "c");
            let selector = json!({ "matchLabels": { "app": "web" } });
            let spec = json!({ "replicas": 0, "selector": selector, "template": template });
            let web = json!({ "metadata": { "name": "web" }, "spec": spec });
            cluster.create(&object::<Deployment>(web)).await;
            let mut both = [Controller::new(scale::<1>), Controller::new(scale::<2>)];
            if is_declared {
                both = both.map(|controller| controller.reads::<Deployment>());
            }
            let note = told(&cluster, both).await;
            assert!(note.contains("/web changed"), "{note}");
            assert!(note.contains("again and again in spec.replicas"), "{note}");
        });
    }
}

#[test]
fn a_fight_over_an_object_of_a_kind_that_nobody_declared_is_told_by_its_field() {
    async fn patch<const N: u8>(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
        let wish = json!({ "metadata": { "labels": { "calm": "yes", "value": N.to_string() } } });
        ctx.patch::<Secret>("contested", &Patch::Merge(wish)).await?;
        Ok(soon(N))
    }
    async fn replace<const N: u8>(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
        let found = ctx.get::<Secret>("contested").await?.unwrap();
        let mut wish = Secret::clone(&found);
        wish.labels_mut().insert("value".to_owned(), N.to_string());
        ctx.replace(wish).await?;
        Ok(soon(N))
    }
    let blind = || [Controller::new(patch::<1>), Controller::new(patch::<2>)];
    let sighted = || [Controller::new(replace::<1>), Controller::new(replace::<2>)];
    for is_blind in [true, false] {
        on_cluster(async |cluster| {
            cluster.create(&secret("contested", "0")).await;
            let note = told(&cluster, if is_blind { blind() } else { sighted() }).await;
            assert!(note.contains("/contested changed"), "{note}");
            assert!(note.contains("again and again in metadata.labels.value"), "{note}");
            assert!(!note.contains("calm"), "nobody fights over that: {note}");
        });
    }
}

#[test]
fn to_ask_for_what_is_there_already_is_no_fight_however_often_others_write_the_object() {
    async fn ask(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
        let wish = json!({ "metadata": { "labels": { "value": "1" } } });
        ctx.merge_patch::<Secret>("busy", &wish).await?;
        Ok(soon(1))
    }
    on_cluster(async |cluster| {
        cluster.create(&config("a", "0")).await;
        cluster.create(&secret("busy", "0")).await;
        let limits = HotLoop { flips: 2, ..HotLoop::default() };
        let running = cluster.start(Controller::new(ask).hot_loop(limits)).await;
        let journal = running.journal();
        for count in 1..=12 {
            cluster.runs(&journal, count).await;
            // Back and forth, too: that is between others.
            let value = json!({ "stringData": { "value": (count % 2).to_string() } });
            cluster.patch::<Secret>("busy", value).await;
        }
        let records = cluster.runs(&journal, 13).await;
        let ours = |record: &Arc<Record>| {
            let fields = record.writes.iter().flat_map(|write| &write.fields);
            fields.filter(|field| field.path.contains("labels")).count()
        };
        assert_eq!(records.iter().map(ours).sum::<usize>(), 0, "{journal}");
        // Left alone, it is known where the last write left it, and nobody has to look.
        let before = journal.records().len();
        let records = cluster.runs(&journal, before + 3).await;
        let last = records.last().unwrap();
        assert_eq!((last.writes[0].change, last.reads.len()), (Change::Unchanged, 0), "{journal}");
        running.stop().await.unwrap();
        let mut told = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        told.retain(|event| event.reason.as_deref() == Some("HotLoop"));
        assert!(told.is_empty(), "{told:?}");
    });
}

#[test]
fn an_object_that_comes_to_rest_is_no_hot_loop_and_looking_can_be_turned_off() {
    on_cluster(async |cluster| {
        async fn restless(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Outcome> {
            Ok(Outcome::RequeueAfter(Duration::from_millis(20)))
        }
        cluster.create(&config("calm", "0")).await;
        let calm = Controller::new(wants::<1>).named("calm").namespace(&cluster.namespace);
        let unwatched =
            Controller::new(restless).named("fast").namespace(&cluster.namespace).hot_loop(None);
        let watched = HotLoop { reconciles: 50, ..HotLoop::default() };
        let watched = Controller::new(restless).hot_loop(watched).namespace(&cluster.namespace);
        let manager = cluster.manager().with(calm).with(unwatched).with(watched);
        let running = cluster.start_manager(manager).await;
        let is = |event: &Event| event.reason.as_deref() == Some("HotLoop");
        cluster.until::<Event>("a warning", |all| all.iter().any(is)).await;
        let mut all = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        all.retain(is);
        let from: Vec<_> = all.iter().map(|e| e.reporting_controller.clone().unwrap()).collect();
        assert!(from.iter().all(|name| name.contains("configmap")), "{from:?}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_write_whose_event_comes_before_its_answer_is_still_a_change() {
    on_cluster(async |mut cluster| {
        cluster.create(&config("a", "0")).await;
        cluster.client = faulty(&cluster.client, |request| {
            is(request, "PATCH", "/configmaps/").then_some(Fault::Delay)
        });
        let running = cluster.start(Controller::new(wants::<1>)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let write = &records[0].writes[0];
        assert_eq!((write.change, write.fields.len()), (Change::Changed, 1), "{write}");
    });
}

#[test]
fn the_journal_tells_triggers_reads_writes_by_field_and_the_next_wake_up() {
    on_cluster(async |cluster| {
        async fn busy(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let value = config.data.as_ref().and_then(|data| data.get("value")).cloned();
            context.list::<ConfigMap>().await?;
            context.apply(secret(&config.name_any(), &value.unwrap_or_default())).await?;
            let label = json!({ "metadata": { "labels": { "seen": "yes" } } });
            context.merge_patch::<ConfigMap>(context.key(), &label).await?;
            Ok(Outcome::RequeueAfter(Duration::from_secs(3600)))
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(busy).owns::<Secret>()).await;
        let journal = running.journal();
        cluster.until_recorded(&journal, |all| !all.is_empty()).await;
        cluster.quiet().await;
        let before = journal.records().len();
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, before + 1).await;
        let first = &records[0];
        let listed = first.reads.iter().find(|read| read.key.is_none()).unwrap();
        assert_eq!(
            (listed.kind.kind(), listed.from, listed.found),
            ("ConfigMap", ReadFrom::Cache, 1)
        );
        let label = first.writes.iter().find(|write| write.verb == "patch").unwrap();
        assert_eq!(label.fields[0].path, "metadata.labels");
        let changed = records[before].writes.iter().find(|write| write.verb == "apply").unwrap();
        let paths: Vec<&str> = changed.fields.iter().map(|field| &*field.path).collect();
        assert_eq!(paths, ["data.value"], "{changed}");
        let story = records[before].story();
        assert!(story.contains("because ConfigMap") && story.contains("(hidden) → (hidden)"));
        assert!(story.contains("next at 20"), "{story}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_write_to_what_was_read_from_the_api_is_told_by_field_without_another_look() {
    on_cluster(async |cluster| {
        async fn label(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.get::<Secret>("s").await?;
            let patch = json!({ "metadata": { "labels": { "seen": "yes" } } });
            context.merge_patch::<Secret>("s", &patch).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        cluster.create(&secret("s", "1")).await;
        let running = cluster.start(Controller::new(label)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, 2).await;
        let [first, second] = [&records[0], &records[1]].map(|record| &record.writes[0]);
        let paths: Vec<&str> = first.fields.iter().map(|field| &*field.path).collect();
        assert_eq!((first.change, &*paths), (Change::Changed, &["metadata.labels"][..]));
        assert_eq!(second.change, Change::Unchanged, "{second}");
        assert_eq!(records[0].reads.len(), 1, "{:?}", records[0].reads);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_write_to_what_was_deleted_and_made_again_is_not_compared_with_what_was_there_before() {
    on_cluster(async |cluster| {
        async fn renew(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let old = context.get::<Secret>("s").await?.unwrap();
            context.delete(old).await?;
            context.create(secret("s", "2")).await?;
            let patch = json!({ "metadata": { "labels": { "seen": "yes" } } });
            context.merge_patch::<Secret>("s", &patch).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        cluster.create(&secret("s", "1")).await;
        let running = cluster.start(Controller::new(renew)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let writes = &records[0].writes;
        let verbs: Vec<_> = writes.iter().map(|write| write.verb).collect();
        assert_eq!(verbs, ["delete", "create", "patch"]);
        let paths: Vec<&str> = writes[2].fields.iter().map(|field| &*field.path).collect();
        assert_eq!((writes[2].change, &*paths), (Change::Changed, &["metadata.labels"][..]));
        running.stop().await.unwrap();
    });
}

#[test]
fn the_journal_names_no_more_reads_than_it_says() {
    on_cluster(async |cluster| {
        async fn curious(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            for number in 0..100 {
                context.get::<Secret>(&format!("s-{number}")).await?;
                context.get::<Secret>("again").await?;
            }
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(curious).reads::<Secret>()).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let reads = &records[0].reads;
        let again = reads.iter().filter(|read| read.key.as_ref().unwrap().name() == "again");
        assert_eq!((reads.len(), again.count()), (64, 1), "each once, and the first of them");
        running.stop().await.unwrap();
    });
}

#[test]
fn the_journal_names_no_more_writes_than_it_says() {
    on_cluster(async |cluster| {
        async fn busy(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            for number in 0..300 {
                let patch = json!({ "metadata": { "annotations": { "n": number.to_string() } } });
                context.merge_patch::<Secret>("s", &patch).await?;
            }
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        cluster.create(&secret("s", "1")).await;
        let running = cluster.start(Controller::new(busy)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(records[0].writes.len(), 256, "the first of them");
        running.stop().await.unwrap();
    });
}
