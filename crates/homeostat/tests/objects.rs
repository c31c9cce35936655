//! What a reconcile does to objects: children, status, finalizers, events.

mod cluster;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cluster::{config, endings, object, on_cluster, triggers};
use homeostat::condition::{self, Condition};
use homeostat::kube::api::{Api, DeleteParams, ListParams};
use homeostat::kube::{CustomResource, ResourceExt};
use homeostat::{Change, Context, Controller, Error, EventType, Key, Outcome, Predicate, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A loose view of a built-in kind that has a generation, a status and standard conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "policy", version = "v1", kind = "PodDisruptionBudget", namespaced)]
#[kube(status = "BudgetStatus")]
#[serde(rename_all = "camelCase")]
struct BudgetSpec {
    min_available: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct BudgetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    current_healthy: i64,
    desired_healthy: i64,
    disruptions_allowed: i64,
    expected_pods: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

fn budget(name: &str, min: i64) -> PodDisruptionBudget {
    object(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name }, "spec": { "minAvailable": min },
    }))
}

fn secret(name: &str, value: &str) -> Secret {
    object(json!({ "metadata": { "name": name }, "stringData": { "value": value } }))
}

/// Copies a config map's value to a secret of the same name.
async fn mirror(source: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
    let value = source.data.as_ref().and_then(|data| data.get("value")).cloned();
    let wish: Secret = object(json!({
        "metadata": { "name": source.name_any(), "labels": { "mirror": "yes" } },
        "data": { "value": value.unwrap_or_default() },
    }));
    let applied = context.apply(wish).await?;
    let seen = context.get::<Secret>(&source.name_any()).await?;
    assert_eq!(
        seen.map(|secret| secret.resource_version()),
        Some(applied.object.resource_version())
    );
    Ok(Outcome::Done)
}

#[test]
fn a_child_is_applied_once_corrected_when_it_drifts_and_followed_by_its_owner() {
    on_cluster(async |cluster| {
        let owner = cluster.create(&config("a", "MQ==")).await;
        let running = cluster.start(Controller::new(mirror).owns::<Secret>()).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let child = cluster.api::<Secret>().get("a").await.unwrap();
        let reference = child.owner_references()[0].clone();
        assert_eq!((Some(reference.uid), reference.controller), (owner.uid(), Some(true)));
        assert_eq!(reference.block_owner_deletion, Some(true));

        cluster.nothing_more().await;
        let quiet = journal.total();
        let writes: Vec<_> = journal.records().iter().flat_map(|r| r.writes.clone()).collect();
        assert_eq!(writes.len(), 1, "{journal}");
        assert_eq!(writes[0].change, Change::Created);

        cluster.patch::<Secret>("a", json!({ "data": { "value": "Mg==" } })).await;
        cluster.until(&journal, |all| all.len() as u64 > quiet).await;
        cluster.nothing_more().await;
        let child = cluster.api::<Secret>().get("a").await.unwrap();
        assert_eq!(child.data.unwrap()["value"].0, b"1");

        cluster.api::<Secret>().delete("a", &DeleteParams::default()).await.unwrap();
        cluster.nothing_more().await;
        cluster.api::<Secret>().get("a").await.unwrap();
        let total = journal.total();
        cluster.nothing_more().await;
        assert_eq!(journal.total(), total);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_strangers_object_is_never_touched_and_is_named() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let mut taken = secret("a", "theirs");
        taken.metadata.owner_references = Some(object(json!([{
            "apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "7", "controller": true,
        }])));
        cluster.create(&taken).await;
        let running = cluster.start(Controller::new(mirror).owns::<Secret>()).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let ending = &endings(&records)[0];
        assert!(ending.starts_with("terminal") && ending.contains("Pod other (uid 7)"), "{ending}");
        assert!(records[0].writes.is_empty());
    });
}

#[test]
fn creating_twice_gives_the_same_child_and_a_stranger_is_an_error() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        cluster.create(&secret("taken", "theirs")).await;
        async fn reconcile(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let first = context.create(secret("mine", "1")).await?;
            let second = context.create(secret("mine", "2")).await?;
            assert_eq!(first.uid(), second.uid());
            context.create(secret("taken", "1")).await?;
            Ok(Outcome::Done)
        }
        // Once through the cache, once (undeclared) through the API.
        for controller in [Controller::new(reconcile).owns::<Secret>(), Controller::new(reconcile)]
        {
            let running = cluster.start(controller).await;
            let records = cluster.runs(&running.journal(), 1).await;
            assert!(endings(&records)[0].contains("not owned by anyone"), "{}", running.journal());
            running.stop().await.unwrap();
        }
    });
}

#[test]
fn what_a_reconcile_wrote_it_reads_so_it_never_makes_too_many() {
    on_cluster(async |cluster| {
        async fn three(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let have = context.owned::<Secret>().await?.len();
            assert!(have <= 3);
            for _ in have..3 {
                context
                    .create(object::<Secret>(json!({ "metadata": { "generateName": "x-" } })))
                    .await?;
            }
            assert_eq!(context.owned::<Secret>().await?.len(), 3);
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(three).owns::<Secret>()).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.nothing_more().await;
        let all = cluster.api::<Secret>().list(&ListParams::default()).await.unwrap();
        assert_eq!(all.items.len(), 3);
        cluster
            .api::<Secret>()
            .delete(&all.items[0].name_any(), &DeleteParams::default())
            .await
            .unwrap();
        cluster.nothing_more().await;
        let all = cluster.api::<Secret>().list(&ListParams::default()).await.unwrap();
        assert_eq!(all.items.len(), 3);
        assert!(endings(&journal.records()).iter().all(|ending| ending == "done"), "{journal}");
    });
}

#[test]
fn what_a_reconcile_deleted_it_does_not_read() {
    on_cluster(async |cluster| {
        async fn none(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let unwanted = context.list_labelled::<Secret>("mirror=yes").await?;
            for secret in &unwanted {
                context.delete(&**secret).await?;
            }
            assert!(context.list_labelled::<Secret>("mirror=yes").await?.is_empty());
            for secret in &unwanted {
                context.delete(&**secret).await?; // gone already: no error
            }
            Ok(Outcome::Done)
        }
        for name in ["x", "y"] {
            let mut labelled = secret(name, "1");
            labelled.labels_mut().insert("mirror".into(), "yes".into());
            cluster.create(&labelled).await;
        }
        cluster.create(&secret("z", "1")).await;
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(none).reads::<Secret>()).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
        assert!(cluster.api::<Secret>().get("z").await.is_ok());
    });
}

#[test]
fn a_status_is_written_only_when_it_differs_with_generations_and_times_filled_in() {
    on_cluster(async |cluster| {
        async fn report(
            budget: Arc<PodDisruptionBudget>,
            context: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            let min = budget.spec.min_available.unwrap_or_default();
            let ready = condition::new("Ready", min > 1, "Counted", format!("{min} wanted"));
            context
                .status(BudgetStatus {
                    desired_healthy: min,
                    conditions: vec![ready],
                    ..Default::default()
                })
                .await?;
            Ok(Outcome::Done)
        }
        cluster.create(&budget("a", 2)).await;
        let running = cluster.start(Controller::new(report)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.nothing_more().await;
        let api = cluster.api::<PodDisruptionBudget>();
        let first = api.get("a").await.unwrap();
        let status = first.status.clone().unwrap();
        assert_eq!((status.desired_healthy, status.observed_generation), (2, Some(1)));
        let ready = status.conditions[0].clone();
        assert_eq!((&*ready.status, ready.observed_generation), ("True", Some(1)));
        let writes = || journal.records().iter().map(|record| record.writes.len()).sum::<usize>();
        assert_eq!(writes(), 1, "{journal}");

        // A new generation, the same answer: the time of transition stays.
        cluster.patch::<PodDisruptionBudget>("a", json!({ "spec": { "minAvailable": 3 } })).await;
        cluster.nothing_more().await;
        let later = api.get("a").await.unwrap().status.unwrap().conditions[0].clone();
        assert_eq!((&*later.message, later.observed_generation), ("3 wanted", Some(2)));
        assert_eq!(later.last_transition_time, ready.last_transition_time);

        cluster.patch::<PodDisruptionBudget>("a", json!({ "spec": { "minAvailable": 1 } })).await;
        cluster.nothing_more().await;
        let last = api.get("a").await.unwrap().status.unwrap().conditions[0].clone();
        assert_eq!(last.status, "False");
        assert!(last.last_transition_time.0 > ready.last_transition_time.0);
        assert_eq!(writes(), 3, "{journal}");
    });
}

#[test]
fn a_terminal_error_shows_as_degraded_with_an_event_and_goes_with_the_next_success() {
    on_cluster(async |cluster| {
        async fn judge(
            budget: Arc<PodDisruptionBudget>,
            _: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            match budget.spec.min_available {
                Some(0) => Err(Error::terminal("zero makes no sense")),
                _ => Ok(Outcome::Done),
            }
        }
        cluster.create(&budget("a", 0)).await;
        let running = cluster.start(Controller::new(judge)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 1, "its own condition must not wake it:\n{journal}");
        let api = cluster.api::<PodDisruptionBudget>();
        let status = api.get("a").await.unwrap().status.unwrap();
        let degraded = condition::get(&status.conditions, "Degraded").unwrap();
        assert_eq!((&*degraded.status, &*degraded.message), ("True", "zero makes no sense"));
        assert_eq!((&*degraded.reason, degraded.observed_generation), ("TerminalError", Some(1)));
        let events = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].type_.as_deref(), Some("Warning"));
        assert_eq!(events[0].regarding.as_ref().unwrap().name.as_deref(), Some("a"));

        cluster.patch::<PodDisruptionBudget>("a", json!({ "spec": { "minAvailable": 1 } })).await;
        cluster.runs(&journal, 2).await;
        cluster.nothing_more().await;
        let status = api.get("a").await.unwrap().status.unwrap();
        assert!(condition::get(&status.conditions, "Degraded").is_none());
        assert_eq!(journal.total(), 2, "{journal}");
    });
}

#[test]
fn a_finalizer_holds_the_object_until_its_cleanup_has_run() {
    on_cluster(async |cluster| {
        static CLEANED: AtomicUsize = AtomicUsize::new(0);
        async fn guarded(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let cleanup = async || {
                if CLEANED.fetch_add(1, Ordering::SeqCst) == 0 {
                    return Err(Error::transient("not yet"));
                }
                Ok(())
            };
            if context.finalizer("homeostat.dev/test", cleanup).await? {
                return Ok(Outcome::Done);
            }
            context.create(secret("external", "1")).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(guarded).owns::<Secret>()).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let api = cluster.api::<ConfigMap>();
        assert_eq!(api.get("a").await.unwrap().finalizers(), ["homeostat.dev/test"]);
        api.delete("a", &DeleteParams::default()).await.unwrap();
        cluster
            .until(&journal, |all| endings(all).iter().any(|end| end == "failed: not yet"))
            .await;
        assert!(api.get_opt("a").await.unwrap().is_some());
        cluster.nothing_more().await;
        assert!(api.get_opt("a").await.unwrap().is_none());
        assert_eq!(CLEANED.load(Ordering::SeqCst), 2, "{journal}");
    });
}

#[test]
fn repeated_events_are_one_event_with_a_count() {
    on_cluster(async |cluster| {
        async fn chatty(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            for _ in 0..3 {
                context.event(EventType::Normal, "Said", "hello");
            }
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(chatty).named("talker")).await;
        cluster.runs(&running.journal(), 1).await;
        running.stop().await.unwrap();
        let events = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].series.as_ref().unwrap().count, 3);
        assert_eq!(events[0].reporting_controller.as_deref(), Some("talker"));
    });
}

#[test]
fn a_watched_kind_wakes_the_keys_it_names_before_and_after() {
    on_cluster(async |cluster| {
        async fn idle(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Outcome> {
            Ok(Outcome::Done)
        }
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let mut pointer = secret("pointer", "1");
        pointer.labels_mut().insert("to".into(), "a".into());
        cluster.create(&pointer).await;
        let map = |secret: &Secret| {
            let to = secret.labels().get("to").cloned();
            let namespace = secret.namespace().unwrap_or_default();
            to.map(|name| Key::namespaced(namespace, name)).into_iter().collect()
        };
        let running = cluster.start(Controller::new(idle).watches(map)).await;
        let journal = running.journal();
        cluster.nothing_more().await;
        let before = journal.records().len();
        cluster
            .patch::<Secret>("pointer", json!({ "metadata": { "labels": { "to": "b" } } }))
            .await;
        let records = cluster.runs(&journal, before + 2).await;
        let woken: Vec<&str> = records[before..].iter().map(|record| &*record.key.name).collect();
        assert_eq!(woken, ["a", "b"]);
        let words = format!("Secret {}/pointer updated", cluster.namespace);
        assert_eq!(triggers(&records[before]), words);
    });
}

#[test]
fn filters_and_label_scopes_keep_changes_away() {
    on_cluster(async |cluster| {
        async fn idle(
            _: Arc<PodDisruptionBudget>,
            _: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            Ok(Outcome::Done)
        }
        let mut seen = budget("seen", 1);
        seen.labels_mut().insert("app".into(), "web".into());
        cluster.create(&seen).await;
        cluster.create(&budget("unseen", 1)).await;
        let filter = Predicate::generation_changed().or(Predicate::annotations_changed());
        let running = cluster.start(Controller::new(idle).filter(filter).labels("app=web")).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let patch = |patch| cluster.patch::<PodDisruptionBudget>("seen", patch);
        patch(json!({ "metadata": { "labels": { "more": "x" } } })).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 1);
        patch(json!({ "metadata": { "annotations": { "more": "x" } } })).await;
        cluster.runs(&journal, 2).await;
        patch(json!({ "spec": { "minAvailable": 5 } })).await;
        let records = cluster.runs(&journal, 3).await;
        assert!(records.iter().all(|record| &*record.key.name == "seen"));
    });
}

#[test]
fn a_kind_that_is_missing_holds_back_only_its_own_controller() {
    #[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
    #[kube(group = "absent.homeostat.dev", version = "v1", kind = "Nothing", namespaced)]
    struct NothingSpec {}
    async fn nothing(_: Arc<Nothing>, _: Context<Nothing>) -> Result<Outcome> {
        Ok(Outcome::Done)
    }
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let mirror = Controller::new(mirror).owns::<Secret>().namespace(&cluster.namespace);
        let manager = cluster.manager().with(Controller::new(nothing)).with(mirror);
        let running = manager.start().await.unwrap();
        cluster.runs(&running.journal(), 1).await;
        assert_eq!(running.pending().len(), 1);
        assert!(running.pending()[0].contains("Nothing"), "{:?}", running.pending());
        running.stop().await.unwrap();
    });
}

#[test]
fn kinds_that_were_not_declared_are_read_from_the_api() {
    on_cluster(async |cluster| {
        async fn look(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            assert!(context.get::<Secret>("x").await?.is_some());
            assert!(context.get::<Secret>("y").await?.is_none());
            assert_eq!(context.list::<Secret>().await?.len(), 1);
            let made = context.create(secret("mine", "1")).await?;
            assert_eq!(context.owned::<Secret>().await?[0].uid(), made.uid());
            Ok(Outcome::Done)
        }
        cluster.create(&secret("x", "1")).await;
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(look)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
        let _: Api<Secret> = cluster.api();
    });
}
