//! What the API refuses, forgets or never answers, and what becomes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{DeleteParams, ListParams, PostParams};
use homeostat::{Backoff, Context, Controller, Error, EventType, Key, Manager, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::budget::{PodDisruptionBudget, odd_budget};
use crate::children::mirror;
use crate::cluster::{Cluster, config, endings, idle, object, on_cluster, secret};
use crate::faults::{Fault, faulty, is};

/// The events of a reason in the test's namespace, once there are any.
async fn events(cluster: &Cluster, reason: &str) -> Vec<Event> {
    let mut all = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    all.retain(|event| event.reason.as_deref() == Some(reason));
    all
}

#[test]
fn a_refused_write_is_retried_unless_the_reconcile_calls_it_hopeless() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        async fn hopeful(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.apply(secret("not a name", "1")).await?;
            Ok(Outcome::Done)
        }
        async fn hopeless(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let missing = Key::namespaced("no-such-namespace", "x");
            let elsewhere = context.merge_patch::<Secret>(&missing, &json!({ "data": {} })).await;
            assert!(!elsewhere.unwrap_err().terminal_if_invalid().is_terminal());
            let applied = context.create(secret("not a name", "1")).await;
            applied.map_err(Error::terminal_if_invalid)?;
            Ok(Outcome::Done)
        }
        let backoff = Backoff::default().exact();
        let running = cluster.start(Controller::new(hopeful).backoff(backoff)).await;
        let records = cluster.runs(&running.journal(), 2).await;
        assert!(endings(&records)[0].starts_with("failed: "), "{}", running.journal());
        cluster.assert_apart(records[0].time, records[1].time, Duration::from_secs(1));
        running.stop().await.unwrap();

        let running = cluster.start(Controller::new(hopeless)).await;
        cluster.runs(&running.journal(), 1).await;
        cluster.nothing_more().await;
        let ending = &endings(&running.journal().records())[..];
        assert!(ending.len() == 1 && ending[0].starts_with("terminal: "), "{ending:?}");
    });
}

#[test]
fn a_namesake_that_is_missing_elsewhere_is_not_taken_for_the_primary() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        async fn reconcile(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let namesake = Key::namespaced("no-such-namespace", "a");
            context.merge_patch::<ConfigMap>(&namesake, &json!({ "data": {} })).await?;
            Ok(Outcome::Done)
        }
        let running = cluster.start(Controller::new(reconcile)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert!(endings(&records)[0].starts_with("failed: "), "{}", running.journal());
    });
}

#[test]
fn a_kind_that_was_not_declared_is_applied_with_the_same_care() {
    on_cluster(async |cluster| {
        let owner = cluster.create(&config("mine", "MQ==")).await;
        cluster.create(&config("taken", "MQ==")).await;
        let mut taken = secret("taken", "theirs");
        taken.metadata.owner_references = Some(object(json!([{
            "apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "7", "controller": true,
        }])));
        cluster.create(&taken).await;
        let running = cluster.start(Controller::new(mirror).concurrency(1)).await;
        let journal = running.journal();
        let records = cluster.runs(&journal, 2).await;
        assert_eq!(endings(&records)[0], "done");
        let ending = &endings(&records)[1];
        assert!(ending.starts_with("terminal") && ending.contains("Pod other (uid 7)"), "{ending}");

        cluster.patch::<ConfigMap>("mine", json!({ "metadata": { "labels": { "a": "b" } } })).await;
        let records = cluster.runs(&journal, 3).await;
        assert_eq!((records[0].writes.len(), records[2].writes.len()), (1, 0), "{journal}");
        let child = cluster.api::<Secret>().get("mine").await.unwrap();
        assert_eq!(Some(&child.owner_references()[0].uid), owner.uid().as_ref());
    });
}

#[test]
fn a_request_without_an_answer_is_given_up_and_tried_again() {
    on_cluster(async |mut cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let tries = Arc::new(AtomicUsize::new(0));
        let count = tries.clone();
        cluster.client = faulty(&cluster.client, move |request| {
            let applies = is(request, "PATCH", "/secrets/");
            (applies && count.fetch_add(1, Ordering::SeqCst) == 0).then_some(Fault::LoseAnswer)
        });
        let controller = Controller::new(mirror).owns::<Secret>();
        let limit = Duration::from_secs(2);
        let running = cluster.start(controller.request_timeout(limit)).await;
        let records = cluster
            .until_recorded(&running.journal(), |all| {
                all.iter().any(|r| r.result.to_string() == "done")
            })
            .await;
        assert_eq!(endings(&records)[0], "failed: the API did not answer within 2s");
        cluster.api::<Secret>().get("a").await.unwrap();
    });
}

#[test]
fn a_series_of_events_goes_on_after_its_event_was_deleted() {
    on_cluster(async |cluster| {
        async fn tell(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.event(EventType::Normal, "Told", "again");
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(tell)).await;
        cluster.runs(&running.journal(), 1).await;
        cluster.quiet().await;
        let first = events(&cluster, "Told").await.remove(0);
        let api = cluster.api::<Event>();
        api.delete(&first.name_any(), &DeleteParams::default()).await.unwrap();
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        cluster.runs(&running.journal(), 2).await;
        cluster.quiet().await;
        let again = events(&cluster, "Told").await;
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].series.as_ref().map(|series| series.count), Some(2));
        assert_eq!(running.recorder().dropped(), 0);
    });
}

#[test]
fn a_primary_that_does_not_fit_its_type_is_reported_once() {
    on_cluster(async |cluster| {
        let (api, odd) = odd_budget(&cluster);
        api.create(&PostParams::default(), &odd).await.unwrap();
        let running = cluster.start(Controller::new(idle::<PodDisruptionBudget>)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        for value in ["x", "y"] {
            let before = journal.records().len();
            let labels = json!({ "metadata": { "labels": { "a": value } } });
            let patch = homeostat::kube::api::Patch::Merge(labels);
            api.patch("odd", &Default::default(), &patch).await.unwrap();
            cluster.runs(&journal, before + 1).await;
        }
        cluster.quiet().await;
        let said = events(&cluster, "DecodeFailed").await;
        assert_eq!((said.len(), said[0].series.is_some()), (1, false));
        assert_eq!(said[0].type_.as_deref(), Some("Warning"));
        assert_eq!(said[0].regarding.clone().unwrap().name.as_deref(), Some("odd"));

        let patch = homeostat::kube::api::Patch::Merge(json!({ "spec": { "minAvailable": 1 } }));
        api.patch("odd", &Default::default(), &patch).await.unwrap();
        cluster.until_recorded(&journal, |all| endings(all).contains(&"done".to_owned())).await;
    });
}

#[test]
fn a_cache_of_labelled_primaries_is_not_waited_for_to_show_others() {
    on_cluster(async |cluster| {
        async fn beside(a: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let made = context.create(config("other", "1")).await?;
            let seen = context.get::<ConfigMap>("other").await?;
            assert_eq!(seen.and_then(|seen| seen.uid()), made.uid());
            assert!(context.list::<ConfigMap>().await?.len() >= 2);
            // Out of the controller's sight: the reconcile still ends well.
            let patch = json!({ "metadata": { "labels": { "app": null } } });
            let away = context.merge_patch::<ConfigMap>(context.key(), &patch).await?;
            assert_eq!(away.uid(), a.uid());
            Ok(Outcome::Done)
        }
        let mut primary = config("a", "1");
        primary.labels_mut().insert("app".into(), "web".into());
        cluster.create(&primary).await;
        let running = cluster.start(Controller::new(beside).labels("app=web")).await;
        let journal = running.journal();
        let records = cluster.runs(&journal, 1).await;
        assert_eq!(endings(&records), ["done"]);
        assert!(!cluster.is_virtual || records[0].took < Duration::from_secs(1), "{journal}");
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 1);
    });
}

#[test]
fn a_reconciler_may_be_a_type_of_its_own() {
    struct Counter(AtomicUsize);
    impl homeostat::Reconciler<ConfigMap> for Counter {
        async fn reconcile(&self, _: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Outcome> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Outcome::Done)
        }
    }
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let counter = Arc::new(Counter(AtomicUsize::new(0)));
        let controller = Controller::new(counter.clone()).namespace(&cluster.namespace);
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let running = manager.with(controller).start().await.unwrap();
        cluster.runs(&running.journal(), 1).await;
        assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn what_was_recorded_before_a_stop_is_written_and_too_much_is_counted() {
    on_cluster(async |cluster| {
        async fn tell(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let many = if config.name_any() == "many" { 2000 } else { 3 };
            for at in 0..many {
                ctx.event(EventType::Normal, &format!("Told{at}"), "a word");
            }
            Ok(Outcome::Done)
        }
        cluster.create(&config("few", "1")).await;
        // Slow enough that the last ones still wait when the end comes.
        let slow = |r: &http::Request<_>| is(r, "POST", "/events").then_some(Fault::Delay);
        let client = faulty(&cluster.client, slow);
        let controller = Controller::new(tell).namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        cluster.runs(&running.journal(), 1).await;
        running.stop().await.unwrap();
        for reason in ["Told0", "Told1", "Told2"] {
            assert_eq!(events(&cluster, reason).await.len(), 1, "{reason}");
        }

        cluster.create(&config("many", "1")).await;
        let running = cluster.start(Controller::new(tell)).await;
        cluster.runs(&running.journal(), 2).await;
        let dropped = running.recorder().dropped();
        // A thousand wait, of which one object has 25, and three are of the other.
        assert!((1..=1978).contains(&dropped), "{dropped}");
        let line = format!("homeostat_events_dropped_total {dropped}");
        assert!(running.metrics().contains(&line), "{}", running.metrics());
        drop(running);
    });
}

#[test]
fn what_a_manager_transforms_away_is_not_cached_and_costs_no_writes() {
    on_cluster(async |cluster| {
        async fn keep(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            assert!(config.data.is_none(), "it was cached without");
            ctx.apply(secret(&config.name_any(), "1")).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let forget = |field: &'static str| {
            move |object: &mut serde_json::Value| {
                object.as_object_mut().map(|fields| fields.remove(field));
            }
        };
        let controller = Controller::new(keep).owns::<Secret>().namespace(&cluster.namespace);
        let manager = cluster.manager();
        let manager =
            manager.transform::<ConfigMap>(forget("data")).transform::<Secret>(forget("type"));
        let running = cluster.start_manager(manager.with(controller)).await;
        let journal = running.journal();
        cluster.quiet().await;
        cluster.patch::<ConfigMap>("a", json!({ "metadata": { "labels": { "x": "y" } } })).await;
        cluster.quiet().await;
        let records = journal.records();
        let writes: Vec<usize> = records.iter().map(|record| record.writes.len()).collect();
        assert!(writes.len() >= 2 && writes[1..].iter().all(|count| *count == 0), "{journal}");
        running.stop().await.unwrap();
    });
}
