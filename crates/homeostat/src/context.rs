//! What a reconcile can do: read from the cache, write to the API, report status.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::Env;
use crate::error::Result;
use crate::key::Key;
use crate::kind::Object;
use crate::trigger::Trigger;

/// What a write changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Created,
    /// The object was there and is different now.
    Changed,
    /// Nothing was written.
    Unchanged,
}

/// The result of [`Context::apply`].
#[derive(Debug, Clone)]
pub struct Applied<T> {
    /// The object as the API has it now.
    pub object: Arc<T>,
    /// What the write changed.
    pub change: Change,
}

/// One reconcile's view of the cluster; cheap to clone.
#[derive(Debug, Clone)]
pub struct Context<K> {
    primary: PhantomData<K>,
}

impl<K: Object> Context<K> {
    /// The time of day.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        unimplemented!()
    }
    /// The environment.
    #[must_use]
    pub fn env(&self) -> &Env {
        unimplemented!()
    }
    /// The client, for what the context has no method for. Reads through it are not cached.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        unimplemented!()
    }
    /// The key of the object being reconciled.
    #[must_use]
    pub fn key(&self) -> &Key {
        unimplemented!()
    }
    /// Why this reconcile runs.
    #[must_use]
    pub fn triggers(&self) -> &[Trigger] {
        unimplemented!()
    }
    /// The object of that name in the primary's namespace, from the cache.
    pub async fn get<T: Object>(&self, name: &str) -> Result<Option<Arc<T>>> {
        unimplemented!("{name}")
    }
    /// The object of that key, from the cache.
    pub async fn get_key<T: Object>(&self, key: &Key) -> Result<Option<Arc<T>>> {
        unimplemented!("{key}")
    }
    /// All objects of a kind in the primary's namespace (all namespaces if the primary has none), in key order.
    pub async fn list<T: Object>(&self) -> Result<Vec<Arc<T>>> {
        unimplemented!()
    }
    /// The objects of a kind in the primary's namespace whose labels match `selector` (`a=b,c in (d,e)`).
    pub async fn list_labelled<T: Object>(&self, selector: &str) -> Result<Vec<Arc<T>>> {
        unimplemented!("{selector}")
    }
    /// The objects of a kind whose controller (by uid) is the primary.
    pub async fn owned<T: Object>(&self) -> Result<Vec<Arc<T>>> {
        unimplemented!()
    }
    /// Server-side apply of a child: owner reference and namespace set, skipped when nothing would change.
    pub async fn apply<T: Object>(&self, desired: T) -> Result<Applied<T>> {
        unimplemented!("{desired:?}")
    }
    /// Creates a child once: exists already and is ours → that one; a stranger's → [`crate::Error::NotOurs`].
    pub async fn create<T: Object>(&self, desired: T) -> Result<Arc<T>> {
        unimplemented!("{desired:?}")
    }
    /// Deletes an object (uid precondition); already gone is success.
    pub async fn delete<T: Object>(&self, object: &T) -> Result<()> {
        unimplemented!("{object:?}")
    }
    /// JSON merge patch of an object; the cache catches up before the next read.
    pub async fn merge_patch<T: Object>(
        &self,
        key: &Key,
        patch: &serde_json::Value,
    ) -> Result<Arc<T>> {
        unimplemented!("{key}{patch}")
    }
    /// Writes the primary's status if it differs: `observedGeneration` set in status and conditions,
    /// `lastTransitionTime` only when a condition's status changes.
    pub async fn status<S: Serialize>(&self, status: S) -> Result<Change> {
        let _ = status;
        unimplemented!()
    }
    /// Records an event about the primary; deduplicated, rate-limited, never waits for the network.
    pub fn event(&self, kind: EventType, reason: &str, note: impl Into<String>) {
        let _ = (kind, reason, note.into());
        unimplemented!()
    }
    /// Keeps `name` among the finalizers while the primary lives; once it is being deleted runs
    /// `cleanup` and removes the name (uid guarded). Returns `true` when deletion is in progress
    /// and the reconcile should return [`crate::Outcome::Done`].
    pub async fn finalizer<F, Fut>(&self, name: &str, cleanup: F) -> Result<bool>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<()>>,
    {
        let _ = cleanup;
        unimplemented!("{name}")
    }
}

/// `Normal` or `Warning`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// Something expected happened.
    Normal,
    /// Somebody should look.
    Warning,
}
