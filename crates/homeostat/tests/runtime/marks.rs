//! What the runtime itself says of a primary, `Degraded` and its end, when it cannot be written at
//! once: it is said later, and nobody has to touch the object for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::condition;
use homeostat::journal::{Journal, Record};
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, Patch, PatchParams};
use homeostat::{Backoff, Context, Controller, Error, Outcome, Predicate, Result};
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::budget::{PodDisruptionBudget, budget};
use crate::cluster::{Cluster, endings, on_cluster, triggers};
use crate::faults::{Fault, faulty, is};

async fn judge(
    budget: Arc<PodDisruptionBudget>,
    _: Context<PodDisruptionBudget>,
) -> Result<Outcome> {
    match budget.spec.min_available {
        Some(0) => Err(Error::terminal("zero makes no sense")),
        _ => Ok(Outcome::Done),
    }
}

/// With all that wakes it by itself, or with changes of the generation alone.
fn judges(filtered: bool) -> Controller<PodDisruptionBudget> {
    let controller = Controller::new(judge).marks_status(true).backoff(Backoff::default().exact());
    if filtered { controller.filter(Predicate::generation_changed()) } else { controller }
}

/// Lets those writes of a status go wrong whose numbers (from 0) `which` accepts.
fn spoil(
    cluster: &mut Cluster,
    fault: Fault,
    which: impl Fn(usize) -> bool + Send + Sync + 'static,
) {
    let writes = AtomicUsize::new(0);
    cluster.client = faulty(&cluster.client, move |request| {
        let marks = is(request, "PATCH", "/status");
        (marks && which(writes.fetch_add(1, Ordering::SeqCst))).then_some(fault)
    });
}

fn is_degraded(budget: &PodDisruptionBudget) -> bool {
    let conditions = budget.status.as_ref().map(|status| &*status.conditions).unwrap_or_default();
    condition::get(conditions, "Degraded").is_some_and(|degraded| degraded.status == "True")
}

async fn until_degraded(cluster: &Cluster, is: bool) {
    let done = |budget: &PodDisruptionBudget| is_degraded(budget) == is;
    cluster.until_one("a", "the condition", done).await;
}

async fn assert_at_rest(cluster: &Cluster, journal: &Journal, runs: u64) {
    cluster.nothing_more().await;
    assert_eq!(journal.total(), runs, "it is said once and for all:\n{journal}");
}

#[test]
fn a_degraded_that_could_not_be_written_is_written_later() {
    for filtered in [false, true] {
        on_cluster(async |mut cluster| {
            spoil(&mut cluster, Fault::Unavailable, |write| write == 0);
            cluster.create(&budget("a", 0)).await;
            let running = cluster.start(judges(filtered)).await;
            let journal = running.journal();
            until_degraded(&cluster, true).await;
            let records = cluster.runs(&journal, 2).await;
            assert_eq!(endings(&records), ["terminal: zero makes no sense"; 2]);
            for next in [records[0].next.unwrap(), records[1].time] {
                cluster.assert_apart(records[0].time, next, Duration::from_secs(1));
            }
            assert_eq!((triggers(&records[1]).as_str(), records[1].next), ("retry 1", None));
            cluster.quiet().await;
            let events = cluster.list::<Event>("").await;
            assert!(events.len() == 1 && events[0].series.is_none(), "told once: {events:?}");
            assert_at_rest(&cluster, &journal, 2).await;
        });
    }
}

#[test]
fn a_degraded_that_could_not_be_taken_back_is_taken_back_later() {
    for filtered in [false, true] {
        on_cluster(async |mut cluster| {
            spoil(&mut cluster, Fault::Unavailable, |write| write == 1);
            cluster.create(&budget("a", 0)).await;
            let running = cluster.start(judges(filtered)).await;
            let journal = running.journal();
            until_degraded(&cluster, true).await;
            let fine = json!({ "spec": { "minAvailable": 1 } });
            cluster.patch::<PodDisruptionBudget>("a", fine).await;
            until_degraded(&cluster, false).await;
            let records = cluster.runs(&journal, 3).await;
            assert_eq!(endings(&records)[1..], ["done", "done"]);
            assert_at_rest(&cluster, &journal, 3).await;
            let failed =
                "controller_runtime_reconcile_errors_total{controller=\"poddisruptionbudget\"} 1";
            assert!(running.metrics().contains(failed), "a write of ours is no failure of it");
        });
    }
}

#[test]
fn a_mark_that_meets_a_change_is_written_though_the_change_wakes_nobody() {
    async fn overtaken(
        budget: Arc<PodDisruptionBudget>,
        context: Context<PodDisruptionBudget>,
    ) -> Result<Outcome> {
        if budget.labels().is_empty() {
            let namespace = budget.namespace().unwrap();
            let others =
                Api::<PodDisruptionBudget>::namespaced(context.client().clone(), &namespace);
            let patch = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
            others.patch("a", &PatchParams::default(), &patch).await?;
        }
        Err(Error::terminal("hopeless"))
    }
    on_cluster(async |cluster| {
        cluster.create(&budget("a", 1)).await;
        let controller =
            Controller::new(overtaken).marks_status(true).filter(Predicate::generation_changed());
        let running = cluster.start(controller).await;
        until_degraded(&cluster, true).await;
        assert_at_rest(&cluster, &running.journal(), 2).await;
    });
}

#[test]
fn a_mark_that_cannot_be_written_for_long_is_tried_ever_more_seldom() {
    on_cluster(async |mut cluster| {
        let seconds: &[u64] = if cluster.is_virtual { &[1, 2, 4, 8, 16, 32] } else { &[1, 2] };
        let broken = seconds.len();
        spoil(&mut cluster, Fault::Unavailable, move |write| write < broken);
        cluster.create(&budget("a", 0)).await;
        let running = cluster.start(judges(false)).await;
        until_degraded(&cluster, true).await;
        let records = cluster.runs(&running.journal(), seconds.len() + 1).await;
        for (pair, seconds) in records.windows(2).zip(seconds) {
            cluster.assert_apart(pair[0].time, pair[1].time, Duration::from_secs(*seconds));
        }
        assert_at_rest(&cluster, &running.journal(), seconds.len() as u64 + 1).await;
    });
}

#[test]
fn a_mark_that_the_api_refuses_is_not_tried_again() {
    on_cluster(async |mut cluster| {
        spoil(&mut cluster, Fault::Forbid, |_| true);
        cluster.create(&budget("a", 0)).await;
        let running = cluster.start(judges(false)).await;
        cluster.runs(&running.journal(), 1).await;
        assert_at_rest(&cluster, &running.journal(), 1).await;
    });
}

#[test]
fn a_key_that_is_given_up_shows_it_later_and_is_told_of_once() {
    async fn fail(_: Arc<PodDisruptionBudget>, _: Context<PodDisruptionBudget>) -> Result<Outcome> {
        Err(Error::transient("out of order"))
    }
    on_cluster(async |mut cluster| {
        spoil(&mut cluster, Fault::Unavailable, |write| write < 2);
        cluster.create(&budget("a", 1)).await;
        let told = Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        let controller = Controller::new(fail).marks_status(true).give_up_after(3, move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let running = cluster.start(controller).await;
        until_degraded(&cluster, true).await;
        assert_at_rest(&cluster, &running.journal(), 5).await;
        let ended = |record: &Arc<Record>| record.result.to_string();
        let ends: Vec<_> = running.journal().records().iter().map(ended).collect();
        assert!(ends[2..].iter().all(|end| end == "terminal: out of order"), "{ends:?}");
        assert_eq!(told.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_key_that_is_given_up_is_told_of_whatever_could_not_be_written_before() {
    on_cluster(async |mut cluster| {
        // What is said of the first run, and what of the giving up.
        spoil(&mut cluster, Fault::Unavailable, |write| matches!(write, 0 | 1));
        cluster.create(&budget("a", 0)).await;
        let (told, runs) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let count = told.clone();
        let reconcile = move |_: Arc<PodDisruptionBudget>, _: Context<PodDisruptionBudget>| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            async move {
                match run {
                    0 => Err(Error::terminal("hopeless")),
                    _ => Err(Error::transient("out of order")),
                }
            }
        };
        let controller =
            Controller::new(reconcile).marks_status(true).give_up_after(2, move |_, _| {
                count.fetch_add(1, Ordering::SeqCst);
            });
        let running = cluster.start(controller).await;
        until_degraded(&cluster, true).await;
        assert_at_rest(&cluster, &running.journal(), 4).await;
        assert_eq!(told.load(Ordering::SeqCst), 1);
        // It has all its tries again, and is told of again.
        let edit = json!({ "spec": { "minAvailable": 1 } });
        cluster.patch::<PodDisruptionBudget>("a", edit).await;
        assert_at_rest(&cluster, &running.journal(), 6).await;
        assert_eq!(told.load(Ordering::SeqCst), 2);
    });
}
