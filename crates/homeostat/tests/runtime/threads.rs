//! On several threads, as every program runs: one key is never with two workers, and nothing that
//! happens to it is forgotten. The other tests have one thread, and so one order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, Patch, PatchParams};
use homeostat::queue::{Backoff, Queue, Rules};
use homeostat::{Context, Controller, Error, Key, Outcome, Trigger};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::Notify;

use crate::cluster::{config, on_threads};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is known of one key from outside.
#[derive(Default)]
struct Watched {
    /// Whether somebody works on it.
    busy: AtomicBool,
    /// How often something happened to it.
    happened: AtomicU64,
    /// How much of that the last work on it saw when it began.
    seen: AtomicU64,
}

impl Watched {
    /// Takes it; whoever takes it meanwhile is one too many.
    fn enter(&self) {
        assert!(!self.busy.swap(true, Ordering::SeqCst), "a key is with two workers");
        self.seen.store(self.happened.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    fn leave(&self) {
        self.busy.store(false, Ordering::SeqCst);
    }

    fn is_up_to_date(&self) -> bool {
        self.seen.load(Ordering::SeqCst) == self.happened.load(Ordering::SeqCst)
    }
}

struct Watch {
    keys: Vec<(Key, Watched)>,
    changed: Notify,
}

impl Watch {
    fn of(count: usize) -> Arc<Self> {
        let key = |n: usize| Key::namespaced(format!("ns-{}", n % 7), n.to_string());
        let keys = (0..count).map(|n| (key(n), Watched::default())).collect();
        Arc::new(Self { keys, changed: Notify::new() })
    }

    fn get(&self, key: &Key) -> &Watched {
        &self.keys[key.name().parse::<usize>().unwrap()].1
    }

    /// Waits until the last thing that happened to each key was seen.
    async fn all_seen(&self) {
        while !self.keys.iter().all(|(_, watched)| watched.is_up_to_date()) {
            self.changed.notified().await;
        }
    }
}

/// Takes keys, some of which fail and some of which want to come back.
async fn work(queue: Queue<Key>, watch: Arc<Watch>) {
    while let Some(item) = queue.get().await {
        let watched = watch.get(&item.key);
        watched.enter();
        let turn = watched.seen.load(Ordering::SeqCst);
        // Most have nothing to wait for: the queue itself lets others have the thread.
        if turn.is_multiple_of(3) {
            tokio::task::yield_now().await;
        }
        match turn % 11 {
            0 => drop(queue.add_rate_limited(item.key.clone())),
            1 => queue.add_after(item.key.clone(), Duration::from_micros(turn % 977)),
            _ => queue.forget(&item.key),
        }
        watched.leave();
        queue.done(&item.key);
        watch.changed.notify_one();
    }
}

#[test]
fn a_queue_hands_every_key_to_one_worker_at_a_time_and_forgets_none() {
    on_threads(async |cluster| {
        let millisecond = Duration::from_millis(1);
        let backoff = Backoff { first: millisecond, max: 3 * millisecond, ..Backoff::default() };
        let rules = Rules { backoff, ..Rules::by_namespace() };
        let queue = Queue::with_rules(cluster.env.clone(), rules);
        let watch = Watch::of(1000);
        let workers: Vec<_> =
            (0..64).map(|_| tokio::spawn(work(queue.clone(), Arc::clone(&watch)))).collect();
        let adders = (0..8_usize).map(|adder| {
            let (queue, watch) = (queue.clone(), Arc::clone(&watch));
            tokio::spawn(async move {
                for round in 0..20 {
                    for step in 0..1000 {
                        // Each in an order of its own.
                        let (key, watched) = &watch.keys[(step * (2 * adder + 1) + round) % 1000];
                        watched.happened.fetch_add(1, Ordering::SeqCst);
                        match (step + adder) % 5 {
                            0 => queue.add_after(key.clone(), Duration::from_micros(step as u64)),
                            1 => queue.add_low(key.clone(), Trigger::Initial),
                            _ => queue.add(key.clone(), Trigger::Requeued),
                        }
                    }
                    tokio::task::yield_now().await;
                }
            })
        });
        for adder in join_all(adders).await {
            adder.unwrap();
        }
        let seen = cluster.env.timeout(PATIENCE, watch.all_seen()).await;
        assert!(seen.is_ok(), "a key was forgotten: {} ready", queue.len());
        queue.shut_down();
        assert!(cluster.env.timeout(PATIENCE, queue.drained()).await.is_ok());
        for worker in workers {
            worker.await.unwrap();
        }
    });
}

#[test]
fn a_controller_sees_the_last_change_of_every_object_and_none_twice_at_once() {
    on_threads(async |cluster| {
        let watch = Watch::of(100);
        for (key, _) in &watch.keys {
            cluster.create(&config(key.name(), "0")).await;
        }
        let looks = Arc::clone(&watch);
        let look = move |config: Arc<ConfigMap>, context: Context<ConfigMap>| {
            let watch = Arc::clone(&looks);
            async move {
                let watched = watch.get(context.key());
                assert!(!watched.busy.swap(true, Ordering::SeqCst), "two at once");
                let value: u64 = config.data.as_ref().unwrap()["value"].parse().unwrap();
                tokio::task::yield_now().await;
                watched.seen.fetch_max(value, Ordering::SeqCst);
                watched.leave();
                watch.changed.notify_one();
                if value % 5 == 2 {
                    return Err(Error::transient("a bad number"));
                }
                Ok(Outcome::Done)
            }
        };
        let running = cluster.start(Controller::new(look).concurrency(32)).await;
        let writers = (0..4).map(|writer| {
            let (client, namespace) = (cluster.client.clone(), cluster.namespace.clone());
            let watch = Arc::clone(&watch);
            tokio::spawn(async move {
                let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
                for (key, watched) in watch.keys.iter().skip(writer).step_by(4) {
                    for value in 1..=10_u64 {
                        let patch = Patch::Merge(json!({ "data": { "value": value.to_string() } }));
                        api.patch(key.name(), &PatchParams::default(), &patch).await.unwrap();
                        watched.happened.store(value, Ordering::SeqCst);
                    }
                }
            })
        });
        for writer in join_all(writers).await {
            writer.unwrap();
        }
        let seen = cluster.env.timeout(PATIENCE, watch.all_seen()).await;
        assert!(seen.is_ok(), "the last change of an object was not seen");
        let twice = |record: &Arc<homeostat::journal::Record>| {
            record.result.to_string().contains("two at once")
        };
        assert!(!running.journal().records().iter().any(twice), "{}", running.journal());
        let names = running.caches().informers()[0].list::<ConfigMap>(Some(&cluster.namespace));
        assert!(names.iter().filter(|one| one.name_any().parse::<u8>().is_ok()).count() == 100);
        running.stop().await.unwrap();
    });
}
