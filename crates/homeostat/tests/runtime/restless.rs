//! Loops that never come to rest are found and named; the journal tells each reconcile in full.

use std::sync::Arc;
use std::time::Duration;

use homeostat::journal::ReadFrom;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::ListParams;
use homeostat::{Change, Context, Controller, HotLoop, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::cluster::{config, on_cluster, secret};
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
