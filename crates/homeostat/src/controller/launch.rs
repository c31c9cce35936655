//! From a built controller to a running one: its caches, its queue, its workers.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::pending;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Controller;
use super::crew;
use super::declare::{Declaration, Declared};
use super::everything::Everything;
use super::outside::SourceHealth;
use super::worker::Worker;
use crate::Env;
use crate::cache::{Caches, Informer, KindCache, SourceState};
use crate::client;
use crate::context::{Memories, Shared};
use crate::event::Recorder;
use crate::hotloop::Detector;
use crate::journal::Journal;
use crate::key::Key;
use crate::kind::AnyObject;
use crate::lease::Fence;
use crate::metrics::{self, ControllerMetrics, Metrics, Shifts};
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
    /// What is to be waited for at the start.
    pub(crate) starting: Starting,
    pub(crate) queue: Queue<Key>,
    pub(crate) shifts: Arc<Shifts>,
    pub(crate) workers: JoinSet<()>,
    pub(crate) memories: Arc<Memories>,
    /// How its sources outside the API are.
    pub(crate) outside: Vec<SourceHealth>,
    everything: Everything,
    follows_lease: bool,
    /// Held for what they wake: those that no reconcile reads are nobody else's.
    _caches: Vec<KindCache>,
}

/// The sources that a controller begins with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starting {
    /// Nothing runs without them.
    needed: Vec<Informer>,
    /// They are given the time to come or to fail.
    hoped_for: Vec<Informer>,
}

impl Starting {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Informer> {
        self.needed.iter().chain(&self.hoped_for)
    }

    /// Ends when the workers may begin; never when they cannot.
    pub(crate) async fn there(self) {
        for informer in self.needed {
            if !informer.wait_for_sync().await {
                return pending().await;
            }
            // Another controller may have filled it before: what is read now must be heard of.
            informer.handlers_joined().await;
        }
        for informer in self.hoped_for {
            informer.wait_for_state(is_decided).await;
            informer.handlers_joined().await;
        }
    }
}

impl Launched {
    /// What it takes to follow the lease, if it does.
    pub(crate) fn follower(&self) -> Option<Follower> {
        let follower =
            || Follower { everything: self.everything.clone(), queue: self.queue.clone() };
        self.follows_lease.then(follower)
    }
}

/// A controller as the lease sees it: something that works or rests.
pub(crate) struct Follower {
    everything: Everything,
    queue: Queue<Key>,
}

impl Follower {
    /// Works: on everything, if another process may have led since it last did.
    pub(crate) fn lead(&self, again: bool) {
        if again {
            self.everything.wake(&self.queue, &Trigger::Initial);
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

impl<K: AnyObject> Launch for Controller<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn launch(self: Box<Self>, world: &World) -> Launched {
        let Self { name, kind, reconcile, related, indexes, sources, .. } = *self;
        let Self { filter, background, scope, reach, give_up, .. } = *self;
        let (timeout, request_limit) = (self.timeout, self.request_timeout);
        let (heeds_warnings, marks_status) = (self.heeds_warnings, self.marks_status);
        let backoff = self.rules.backoff;
        let queue = Queue::with_rules(world.env.clone(), self.rules);
        let fence =
            if self.follows_lease { world.fence.clone() } else { Fence::open(world.env.clone()) };
        if fence.has_lease() {
            queue.pause();
        }
        let name: Arc<str> = Arc::from(name);
        let namespaces = reach.namespaces();
        let declaration = Declaration {
            name: name.clone(),
            kind: kind.clone(),
            filter,
            background,
            scope,
            reach,
            related,
            indexes,
        };
        let client = client::guarded(
            world.client.clone(),
            world.env.clone(),
            request_limit,
            fence.clone(),
            client::Warnings::new(heeds_warnings),
        );
        let declared = declaration.realize(world, &client, &queue);
        let Declared { primaries, caches, uncached, indexes, memories, follows, .. } = declared;
        let Declared { everything, all, needed, hoped_for, tasks, ahead, .. } = declared;

        let mut workers = JoinSet::new();
        for task in tasks {
            workers.spawn(world.stop.clone().run_until_cancelled_owned(task).map(drop));
        }
        let mut outside = Vec::new();
        for source in sources {
            let how = SourceHealth::new(&name, &source, world.metrics.source_panics(&name));
            outside.push(how.clone());
            let words = source.run(world.env.clone(), everything.clone(), queue.clone(), how);
            workers.spawn(world.stop.clone().run_until_cancelled_owned(words).map(drop));
        }

        let shared = Arc::new(Shared {
            name: name.clone(),
            kind,
            env: world.env.clone(),
            client,
            fence,
            namespaces,
            primaries,
            caches,
            uncached,
            indexes,
            follows,
            recorder: world.recorder.clone(),
            memories: memories.clone(),
            stale: world.metrics.stale(&name),
            begun: AtomicU64::new(0),
            request_limit,
            marks_status,
            hot_loop: self.hot_loop,
            finalizers: Mutex::default(),
        });
        shared.memories.belong_to(&shared);
        let count = i64::try_from(self.concurrency).unwrap_or(i64::MAX);
        world.metrics.workers.get_or_create(&metrics::of(&name)).set(count);
        let shifts = Arc::new(Shifts::new(self.concurrency, world.env.instant()));
        let worker = Arc::new(Worker {
            shared,
            shifts: shifts.clone(),
            queue: queue.clone(),
            ahead,
            reconcile,
            journal: world.journal.clone(),
            metrics: ControllerMetrics::new(&world.metrics, &name),
            timeout,
            backoff,
            give_up,
            hot_loops: self.hot_loop.map(|limits| Mutex::new(Detector::new(limits))),
            started: world.env.instant(),
        });
        let starting = Starting { needed, hoped_for };
        let (stop, there, most) = (world.stop.clone(), starting.clone().there(), self.concurrency);
        workers.spawn(async move {
            // Nothing runs before everything it may read is there.
            if stop.run_until_cancelled(there).await.is_some() {
                crew::work(worker, most).await;
            }
        });
        starting.all().for_each(Informer::start);
        let follows_lease = self.follows_lease;
        let _caches = all;
        Launched {
            name,
            starting,
            queue,
            shifts,
            workers,
            memories,
            outside,
            everything,
            follows_lease,
            _caches,
        }
    }
}

/// Whether an informer is there, or has said why not.
pub(crate) fn is_decided(state: &SourceState) -> bool {
    matches!(state, SourceState::Synced | SourceState::Pending(_))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::Kind;
    use crate::cache::Scope;
    use crate::watch::script::{End, Script, object, streamed};

    #[tokio::test(start_paused = true)]
    async fn who_joins_a_cache_that_is_full_works_when_it_has_heard_of_all_that_is_there() {
        let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
        let list = streamed(&[object("a", 1), object("b", 2)], 2, &[], End::Open);
        let caches = Caches::new(Script::new(&env, [list]).client(), env);
        let informer = caches.informer(Kind::of::<ConfigMap>(), Scope::default());
        // For somebody else, earlier.
        informer.start();
        assert!(informer.wait_for_sync().await);
        for is_needed in [true, false] {
            let told = Arc::<Mutex<Vec<String>>>::default();
            let heard = told.clone();
            informer.on_event(move |delta| {
                heard.lock().unwrap().push(delta.key().name().to_owned());
            });
            let mut starting = Starting::default();
            let list = if is_needed { &mut starting.needed } else { &mut starting.hoped_for };
            list.push(informer.clone());
            starting.there().await;
            assert_eq!(*told.lock().unwrap(), ["a", "b"]);
        }
    }
}
