//! Functions that name the keys a watched object concerns. One that fails or panics is asked again
//! with backoff, about the very versions it failed on: a lost answer would be a lost wake-up.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Env;
use crate::cache::Entry;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::queue::Queue;
use crate::trigger::Trigger;

/// From a watched object to the keys it concerns.
pub(super) type Map = Arc<dyn Fn(&Entry) -> Result<Vec<Key>> + Send + Sync>;

/// So many versions of one object are remembered for another try: the first and the newest.
const MOST_VERSIONS: usize = 16;

/// A function on a type; an object that is not of that type concerns nobody.
pub(super) fn typed<X: Object>(
    map: impl Fn(&X) -> Result<Vec<Key>> + Send + Sync + 'static,
) -> Map {
    Arc::new(move |entry| match entry.decode::<X>() {
        Ok(object) => map(&object),
        Err(error) => {
            tracing::warn!(error = error.chain(), "a watched object wakes nobody");
            Ok(Vec::new())
        }
    })
}

/// A map with a memory for what it failed on; cheap to clone.
#[derive(Clone)]
pub(super) struct Mapper {
    kind: Kind,
    map: Map,
    /// Where the keys go.
    keys: Queue<Key>,
    /// The objects to try again.
    again: Queue<Key>,
    failed: Arc<Mutex<BTreeMap<Key, Failed>>>,
}

/// What could not be mapped of one object.
struct Failed {
    versions: Vec<Arc<Entry>>,
    trigger: Trigger,
}

impl Mapper {
    pub(super) fn new(kind: Kind, map: Map, keys: Queue<Key>, env: Env) -> Self {
        Self { kind, map, keys, again: Queue::new(env), failed: Arc::default() }
    }

    /// The keys that these versions of one object name. Those that cannot be mapped now are tried
    /// again later, and wake with this trigger.
    pub(super) fn map(&self, versions: Vec<Arc<Entry>>, trigger: &Trigger) -> Vec<Key> {
        let mut keys = Vec::new();
        for version in versions {
            match self.try_map(&version) {
                Ok(named) => keys.extend(named),
                Err(error) => self.put_off(version, trigger.clone(), &error),
            }
        }
        keys
    }

    /// Tries again what failed, until the queue is shut down.
    pub(super) async fn run(self) {
        while let Some(item) = self.again.get().await {
            let failed = self.lock().remove(&item.key);
            if let Some(Failed { versions, trigger }) = failed {
                for key in self.map(versions, &trigger) {
                    self.keys.add(key, trigger.clone());
                }
            }
            if !self.lock().contains_key(&item.key) {
                self.again.forget(&item.key);
            }
            self.again.done(&item.key);
        }
    }

    fn try_map(&self, entry: &Entry) -> Result<Vec<Key>> {
        catch_unwind(AssertUnwindSafe(|| (self.map)(entry)))
            .unwrap_or_else(|_| Err(Error::transient("the map function panicked")))
    }

    fn put_off(&self, version: Arc<Entry>, trigger: Trigger, error: &Error) {
        let key = version.header.key.clone();
        let mut all = self.lock();
        let failed = all
            .entry(key.clone())
            .or_insert_with(|| Failed { versions: Vec::new(), trigger: trigger.clone() });
        if failed.versions.len() == MOST_VERSIONS {
            failed.versions.remove(1);
        }
        failed.versions.push(version);
        failed.trigger = trigger;
        drop(all);
        let delay = self.again.add_rate_limited(key.clone());
        let error = error.chain();
        tracing::warn!(kind = %self.kind, %key, error, ?delay, "whom it concerns is not known yet");
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Failed>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
