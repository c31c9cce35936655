//! Garbage collection, the end of namespaces and the counting of quotas, for every kind the API
//! serves.
//!
//! [`monitor`] follows all kinds and keeps the [`graph`]; [`decide`] says what becomes of one
//! object; [`collect`] carries it out. Owners are compared by uid, and an owner the graph has not
//! seen counts as absent only after the API was asked; so do dependents, where their owner waits for
//! them ([`unseen`]).

mod collect;
mod decide;
mod graph;
mod monitor;
mod unseen;

use std::sync::Arc;

use homeostat::cache::Caches;
use homeostat::event::Recorder;
use homeostat::kube::Client;
use homeostat::queue::Queue;
use homeostat::{Env, Result};
use tokio::task::JoinSet;

use crate::quota::{self, Recounts};

pub(crate) use self::graph::{Node, Uid};
pub(crate) use self::monitor::Monitor;

/// How many objects are looked at at once.
const WORKERS: usize = 4;

/// What the collector needs of its surroundings.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) client: Client,
    pub(crate) env: Env,
    pub(crate) caches: Caches,
    pub(crate) recorder: Recorder,
}

/// The running collector; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Collector {
    objects: Queue<Uid>,
    namespaces: Queue<Arc<str>>,
    recounts: Recounts,
    tasks: JoinSet<()>,
}

impl Collector {
    /// Finds out which kinds there are, follows them all, and returns when their caches are in
    /// sync.
    pub(crate) async fn start(surroundings: Surroundings) -> Result<Self> {
        let objects = Queue::new(surroundings.env.clone());
        let namespaces = Queue::new(surroundings.env.clone());
        let recounts = Recounts::new(surroundings.env.clone());
        let monitor =
            Monitor::start(&surroundings, objects.clone(), namespaces.clone(), recounts.clone())
                .await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&monitor).follow_definitions());
        for _ in 0..WORKERS {
            let (queue, monitor) = (objects.clone(), Arc::clone(&monitor));
            let surroundings = surroundings.clone();
            tasks.spawn(async move {
                while let Some(item) = queue.get().await {
                    match collect::collect(&surroundings, &monitor, &item.key).await {
                        Ok(()) => queue.forget(&item.key),
                        Err(error) => {
                            tracing::debug!(uid = %item.key, %error, "will be looked at again");
                            queue.add_rate_limited(item.key.clone());
                        }
                    }
                    queue.done(&item.key);
                }
            });
        }
        tasks.spawn(count_quotas(surroundings.clone(), Arc::clone(&monitor), recounts.clone()));
        let (queue, client, env) = (namespaces.clone(), surroundings.client, surroundings.env);
        tasks.spawn(async move {
            while let Some(item) = queue.get().await {
                match crate::namespace::finish(&client, &env, &monitor, &item.key).await {
                    Ok(()) => queue.forget(&item.key),
                    Err(error) => {
                        tracing::debug!(namespace = %item.key, %error, "will be tried again");
                        queue.add_rate_limited(item.key.clone());
                    }
                }
                queue.done(&item.key);
            }
        });
        Ok(Self { objects, namespaces, recounts, tasks })
    }

    /// Stops in order: what is being looked at is finished.
    pub(crate) async fn stop(mut self) {
        self.objects.shut_down_now();
        self.namespaces.shut_down_now();
        self.recounts.namespaces.shut_down_now();
        self.objects.drained().await;
        self.namespaces.drained().await;
        self.recounts.namespaces.drained().await;
        self.tasks.shutdown().await;
    }
}

/// Counts quotas anew, one namespace at a time.
async fn count_quotas(surroundings: Surroundings, monitor: Arc<Monitor>, recounts: Recounts) {
    let Surroundings { client, env, .. } = surroundings;
    while let Some(item) = recounts.namespaces.get().await {
        match quota::recount(&client, &env, &monitor, &recounts, &item.key).await {
            Ok(()) => recounts.namespaces.forget(&item.key),
            Err(error) => {
                tracing::debug!(namespace = %item.key, %error, "will be counted again");
                recounts.namespaces.add_rate_limited(item.key.clone());
            }
        }
        recounts.namespaces.done(&item.key);
    }
}
