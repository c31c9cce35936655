//! From a built controller to a running one: its caches, its queue, its workers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::mapper::Mapper;
use super::source::{Finder, Related, Role};
use super::worker::Worker;
use super::{Controller, source};
use crate::Env;
use crate::cache::{Caches, Informer, Scope};
use crate::client;
use crate::context::{Memories, Shared};
use crate::event::Recorder;
use crate::hotloop::Detector;
use crate::journal::Journal;
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::lease::Fence;
use crate::metrics::{self, Metrics};
use crate::queue::Queue;
use crate::trigger::Trigger;

/// What a manager gives its controllers.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) client: kube::Client,
    pub(crate) env: Env,
    pub(crate) caches: Caches,
    pub(crate) recorder: Recorder,
    pub(crate) journal: Journal,
    pub(crate) fence: Fence,
    pub(crate) metrics: Metrics,
    pub(crate) stop: CancellationToken,
}

/// A controller whose caches are starting and whose workers wait for them.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) name: Arc<str>,
    pub(crate) informers: Vec<Informer>,
    pub(crate) queue: Queue<Key>,
    pub(crate) workers: JoinSet<()>,
}

impl Launched {
    /// What it takes to follow the lease.
    pub(crate) fn follower(&self) -> Follower {
        Follower { primaries: self.informers.first().cloned(), queue: self.queue.clone() }
    }
}

/// A controller as the lease sees it: something that works or rests.
pub(crate) struct Follower {
    primaries: Option<Informer>,
    queue: Queue<Key>,
}

impl Follower {
    /// Works: on everything, if another process may have led since it last did.
    pub(crate) fn lead(&self, again: bool) {
        for entry in self.primaries.iter().filter(|_| again).flat_map(Informer::entries) {
            self.queue.add_low(entry.header.key.clone(), Trigger::Initial);
        }
        self.queue.resume();
    }

    /// Rests, and takes note of what happens.
    pub(crate) fn rest(&self) {
        self.queue.pause();
    }
}

/// A controller of any kind.
pub(crate) trait Launch: Send {
    /// Its name.
    fn name(&self) -> &str;
    /// Registers its sources and starts its workers.
    fn launch(self: Box<Self>, world: &World) -> Launched;
}

impl<K: Object> Launch for Controller<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn launch(self: Box<Self>, world: &World) -> Launched {
        let Self { name, reconcile, related, sources, filter, background, .. } = *self;
        let Self { namespace, labels, give_up, .. } = *self;
        let (timeout, request_limit) = (self.timeout, self.request_timeout);
        let (name, kind): (Arc<str>, _) = (Arc::from(name), Kind::of::<K>());
        let queue = Queue::with_rules(world.env.clone(), self.rules);
        if world.fence.has_lease() {
            queue.pause();
        }
        let memories = Arc::new(Memories::default());

        let labelled = labels.as_ref().map(|_| kind.clone());
        let labelled = labelled.filter(|kind| related.iter().all(|other| other.kind != *kind));
        let primaries = world.caches.informer(
            kind.clone(),
            Scope { namespace: namespace.clone(), labels, ..Scope::default() },
        );
        primaries.on_event(source::primary(
            kind.clone(),
            queue.clone(),
            filter,
            background,
            memories.clone(),
        ));
        let mut informers = vec![primaries.clone()];
        let mut by_kind = BTreeMap::from([(kind.clone(), primaries.clone())]);
        let mut workers = JoinSet::new();
        for Related { kind: other, role, filter } in related {
            let scope = Scope { namespace: namespace.clone(), ..Scope::default() };
            let informer = world.caches.informer(other.clone(), scope);
            by_kind.insert(other.clone(), informer.clone());
            informers.push(informer.clone());
            let finder = match role {
                Role::Owned => Finder::Owner { kind: kind.clone(), primaries: primaries.clone() },
                Role::Watched(map) => {
                    let env = world.env.clone();
                    let mapper = Mapper::new(other.clone(), map, queue.clone(), env);
                    let retries = mapper.clone().run();
                    workers.spawn(world.stop.clone().run_until_cancelled_owned(retries).map(drop));
                    Finder::Mapped(mapper)
                }
                Role::Read => continue,
            };
            informer.on_event(source::secondary(other, finder, filter, queue.clone()));
        }
        for outside in sources {
            let words = outside.run(world.env.clone(), primaries.clone(), queue.clone());
            workers.spawn(world.stop.clone().run_until_cancelled_owned(words).map(drop));
        }

        let shared = Arc::new(Shared {
            name: name.clone(),
            env: world.env.clone(),
            client: client::guarded(
                world.client.clone(),
                world.env.clone(),
                request_limit,
                world.fence.clone(),
                world.metrics.clone(),
            ),
            fence: world.fence.clone(),
            informers: by_kind,
            namespace,
            recorder: world.recorder.clone(),
            memories,
            request_limit,
            labelled,
        });
        let (journal, metrics) = (world.journal.clone(), world.metrics.clone());
        let count = i64::try_from(self.concurrency).unwrap_or(i64::MAX);
        metrics.workers.get_or_create(&metrics::of(&name)).set(count);
        let worker = Worker {
            shared,
            primaries,
            queue: queue.clone(),
            reconcile,
            journal,
            metrics,
            timeout,
            give_up,
            hot_loops: self.hot_loop.map(|limits| Arc::new(Mutex::new(Detector::new(limits)))),
            started: world.env.instant(),
        };
        for _ in 0..self.concurrency {
            let (worker, informers, stop) = (worker.clone(), informers.clone(), world.stop.clone());
            workers.spawn(async move {
                let synced = async {
                    for informer in &informers {
                        informer.wait_for_sync().await;
                    }
                };
                // Nothing runs before everything it may read is there.
                if stop.run_until_cancelled(synced).await.is_some() {
                    worker.run().await;
                }
            });
        }
        informers.iter().for_each(Informer::start);
        Launched { name, informers, queue, workers }
    }
}
