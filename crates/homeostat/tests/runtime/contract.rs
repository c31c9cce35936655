//! The reconcile contract, row by row.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::journal::Record;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, Patch, PatchParams};
use homeostat::kube::core::Status;
use homeostat::{Backoff, Context, Controller, Error, Outcome, Result, Trigger};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::budget::{BudgetStatus, PodDisruptionBudget, budget};
use crate::cluster::{config, endings, on_cluster, triggers};

/// A controller whose n-th run (from 0) gives what `answer` says.
pub fn scripted(
    answer: impl Fn(usize) -> Result<Outcome> + Send + Sync + 'static,
) -> Controller<ConfigMap> {
    let (answer, runs) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    let reconcile = move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
        let (answer, run) = (answer.clone(), runs.fetch_add(1, Ordering::SeqCst));
        async move { answer(run) }
    };
    Controller::new(reconcile).backoff(Backoff::default().exact())
}

pub fn failure() -> Result<Outcome> {
    Err(Error::transient("out of order"))
}

#[test]
fn done_waits_for_an_event() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(scripted(|_| Ok(Outcome::Done))).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 1);
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, 2).await;
        assert_eq!(triggers(&records[0]), "initial");
        assert_eq!(triggers(&records[1]), format!("ConfigMap {}/a updated", cluster.namespace));
        running.stop().await.unwrap();
    });
}

#[test]
fn requeue_after_runs_at_that_time() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let delay = Duration::from_secs(2);
        let running = cluster.start(scripted(move |_| Ok(Outcome::RequeueAfter(delay)))).await;
        let records = cluster.runs(&running.journal(), 3).await;
        cluster.assert_apart(records[0].time, records[1].time, delay);
        cluster.assert_apart(records[1].time, records[2].time, delay);
        assert_eq!(triggers(&records[1]), "timer");
        cluster.assert_apart(records[0].time, records[0].next.unwrap(), delay);
    });
}

#[test]
fn requeue_at_runs_at_that_time_and_at_once_when_it_has_passed() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let now = cluster.env.now();
        let due = now + Duration::from_secs(3);
        let answers = [due, now - Duration::from_secs(60)];
        let running = cluster
            .start(scripted(move |run| {
                Ok(answers.get(run).map_or(Outcome::Done, |time| Outcome::RequeueAt(*time)))
            }))
            .await;
        let records = cluster.runs(&running.journal(), 3).await;
        cluster.assert_apart(due, records[1].time, Duration::ZERO);
        cluster.assert_apart(records[1].time, records[2].time, Duration::ZERO);
        cluster.nothing_more().await;
        assert_eq!(running.journal().total(), 3);
    });
}

#[test]
fn an_event_consumes_a_pending_requeue() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let answer = |run| {
            Ok(if run == 0 { Outcome::RequeueAfter(Duration::from_secs(2)) } else { Outcome::Done })
        };
        let running = cluster.start(scripted(answer)).await;
        cluster.runs(&running.journal(), 1).await;
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        cluster.runs(&running.journal(), 2).await;
        cluster.nothing_more().await;
        assert_eq!(running.journal().total(), 2);
    });
}

#[test]
fn requeue_goes_behind_the_keys_already_waiting() {
    on_cluster(async |cluster| {
        for name in ["a", "b", "c"] {
            cluster.create(&config(name, "1")).await;
        }
        let answer = |run| Ok(if run == 0 { Outcome::Requeue } else { Outcome::Done });
        let running = cluster.start(scripted(answer).concurrency(1)).await;
        let records = cluster.runs(&running.journal(), 4).await;
        let order: Vec<&str> = records.iter().map(|record| record.key.name()).collect();
        assert_eq!(order, ["a", "b", "c", "a"]);
        assert_eq!(triggers(&records[3]), "requeued");
    });
}

#[test]
fn requeue_goes_before_the_keys_that_come_later() {
    /// Takes its time, in which the next of `a`, `b`, `c` comes.
    async fn beget(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
        let next = match (config.name_any().as_str(), context.triggers()) {
            ("a", [Trigger::Requeued]) | ("c", _) => return Ok(Outcome::Done),
            ("a", _) => "b",
            _ => "c",
        };
        context.create(crate::cluster::config(next, "1")).await?;
        context.env().sleep(Duration::from_secs(1)).await;
        Ok(if next == "b" { Outcome::Requeue } else { Outcome::Done })
    }
    on_cluster(async |cluster| {
        let running = cluster.start(Controller::new(beget).concurrency(1)).await;
        cluster.create(&config("a", "1")).await;
        let records = cluster.runs(&running.journal(), 4).await;
        let order: Vec<&str> = records.iter().map(|record| record.key.name()).collect();
        assert_eq!(order, ["a", "b", "a", "c"]);
    });
}

#[test]
fn failures_back_off_from_one_second_to_five_minutes_and_success_forgets_them() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let rows: Vec<u64> = if cluster.is_virtual {
            vec![1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
        } else {
            vec![1, 2]
        };
        let good = rows.len();
        let answer = move |run| if run == good { Ok(Outcome::Requeue) } else { failure() };
        let running = cluster.start(scripted(answer)).await;
        let records = cluster.runs(&running.journal(), rows.len() + 3).await;
        for (pair, seconds) in records.windows(2).zip(&rows) {
            cluster.assert_apart(pair[0].time, pair[1].time, Duration::from_secs(*seconds));
        }
        assert_eq!(triggers(&records[1]), "retry 1");
        assert_eq!(records[0].result.to_string(), "failed: out of order");
        let after = &records[rows.len() + 1..];
        cluster.assert_apart(after[0].time, after[1].time, Duration::from_secs(1));
    });
}

#[test]
fn jitter_shortens_a_backoff_and_a_controller_may_choose_its_own() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let first = Duration::from_secs(4);
        let backoff = Backoff { first, jitter: 0.5, ..Backoff::default() };
        let running = cluster.start(scripted(|_| failure()).backoff(backoff)).await;
        let records = cluster.runs(&running.journal(), 2).await;
        let waited = records[1].time.duration_since(records[0].time).as_secs_f64();
        assert!((2.0..=4.1).contains(&waited), "{waited}");
    });
}

#[test]
fn keys_that_fail_together_are_not_retried_together_unless_told_so() {
    on_cluster(async |cluster| {
        for number in 0..10 {
            cluster.create(&config(&format!("key-{number}"), "1")).await;
        }
        let fail = async |_: Arc<ConfigMap>, _: Context<ConfigMap>| failure();
        let running = cluster.start(Controller::new(fail).concurrency(10)).await;
        let ten = |all: &[Arc<Record>]| {
            all.iter().filter(|record| record.key.name().starts_with("key-")).count() >= 10
        };
        let mut records = cluster.until_recorded(&running.journal(), ten).await;
        records.retain(|record| record.key.name().starts_with("key-"));
        let delay = |record: &Arc<Record>| record.next.unwrap().duration_since(record.time);
        let delays: BTreeSet<i128> = records[..10].iter().map(|r| delay(r).as_millis()).collect();
        assert!(delays.len() > 5, "{delays:?}");
        assert!(delays.iter().all(|delay| (890..=1100).contains(delay)), "{delays:?}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_terminal_error_waits_for_a_change_and_forgets_the_failures() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let answer = |run| match run {
            2 => Err(Error::terminal("hopeless")),
            _ => failure(),
        };
        let running = cluster.start(scripted(answer)).await;
        let journal = running.journal();
        cluster.runs(&journal, 3).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 3);
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        let records = cluster.runs(&journal, 5).await;
        assert_eq!((&*endings(&records)[2], records[2].next), ("terminal: hopeless", None));
        cluster.assert_apart(records[3].time, records[4].time, Duration::from_secs(1));
    });
}

#[test]
fn a_conflict_is_a_quick_retry_and_no_failure() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let answer = |run| match run {
            0..3 => Err(Error::Stale("behind".to_owned())),
            3 => failure(),
            _ => Ok(Outcome::Done),
        };
        let running = cluster.start(scripted(answer)).await;
        let records = cluster.runs(&running.journal(), 5).await;
        for (pair, millis) in records.windows(2).zip([10, 20, 40, 1000]) {
            cluster.assert_apart(pair[0].time, pair[1].time, Duration::from_millis(millis));
        }
        assert_eq!(triggers(&records[1]), "conflict");
        assert_eq!(endings(&records)[0], "conflict: the cache is behind: behind");
    });
}

#[test]
fn a_conflict_in_words_of_ones_own_is_a_conflict() {
    #[derive(Debug, thiserror::Error)]
    enum Trouble {
        #[error("no state was found")]
        Read(#[from] Error),
        #[error("no copy was made")]
        Write(#[from] homeostat::kube::Error),
    }
    let conflict = || Status::failure("it has changed", "Conflict").with_code(409).boxed();
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let answer = move |run| match run {
            0 => Err(Error::transient(Trouble::Read(Error::Stale("behind".to_owned())))),
            1 => Err(Error::transient(Trouble::Write(homeostat::kube::Error::Api(conflict())))),
            // What nothing but an edit can mend, unless somebody says otherwise.
            2 => Err(Error::transient(Trouble::Read(Error::terminal("hopeless")))),
            _ => Ok(Outcome::Done),
        };
        let running = cluster.start(scripted(answer)).await;
        let records = cluster.runs(&running.journal(), 4).await;
        for (pair, millis) in records.windows(2).zip([10, 20, 1000]) {
            cluster.assert_apart(pair[0].time, pair[1].time, Duration::from_millis(millis));
        }
        let ends = endings(&records);
        assert_eq!(ends[0], "conflict: no state was found: the cache is behind: behind");
        assert_eq!(ends[1], "conflict: no copy was made: it has changed");
        assert_eq!(ends[2], "failed: no state was found: hopeless");
    });
}

#[test]
fn a_lease_that_somebody_else_has_lost_is_a_failure_like_any_other() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let answer = |run| match run {
            0 => Err(Error::NotLeader),
            _ => Ok(Outcome::Done),
        };
        let running = cluster.start(scripted(answer)).await;
        let records = cluster.runs(&running.journal(), 2).await;
        assert_eq!(endings(&records), ["failed: this process is not the leader", "done"]);
        cluster.assert_apart(records[0].time, records[1].time, Duration::from_secs(1));
    });
}

#[test]
fn a_write_to_what_somebody_changed_meanwhile_is_such_a_conflict() {
    on_cluster(async |cluster| {
        async fn overtaken(
            budget: Arc<PodDisruptionBudget>,
            context: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            if budget.labels().is_empty() {
                let namespace = budget.namespace().unwrap();
                let others: Api<PodDisruptionBudget> =
                    Api::namespaced(context.client().clone(), &namespace);
                let patch = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
                others.patch("a", &PatchParams::default(), &patch).await?;
            }
            context.status(BudgetStatus { expected_pods: 1, ..Default::default() }).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&budget("a", 1)).await;
        let running = cluster.start(Controller::new(overtaken)).await;
        let records = cluster.runs(&running.journal(), 2).await;
        let ends = endings(&records);
        assert!(ends[0].starts_with("conflict: ") && ends[1] == "done", "{}", running.journal());
    });
}

#[test]
fn endless_conflicts_become_failures() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(scripted(|_| Err(Error::Stale("behind".to_owned())))).await;
        let records = cluster.runs(&running.journal(), 7).await;
        assert!(endings(&records[..5]).iter().all(|ending| ending.starts_with("conflict")));
        assert!(endings(&records)[5].starts_with("failed"));
        cluster.assert_apart(records[5].time, records[6].time, Duration::from_secs(1));
    });
}
