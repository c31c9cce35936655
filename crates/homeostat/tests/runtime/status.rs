//! What a reconcile says about its object: status, conditions, finalizers, events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homeostat::condition;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use homeostat::{Context, Controller, Error, EventType, Outcome, Predicate, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::budget::{BudgetStatus, PodDisruptionBudget, budget};
use crate::cluster::{Cluster, config, endings, on_cluster, secret};

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
fn a_reconcile_may_write_its_object_before_its_status() {
    on_cluster(async |cluster| {
        async fn annotate(
            budget: Arc<PodDisruptionBudget>,
            context: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            if budget.annotations().is_empty() {
                let patch = json!({ "metadata": { "annotations": { "seen": "yes" } } });
                context.merge_patch::<PodDisruptionBudget>(context.key(), &patch).await?;
            }
            context.status(BudgetStatus { expected_pods: 1, ..Default::default() }).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&budget("a", 1)).await;
        let running = cluster.start(Controller::new(annotate)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done");
        let object = cluster.api::<PodDisruptionBudget>().get("a").await.unwrap();
        assert_eq!(object.status.unwrap().expected_pods, 1);
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
        let running = cluster.start(Controller::new(judge).marks_status(true)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.quiet().await;
        let api = cluster.api::<PodDisruptionBudget>();
        let status = api.get("a").await.unwrap().status.unwrap();
        let degraded = condition::get(&status.conditions, "Degraded").unwrap();
        assert_eq!(
            (&*degraded.status, &*degraded.message),
            ("True", "zero makes no sense (controller poddisruptionbudget)")
        );
        assert_eq!((&*degraded.reason, degraded.observed_generation), ("CannotBeDone", Some(1)));
        let events = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].type_.as_deref(), Some("Warning"));
        assert_eq!(events[0].regarding.as_ref().unwrap().name.as_deref(), Some("a"));
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 1, "its own condition must not wake it:\n{journal}");

        cluster.patch::<PodDisruptionBudget>("a", json!({ "spec": { "minAvailable": 1 } })).await;
        cluster.runs(&journal, 2).await;
        cluster.nothing_more().await;
        let status = api.get("a").await.unwrap().status.unwrap();
        assert!(condition::get(&status.conditions, "Degraded").is_none());
        assert_eq!(journal.total(), 2, "{journal}");
    });
}

#[test]
fn a_reconcile_that_names_the_cause_of_its_terminal_error_is_not_overruled() {
    on_cluster(async |cluster| {
        async fn judge(
            budget: Arc<PodDisruptionBudget>,
            context: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            let fine = budget.spec.min_available != Some(0);
            let because = |ready: bool| {
                let ready = condition::new("Ready", ready, "TooFew", "zero makes no sense");
                [ready, condition::degraded("TooFew", "zero makes no sense")]
            };
            let conditions = because(fine).into_iter().take(if fine { 1 } else { 2 }).collect();
            context.status(BudgetStatus { conditions, ..Default::default() }).await?;
            if fine { Ok(Outcome::Done) } else { Err(Error::terminal("zero makes no sense")) }
        }
        cluster.create(&budget("a", 0)).await;
        let running = cluster.start(Controller::new(judge).marks_status(true)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.quiet().await;
        let conditions = async || {
            let object = cluster.api::<PodDisruptionBudget>().get("a").await.unwrap();
            object.status.unwrap().conditions
        };
        let said = conditions().await;
        assert_eq!(condition::get(&said, "Degraded").unwrap().reason, "TooFew");
        let events = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        let reasons: Vec<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
        assert_eq!(reasons, ["TooFew"], "the event names it, too");

        cluster.patch::<PodDisruptionBudget>("a", json!({ "spec": { "minAvailable": 1 } })).await;
        cluster.runs(&journal, 2).await;
        cluster.nothing_more().await;
        assert!(condition::get(&conditions().await, "Degraded").is_none());
    });
}

#[test]
fn a_status_written_before_a_terminal_error_keeps_degraded_and_settles() {
    on_cluster(async |cluster| {
        async fn judge(
            budget: Arc<PodDisruptionBudget>,
            context: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            let fine = budget.spec.min_available != Some(0);
            let ready = condition::new("Ready", fine, "Judged", "");
            let status = BudgetStatus { conditions: vec![ready], ..Default::default() };
            context.status(status).await?;
            if fine { Ok(Outcome::Done) } else { Err(Error::terminal("zero makes no sense")) }
        }
        cluster.create(&budget("a", 0)).await;
        let running = cluster.start(Controller::new(judge).marks_status(true)).await;
        let journal = running.journal();
        cluster.nothing_more().await;
        // Once, and once more because its own status changed; then nothing is left to write.
        assert_eq!(journal.total(), 2, "{journal}");
        let types = async || {
            let object = cluster.api::<PodDisruptionBudget>().get("a").await.unwrap();
            let conditions = object.status.unwrap().conditions;
            conditions.into_iter().map(|one| (one.type_, one.status)).collect::<Vec<_>>()
        };
        let pair = |type_: &str, status: &str| (type_.to_owned(), status.to_owned());
        assert_eq!(types().await, [pair("Ready", "False"), pair("Degraded", "True")]);
        cluster.patch::<PodDisruptionBudget>("a", json!({ "spec": { "minAvailable": 1 } })).await;
        cluster.nothing_more().await;
        assert_eq!(types().await, [pair("Ready", "True")]);
        assert!(journal.total() <= 4, "{journal}");
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
            .until_recorded(&journal, |all| endings(all).iter().any(|end| end == "failed: not yet"))
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
fn a_cleanup_never_takes_the_finalizers_of_a_namesake() {
    on_cluster(async |cluster| {
        // The object goes during its own cleanup, and another of its name comes.
        let api = cluster.api::<ConfigMap>();
        let replaced = Arc::new(AtomicUsize::new(0));
        let (count, inside) = (Arc::clone(&replaced), api.clone());
        let reconcile = move |_: Arc<ConfigMap>, context: Context<ConfigMap>| {
            let (count, api) = (Arc::clone(&count), inside.clone());
            async move {
                let name = context.key().name().to_owned();
                let cleanup = async || {
                    if count.fetch_add(1, Ordering::SeqCst) == 0 {
                        let free = json!({ "metadata": { "finalizers": null } });
                        api.patch(&name, &Default::default(), &Patch::Merge(free)).await?;
                        let mut next = config(&name, "next");
                        let held = ["homeostat.dev/test", "homeostat.dev/other"];
                        next.metadata.finalizers = Some(held.map(str::to_owned).to_vec());
                        api.create(&Default::default(), &next).await?;
                    }
                    Ok(())
                };
                context.finalizer("homeostat.dev/test", cleanup).await?;
                Ok(Outcome::Done)
            }
        };
        let first = cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(reconcile)).await;
        let held = |config: &ConfigMap| !config.finalizers().is_empty();
        cluster.until_one::<ConfigMap>("a", "a finalizer", held).await;
        api.delete("a", &DeleteParams::default()).await.unwrap();
        let is_next = |config: &ConfigMap| config.uid() != first.uid();
        cluster.until_one::<ConfigMap>("a", "a namesake", is_next).await;
        cluster.nothing_more().await;
        let next = api.get("a").await.unwrap();
        assert_eq!(next.finalizers(), ["homeostat.dev/test", "homeostat.dev/other"]);
        assert_eq!(replaced.load(Ordering::SeqCst), 1, "{}", running.journal());
        running.stop().await.unwrap();
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        api.patch("a", &Default::default(), &free).await.unwrap();
    });
}

/// A controller that says how many are wanted, and hears of what `filter` lets pass: the status after
/// somebody has wiped it, and whether that was heard of.
async fn wiped(cluster: &Cluster, filter: Predicate) -> (BudgetStatus, bool) {
    type Budget = PodDisruptionBudget;
    async fn report(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
        let desired_healthy = budget.spec.min_available.unwrap_or_default();
        context.status(BudgetStatus { desired_healthy, ..BudgetStatus::default() }).await?;
        Ok(Outcome::Done)
    }
    cluster.create(&budget("a", 2)).await;
    let running = cluster.start(Controller::new(report).filter(filter)).await;
    let told = |budget: &Budget| budget.status.as_ref().is_some_and(|it| it.desired_healthy == 2);
    cluster.until_one::<Budget>("a", "a status", told).await;
    cluster.nothing_more().await;
    let before = running.journal().total();
    let (params, nothing) = (PatchParams::default(), Patch::Merge(json!({ "status": null })));
    cluster.api::<Budget>().patch_status("a", &params, &nothing).await.unwrap();
    cluster.nothing_more().await;
    let is_heard = running.journal().total() > before;
    running.stop().await.unwrap();
    (cluster.get::<Budget>("a").await.unwrap().status.unwrap_or_default(), is_heard)
}

#[test]
fn a_status_that_somebody_wipes_is_said_again_where_changes_of_it_pass() {
    on_cluster(async |cluster| {
        let filter = Predicate::generation_changed().or(Predicate::status_changed());
        let (status, is_heard) = wiped(&cluster, filter).await;
        assert_eq!((status.desired_healthy, is_heard), (2, true));
    });
}

#[test]
fn a_filter_on_the_generation_alone_does_not_hear_of_a_status_that_is_wiped() {
    on_cluster(async |cluster| {
        let (status, is_heard) = wiped(&cluster, Predicate::generation_changed()).await;
        assert_eq!((status.desired_healthy, is_heard), (0, false));
    });
}
