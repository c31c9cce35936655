//! Whose words a status has: the reconcile's, the runtime's, or those of others.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homeostat::condition::{self, Condition};
use homeostat::kube::api::{Patch, PatchParams};
use homeostat::kube::{Api, ResourceExt};
use homeostat::{Context, Controller, Error, Outcome, Result, Running};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::budget::{BudgetStatus, PodDisruptionBudget, budget};
use crate::cluster::{Cluster, on_cluster};
use crate::faults::{Fault, faulty, is};

type Budget = PodDisruptionBudget;

/// How often a reconcile may run before it is left alone: a loop would have no end on virtual time.
const MOST_RUNS: usize = 10;

fn judged(budget: &Budget) -> Result<Outcome> {
    match budget.spec.min_available {
        Some(0) => Err(Error::terminal("zero makes no sense")),
        _ => Ok(Outcome::Done),
    }
}

/// Runs a controller on a budget that asks for nothing, until it has come to rest: after one reconcile,
/// and one more because its own status changed.
async fn at_rest<F>(
    cluster: &Cluster,
    judge: impl Fn(Arc<Budget>, Context<Budget>) -> F + Send + Sync + 'static,
) -> Running
where
    F: Future<Output = Result<Outcome>> + Send + 'static,
{
    let runs = AtomicUsize::new(0);
    let limited = move |budget, context| {
        let is_enough = runs.fetch_add(1, Ordering::Relaxed) > MOST_RUNS;
        let judged = judge(budget, context);
        async move { if is_enough { Ok(Outcome::Done) } else { judged.await } }
    };
    cluster.create(&budget("a", 0)).await;
    let running = cluster.start(Controller::new(limited).marks_status(true)).await;
    let journal = running.journal();
    cluster.runs(&journal, 1).await;
    cluster.nothing_more().await;
    assert!(journal.total() <= 2, "{journal}");
    running
}

async fn conditions(cluster: &Cluster) -> Vec<Condition> {
    let object = cluster.api::<Budget>().get("a").await.unwrap();
    object.status.map(|status| status.conditions).unwrap_or_default()
}

async fn ask_for(cluster: &Cluster, min: i64) {
    cluster.patch::<Budget>("a", json!({ "spec": { "minAvailable": min } })).await;
}

#[test]
fn a_status_without_conditions_keeps_what_the_runtime_said_and_settles() {
    on_cluster(async |cluster| {
        async fn judge(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            context.status(BudgetStatus { expected_pods: 1, ..Default::default() }).await?;
            judged(&budget)
        }
        let running = at_rest(&cluster, judge).await;
        let journal = running.journal();
        assert!(condition::is_true(&conditions(&cluster).await, condition::DEGRADED), "{journal}");
        ask_for(&cluster, 1).await;
        cluster.nothing_more().await;
        assert_eq!(conditions(&cluster).await, []);
        running.stop().await.unwrap();
    });
}

#[test]
fn what_a_reconcile_says_of_degraded_is_not_overruled_either_way() {
    on_cluster(async |cluster| {
        async fn judge(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            let calm =
                condition::new(condition::DEGRADED, false, "Calm", "somebody looks after it");
            let status = BudgetStatus { conditions: vec![calm], ..Default::default() };
            context.status(status).await?;
            judged(&budget)
        }
        let running = at_rest(&cluster, judge).await;
        let said = conditions(&cluster).await;
        assert_eq!(condition::get(&said, condition::DEGRADED).unwrap().reason, "Calm");
        assert_eq!(condition::get(&said, condition::READY).unwrap().status, "False");
        running.stop().await.unwrap();
    });
}

#[test]
fn what_the_runtime_said_is_not_the_reconciles_word_where_it_is_carried_over() {
    on_cluster(async |cluster| {
        // As it is done in Go: the status as it was, and a change to it.
        async fn judge(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            let outcome = judged(&budget)?;
            let mut status = budget.status.clone().unwrap_or_default();
            status.expected_pods = 7;
            context.status(status).await?;
            Ok(outcome)
        }
        let running = at_rest(&cluster, judge).await;
        let journal = running.journal();
        assert_eq!(conditions(&cluster).await.len(), 2);
        ask_for(&cluster, 1).await;
        cluster.runs(&journal, 2).await;
        cluster.nothing_more().await;
        assert_eq!(conditions(&cluster).await, [], "{journal}");
        let object = cluster.api::<Budget>().get("a").await.unwrap();
        assert_eq!(object.status.unwrap().expected_pods, 7);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_reason_that_is_a_word_of_the_runtimes_is_the_reconciles_word_all_the_same() {
    on_cluster(async |cluster| {
        async fn judge(_: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            let error = Error::terminal("zero makes no sense");
            let conditions = vec![
                condition::not_ready(error.reason(), "ask somebody who knows"),
                condition::degraded(error.reason(), "ask somebody who knows"),
            ];
            context.status(BudgetStatus { conditions, ..Default::default() }).await?;
            Err(error)
        }
        let running = at_rest(&cluster, judge).await;
        for said in conditions(&cluster).await {
            assert_eq!(said.message, "ask somebody who knows", "{}", said.type_);
        }
        running.stop().await.unwrap();
    });
}

#[test]
fn what_a_reconcile_could_not_write_it_has_not_said() {
    on_cluster(async |mut cluster| {
        async fn judge(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            let long = "a message of which the API thinks that it is too long";
            let conditions =
                vec![condition::not_ready("TooFew", long), condition::degraded("TooFew", long)];
            let written = context.status(BudgetStatus { conditions, ..Default::default() }).await;
            assert!(written.is_err());
            judged(&budget)
        }
        let writes = AtomicUsize::new(0);
        cluster.client = faulty(&cluster.client, move |request| {
            let is_first =
                is(request, "PATCH", "/status") && writes.fetch_add(1, Ordering::Relaxed) == 0;
            is_first.then_some(Fault::Forbid)
        });
        let running = at_rest(&cluster, judge).await;
        let said = conditions(&cluster).await;
        let reasons: Vec<&str> = said.iter().map(|one| &*one.reason).collect();
        assert_eq!(reasons, ["CannotBeDone"; 2], "{}", running.journal());
        running.stop().await.unwrap();
    });
}

#[test]
fn who_says_only_that_it_is_degraded_leaves_the_rest_to_the_runtime_and_settles() {
    on_cluster(async |cluster| {
        async fn judge(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            let is_degraded = budget.spec.min_available == Some(0);
            let degraded = condition::degraded("TooFew", "zero makes no sense");
            let conditions = is_degraded.then_some(degraded).into_iter().collect();
            context.status(BudgetStatus { conditions, ..Default::default() }).await?;
            judged(&budget)
        }
        let running = at_rest(&cluster, judge).await;
        let journal = running.journal();
        let said = conditions(&cluster).await;
        assert_eq!(condition::get(&said, condition::DEGRADED).unwrap().reason, "TooFew");
        assert_eq!(condition::get(&said, condition::READY).unwrap().reason, "CannotBeDone");
        ask_for(&cluster, 1).await;
        cluster.nothing_more().await;
        assert_eq!(conditions(&cluster).await, [], "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn where_the_runtime_does_not_speak_a_status_says_what_the_reconcile_says_and_no_more() {
    on_cluster(async |cluster| {
        async fn judge(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            let judged = judged(&budget);
            let degraded = |error: &Error| condition::degraded(error.reason(), "see there");
            let conditions = judged.as_ref().err().map(degraded).into_iter().collect();
            context.status(BudgetStatus { conditions, ..Default::default() }).await?;
            judged
        }
        cluster.create(&budget("a", 0)).await;
        let running = cluster.start(Controller::new(judge)).await;
        cluster.nothing_more().await;
        assert_eq!(conditions(&cluster).await.len(), 1);
        ask_for(&cluster, 1).await;
        cluster.nothing_more().await;
        assert_eq!(conditions(&cluster).await, [], "{}", running.journal());
        running.stop().await.unwrap();
    });
}

#[test]
fn the_status_of_kubernetes_own_kinds_is_left_to_those_who_write_it() {
    on_cluster(async |cluster| {
        let fail = async |_: Arc<Deployment>, _: Context<Deployment>| -> Result<Outcome> {
            Err(Error::terminal("nothing to be done"))
        };
        let labels = json!({ "app": "web" });
        for name in ["new", "ready"] {
            let spec = json!({ "containers": [{ "name": "a", "image": "a" }] });
            cluster
                .create::<Deployment>(json!({ "metadata": { "name": name }, "spec": {
                    "selector": { "matchLabels": labels },
                    "template": { "metadata": { "labels": labels }, "spec": spec },
                }}))
                .await;
        }
        let deployments: Api<Deployment> = cluster.api();
        let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
        deployments.patch_status("ready", &<_>::default(), &Patch::Merge(ready)).await.unwrap();
        let running = cluster.start(Controller::new(fail)).await;
        cluster.until::<Event>("both are told of all the same", |all| all.len() == 2).await;
        cluster.nothing_more().await;
        let journal = running.journal();
        assert!(journal.records().iter().all(|record| record.writes.is_empty()), "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_status_is_about_the_generation_that_its_reconcile_was_given() {
    on_cluster(async |cluster| {
        async fn overtaken(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            if budget.metadata.generation == Some(1) {
                // Somebody edits the object, and a write of ours brings back what became of it.
                let all: Api<Budget> =
                    Api::namespaced(context.client().clone(), &budget.namespace().unwrap());
                let edit = json!({ "spec": { "minAvailable": 5 } });
                all.patch("a", &PatchParams::default(), &Patch::Merge(edit)).await?;
                let note = json!({ "metadata": { "annotations": { "seen": "yes" } } });
                context.merge_patch_primary(&note).await?;
            }
            let expected_pods = budget.spec.min_available.unwrap_or_default();
            context.status(BudgetStatus { expected_pods, ..Default::default() }).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&budget("a", 1)).await;
        let running = cluster.start(Controller::new(overtaken)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.nothing_more().await;
        let writes = journal.records().into_iter().flat_map(|record| record.writes.clone());
        let stamps: Vec<String> = writes
            .flat_map(|write| write.fields)
            .filter(|field| field.path == "status.observedGeneration")
            .map(|field| field.to)
            .collect();
        assert_eq!(stamps, ["1", "2"], "each generation by the run that was given it: {journal}");
        let object = cluster.api::<Budget>().get("a").await.unwrap();
        let status = object.status.unwrap();
        assert_eq!((status.observed_generation, status.expected_pods), (Some(2), 5));
        running.stop().await.unwrap();
    });
}
