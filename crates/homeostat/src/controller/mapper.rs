//! Functions that name the keys a watched object concerns, at once or after a look around. One that
//! fails or panics is asked again with backoff, about the very versions it failed on: a lost answer
//! would be a lost wake-up.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use prometheus_client::metrics::counter::Counter;

use super::ahead::Ahead;
use super::lookup::Lookup;
use super::source::is_worth_waking;
use crate::cache::{Entry, KindCache};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{Kind, View};
use crate::queue::Queue;
use crate::trigger::Trigger;

/// So many versions of one object are remembered for another try, the first and the newest of them.
/// Whom the others named nobody knows any more: everybody is woken.
const MOST_VERSIONS: usize = 16;
/// So many objects are mapped at once by functions that wait.
const AT_ONCE: usize = 4;
/// How long a function may take that waits.
const LIMIT: Duration = Duration::from_secs(30);

type Now = dyn Fn(&Entry) -> Result<Vec<Key>> + Send + Sync;
type Soon = dyn Fn(&Entry, Lookup) -> BoxFuture<'static, Result<Vec<Key>>> + Send + Sync;

/// From a watched object to the keys it concerns.
#[derive(Clone)]
pub(super) enum Map {
    /// Asked where the change is heard of.
    Now(Arc<Now>),
    /// Asked soon after, in a task of its own.
    Soon(Arc<Soon>),
}

impl Map {
    /// A function on a type; an object that is not of that type concerns nobody.
    pub(super) fn now<X: View>(
        map: impl Fn(&X) -> Result<Vec<Key>> + Send + Sync + 'static,
    ) -> Self {
        Self::Now(Arc::new(move |entry| decoded(entry).map_or(Ok(Vec::new()), |it| map(&it))))
    }

    /// The same for one that waits.
    pub(super) fn soon<X: View, Fut>(
        map: impl Fn(Arc<X>, Lookup) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<Vec<Key>>> + Send + 'static,
    {
        Self::Soon(Arc::new(move |entry, lookup| match decoded(entry) {
            Some(object) => map(Arc::new(object), lookup).boxed(),
            None => async { Ok(Vec::new()) }.boxed(),
        }))
    }
}

fn decoded<X: View>(entry: &Entry) -> Option<X> {
    let warn = |error: &Error| {
        tracing::warn!(error = error.chain(), "a watched object wakes nobody");
    };
    entry.decode().inspect_err(warn).ok()
}

/// A map with a memory for what it has yet to answer; cheap to clone.
#[derive(Clone)]
pub(super) struct Mapper {
    kind: Kind,
    map: Map,
    lookup: Lookup,
    /// Where the keys go.
    keys: Queue<Key>,
    /// The objects to ask about.
    open: Queue<Key>,
    questions: Arc<Mutex<BTreeMap<Key, Question>>>,
    /// Reconciles read the kind from another cache, and are to find there what has woken them.
    ahead: Option<Ahead>,
    /// How often there was no answer.
    failures: Counter,
}

/// What is to be mapped of one object.
struct Question {
    versions: Vec<Arc<Entry>>,
    /// Whether there were more versions than are remembered.
    forgets: bool,
    trigger: Trigger,
}

impl Mapper {
    pub(super) fn new(kind: Kind, map: Map, keys: Queue<Key>, lookup: Lookup) -> Self {
        let open = Queue::new(lookup.env().clone());
        Self {
            kind,
            map,
            lookup,
            keys,
            open,
            questions: Arc::default(),
            ahead: None,
            failures: Counter::default(),
        }
    }

    /// For a kind that reconciles read from another cache than the one that tells of its changes.
    pub(super) fn ahead(self, ahead: Option<Ahead>) -> Self {
        Self { ahead, ..self }
    }

    /// Counts there how often it has no answer.
    pub(super) fn counting(self, failures: Counter) -> Self {
        Self { failures, ..self }
    }

    /// The cache of those whom it wakes.
    pub(super) fn primaries(&self) -> &KindCache {
        &self.lookup.primaries
    }

    /// The keys that these versions of one object name, as far as that can be said at once. The
    /// rest is asked later, and wakes with this trigger.
    pub(super) fn map(&self, versions: Vec<Arc<Entry>>, trigger: &Trigger) -> Vec<Key> {
        let mut keys = Vec::new();
        for version in versions {
            match &self.map {
                Map::Now(map) => match guarded(map, &version) {
                    Ok(named) => keys.extend(named),
                    Err(error) => self.put_off(version, trigger.clone(), &error),
                },
                Map::Soon(_) => {
                    let key = version.header.key.clone();
                    self.ask(version, trigger.clone());
                    self.open.add(key, trigger.clone());
                }
            }
        }
        keys
    }

    /// Answers what is open, until the queue is shut down.
    pub(super) async fn run(self) {
        let workers = (0..AT_ONCE).map(|_| self.work());
        join_all(workers).await;
    }

    async fn work(&self) {
        while let Some(item) = self.open.get().await {
            let question = self.lock().remove(&item.key);
            if let Some(Question { versions, forgets, trigger }) = question {
                let (mut keys, newest) = (BTreeSet::new(), versions.last().cloned());
                if forgets {
                    keys.extend(self.lookup.primaries(None));
                }
                for version in versions {
                    match self.answer(&version).await {
                        Ok(named) => keys.extend(named),
                        Err(error) => self.put_off(version, trigger.clone(), &error),
                    }
                }
                // Together: most versions of an object name the same keys.
                for key in keys {
                    self.wake(key, &trigger, newest.as_deref());
                }
            }
            if !self.lock().contains_key(&item.key) {
                self.open.forget(&item.key);
            }
            self.open.done(&item.key);
        }
    }

    async fn answer(&self, entry: &Entry) -> Result<Vec<Key>> {
        let map = match &self.map {
            Map::Now(map) => return guarded(map, entry),
            Map::Soon(map) => map,
        };
        let asked = AssertUnwindSafe(async { map(entry, self.lookup.clone()).await });
        let limited = self.lookup.env().timeout(LIMIT, asked.catch_unwind()).await;
        match limited {
            Ok(answer) => answer.unwrap_or_else(|_| Err(panicked())),
            Err(_) => Err(Error::transient(format!("no answer within {LIMIT:?}"))),
        }
    }

    fn wake(&self, key: Key, trigger: &Trigger, newest: Option<&Entry>) {
        if !is_worth_waking(&key, self.primaries(), &self.keys) {
            return;
        }
        if let (Some(ahead), Some(newest)) = (&self.ahead, newest) {
            ahead.heard(&key, &self.kind, newest);
        }
        // What was there at the start goes behind what happens now.
        if *trigger == Trigger::Initial {
            return self.keys.add_low(key, Trigger::Initial);
        }
        self.keys.add(key, trigger.clone());
    }

    fn put_off(&self, version: Arc<Entry>, trigger: Trigger, error: &Error) {
        let key = version.header.key.clone();
        self.failures.inc();
        self.ask(version, trigger);
        let delay = self.open.add_rate_limited(key.clone());
        let error = error.chain();
        tracing::warn!(kind = %self.kind, %key, error, ?delay, "whom it concerns is not known yet");
    }

    fn ask(&self, version: Arc<Entry>, trigger: Trigger) {
        let mut all = self.lock();
        let question = all.entry(version.header.key.clone()).or_insert_with(|| Question {
            versions: Vec::new(),
            forgets: false,
            trigger: trigger.clone(),
        });
        if question.versions.len() == MOST_VERSIONS {
            question.versions.remove(1);
            question.forgets = true;
        }
        question.versions.push(version);
        question.trigger = trigger;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Question>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn guarded(map: &Arc<Now>, entry: &Entry) -> Result<Vec<Key>> {
    catch_unwind(AssertUnwindSafe(|| map(entry))).unwrap_or_else(|_| Err(panicked()))
}

fn panicked() -> Error {
    Error::transient("the map function panicked")
}
