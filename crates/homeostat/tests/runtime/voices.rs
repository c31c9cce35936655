//! What the runtime says of a primary for one of several controllers of its kind: each takes back its
//! own words alone, and no two of them take turns for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homeostat::condition::{self, Condition, DEGRADED, READY};
use homeostat::{Context, Controller, Error, Outcome, Predicate, Result, Running};
use serde_json::json;

use crate::budget::{BudgetStatus, PodDisruptionBudget, budget};
use crate::cluster::{Cluster, idle, on_cluster};

type Budget = PodDisruptionBudget;

/// No story of these tests takes more runs of all controllers together.
const MOST_RUNS: u64 = 20;

fn marking(controller: Controller<Budget>, name: &str, cluster: &Cluster) -> Controller<Budget> {
    controller.named(name).marks_status(true).namespace(&cluster.namespace)
}

/// One that is content with at least so many.
fn judging(name: &str, least: i64, cluster: &Cluster) -> Controller<Budget> {
    let judge = move |budget: Arc<Budget>, _: Context<Budget>| async move {
        match budget.spec.min_available {
            Some(min) if min < least => Err(Error::terminal(format!("less than {least}"))),
            _ => Ok(Outcome::Done),
        }
    };
    marking(Controller::new(judge), name, cluster)
}

async fn at_rest(cluster: &Cluster, running: &Running) {
    cluster.nothing_more().await;
    assert!(running.journal().total() <= MOST_RUNS, "{}", running.journal());
}

async fn start<const N: usize>(cluster: &Cluster, all: [Controller<Budget>; N]) -> Running {
    let manager = all.into_iter().fold(cluster.manager(), homeostat::Manager::with);
    let running = cluster.start_manager(manager).await;
    at_rest(cluster, &running).await;
    running
}

async fn conditions(cluster: &Cluster) -> Vec<Condition> {
    let object = cluster.api::<Budget>().get("a").await.unwrap();
    object.status.map(|status| status.conditions).unwrap_or_default()
}

/// What is said of the budget in which words.
async fn said(cluster: &Cluster) -> Vec<(String, String, String)> {
    let all = conditions(cluster).await.into_iter();
    all.map(|one| (one.type_, one.status, one.message)).collect()
}

async fn ask_for(cluster: &Cluster, running: &Running, min: i64) {
    cluster.patch::<Budget>("a", json!({ "spec": { "minAvailable": min } })).await;
    at_rest(cluster, running).await;
}

/// Degraded and not ready, in these words.
fn bad(words: &str) -> Vec<(String, String, String)> {
    let one = |type_: &str, status: &str| (type_.to_owned(), status.to_owned(), words.to_owned());
    vec![one(READY, "False"), one(DEGRADED, "True")]
}

#[test]
fn what_one_controller_says_another_of_the_kind_does_not_take_back() {
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 1)).await;
        let both = [judging("dns", 5, &cluster), judging("backup", 0, &cluster)];
        let running = start(&cluster, both).await;
        assert_eq!(said(&cluster).await, bad("less than 5 (controller dns)"));
        ask_for(&cluster, &running, 7).await;
        assert_eq!(said(&cluster).await, []);
        running.stop().await.unwrap();
    });
}

#[test]
fn of_two_controllers_with_something_to_say_the_first_is_heard_and_then_the_other() {
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 7)).await;
        let both = [judging("dns", 5, &cluster), judging("backup", 3, &cluster)];
        let running = start(&cluster, both).await;
        ask_for(&cluster, &running, 4).await;
        assert_eq!(said(&cluster).await, bad("less than 5 (controller dns)"));
        // Both have something to say. Who comes first is for the two of them to find out.
        ask_for(&cluster, &running, 2).await;
        let of_both = ["less than 5 (controller dns)", "less than 3 (controller backup)"].map(bad);
        let now = said(&cluster).await;
        assert!(of_both.contains(&now), "{now:?}");
        ask_for(&cluster, &running, 4).await;
        assert_eq!(said(&cluster).await, bad("less than 5 (controller dns)"));
        ask_for(&cluster, &running, 6).await;
        assert_eq!(said(&cluster).await, []);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_status_that_one_controller_writes_keeps_what_the_runtime_said_for_another() {
    on_cluster(async |cluster| {
        // As it is done in Go: the status as it was, and a change to it.
        async fn carry(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            let mut status = budget.status.clone().unwrap_or_default();
            status.expected_pods = 7;
            context.status(status).await?;
            Ok(Outcome::Done)
        }
        async fn anew(_: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            context.status(BudgetStatus { expected_pods: 7, ..Default::default() }).await?;
            Ok(Outcome::Done)
        }
        for writer in [Controller::new(carry), Controller::new(anew)] {
            cluster.create(&budget("a", 1)).await;
            let both = [judging("dns", 5, &cluster), marking(writer, "counter", &cluster)];
            let running = start(&cluster, both).await;
            assert_eq!(said(&cluster).await, bad("less than 5 (controller dns)"));
            ask_for(&cluster, &running, 7).await;
            assert_eq!(said(&cluster).await, []);
            running.stop().await.unwrap();
            cluster.api::<Budget>().delete("a", &<_>::default()).await.unwrap();
        }
    });
}

#[test]
fn what_the_runtime_said_before_a_restart_is_taken_back_after_it() {
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 1)).await;
        let running = start(&cluster, [judging("dns", 5, &cluster)]).await;
        assert_eq!(said(&cluster).await, bad("less than 5 (controller dns)"));
        running.stop().await.unwrap();
        // Its author has learnt to do with less.
        let running = start(&cluster, [judging("dns", 1, &cluster)]).await;
        assert_eq!(said(&cluster).await, []);
        running.stop().await.unwrap();
    });
}

#[test]
fn what_a_controller_of_a_former_name_said_is_of_a_former_generation_after_an_edit() {
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 1)).await;
        let running = start(&cluster, [judging("old-name", 5, &cluster)]).await;
        running.stop().await.unwrap();
        let running = start(&cluster, [judging("new-name", 5, &cluster)]).await;
        assert_eq!(said(&cluster).await, bad("less than 5 (controller old-name)"));
        ask_for(&cluster, &running, 2).await;
        assert_eq!(said(&cluster).await, bad("less than 5 (controller new-name)"));
        running.stop().await.unwrap();
        let running = start(&cluster, [judging("third-name", 0, &cluster)]).await;
        ask_for(&cluster, &running, 3).await;
        assert_eq!(said(&cluster).await, []);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_reconcile_that_repeats_a_reason_of_the_runtimes_in_words_of_its_own_keeps_its_words() {
    on_cluster(async |cluster| {
        // It says so once, and then finds it said.
        async fn judge(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            let error = Error::terminal("zero makes no sense");
            let mut status = budget.status.clone().unwrap_or_default();
            if !condition::is_true(&status.conditions, DEGRADED) {
                status.conditions = vec![
                    condition::not_ready(error.reason(), "ask somebody"),
                    condition::degraded(error.reason(), "ask somebody"),
                ];
            }
            context.status(status).await?;
            Err(error)
        }
        cluster.create(&budget("a", 0)).await;
        let running = start(&cluster, [marking(Controller::new(judge), "dns", &cluster)]).await;
        assert_eq!(said(&cluster).await, bad("ask somebody"));
        running.stop().await.unwrap();
    });
}

#[test]
fn what_the_runtime_said_stays_the_runtimes_where_it_is_carried_over_with_another_stamp() {
    on_cluster(async |cluster| {
        async fn judge(budget: Arc<Budget>, context: Context<Budget>) -> Result<Outcome> {
            if budget.spec.min_available == Some(0) {
                return Err(Error::terminal("zero makes no sense"));
            }
            let mut status = budget.status.clone().unwrap_or_default();
            for condition in &mut status.conditions {
                condition.observed_generation = budget.metadata.generation;
            }
            context.status(status).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&budget("a", 0)).await;
        let judge = Controller::new(judge).filter(Predicate::generation_changed());
        let running = start(&cluster, [marking(judge, "dns", &cluster)]).await;
        assert_eq!(said(&cluster).await, bad("zero makes no sense (controller dns)"));
        ask_for(&cluster, &running, 1).await;
        assert_eq!(said(&cluster).await, []);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_controller_that_leaves_the_words_to_another_does_not_wipe_them_with_a_status_of_its_own() {
    on_cluster(async |cluster| {
        let runs = Arc::new(AtomicU64::new(0));
        let count = move |_: Arc<Budget>, context: Context<Budget>| {
            // A fight without end would leave this test without one.
            let goes_on = runs.fetch_add(1, Ordering::SeqCst) < MOST_RUNS;
            async move {
                if goes_on {
                    let status = BudgetStatus { expected_pods: 7, ..Default::default() };
                    context.status(status).await?;
                }
                Ok(Outcome::Done)
            }
        };
        cluster.create(&budget("a", 1)).await;
        let silent = marking(Controller::new(count), "counter", &cluster).marks_status(false);
        let running = start(&cluster, [judging("dns", 5, &cluster), silent]).await;
        assert_eq!(said(&cluster).await, bad("less than 5 (controller dns)"));
        let status = cluster.api::<Budget>().get("a").await.unwrap().status.unwrap();
        assert_eq!(status.expected_pods, 7);
        ask_for(&cluster, &running, 7).await;
        assert_eq!(said(&cluster).await, []);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_controller_that_leaves_the_status_alone_says_nothing_there() {
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 1)).await;
        let both = [
            judging("dns", 5, &cluster).marks_status(false),
            marking(Controller::new(idle), "backup", &cluster),
        ];
        let running = start(&cluster, both).await;
        assert_eq!(said(&cluster).await, []);
        running.stop().await.unwrap();
    });
}
