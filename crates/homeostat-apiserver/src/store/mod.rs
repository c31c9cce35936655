//! The revisioned store: every object, one counter of revisions, and the recent past.
//!
//! Only the store assigns revisions. A commit is visible to every reader and watcher at once,
//! before the writer hears of it. It knows neither kinds nor HTTP, and never does IO.

mod state;
#[cfg(test)]
mod tests;
mod watcher;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use state::State;
pub use watcher::Watcher;

/// Where an object lives among those of its resource; ordered namespace first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Empty for objects of the cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of `name` in `namespace` (empty for objects of the cluster).
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// One version of one object, as committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The revision of the commit; for a deletion, of the deletion.
    pub revision: u64,
    /// Where it lives.
    pub key: Key,
    /// The `apiVersion` it is written in.
    pub api_version: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// What field selectors of its kind can ask for.
    pub fields: BTreeMap<String, String>,
    /// The object as JSON, `metadata.resourceVersion` included.
    pub body: Bytes,
}

impl Stored {
    /// The object, decoded.
    #[must_use]
    pub fn value(&self) -> Value {
        // The bytes were encoded by this store from a Value: they always decode.
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// An object about to be committed: everything but its revision.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The object; its `metadata.resourceVersion` is overwritten.
    pub value: Value,
    /// What field selectors of its kind can ask for.
    pub fields: BTreeMap<String, String>,
}

/// What a write expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing under that key.
    Absent,
    /// The object at exactly this revision.
    Revision(u64),
}

/// Why the store refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// What is stored is not what the write expected.
    #[error("the stored object is not at the expected revision")]
    Conflict,
    /// The revision asked for is older than the history kept.
    #[error("too old resource version: {asked} ({oldest})")]
    Expired {
        /// The revision asked for.
        asked: u64,
        /// The oldest one still known.
        oldest: u64,
    },
}

/// One commit to one resource.
#[derive(Debug, Clone)]
pub struct Change {
    /// The object after the commit; its last state at the deletion's revision when deleted.
    pub object: Arc<Stored>,
    /// The object before the commit; `None` when it was created.
    pub previous: Option<Arc<Stored>>,
    /// Whether the commit removed it.
    pub deleted: bool,
}

/// Part of a list, at one revision.
#[derive(Debug, Clone)]
pub struct Page {
    /// The revision the page shows.
    pub revision: u64,
    /// The objects, in the order of their keys.
    pub items: Vec<Arc<Stored>>,
}

/// What a list reads.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only keys after this one.
    pub after: Option<Key>,
    /// The past revision to show; the current one when unset.
    pub at: Option<u64>,
}

/// A handle on the store; clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    state: Arc<Mutex<State>>,
}

impl Store {
    /// An empty store that keeps the last `history` changes of each resource.
    #[must_use]
    pub fn new(history: usize) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(history))) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision of the last commit; never 0.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.lock().revision()
    }

    /// Waits until `revision` is committed.
    pub async fn wait_for(&self, revision: u64) {
        let mut committed = self.lock().committed();
        // The sender lives in the store, which `self` holds.
        let _ = committed.wait_for(|current| *current >= revision).await;
    }

    /// The object under `key`.
    #[must_use]
    pub fn get(&self, resource: &str, key: &Key) -> Option<Arc<Stored>> {
        self.lock().get(resource, key)
    }

    /// The objects of a resource at one revision.
    ///
    /// # Errors
    /// [`StoreError::Expired`] when `range.at` is older than the history.
    pub fn list(&self, resource: &str, range: &Range) -> Result<Page, StoreError> {
        self.lock().list(resource, range)
    }

    /// Commits `draft` under `key`.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the store does not hold what is expected; nothing is written.
    pub fn put(
        &self,
        resource: &str,
        key: &Key,
        expect: Expect,
        draft: Draft,
    ) -> Result<Arc<Stored>, StoreError> {
        self.lock().put(resource, key, expect, draft)
    }

    /// Removes the object under `key` and returns its last state, at the deletion's revision.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is not at `revision` (or absent).
    pub fn delete(
        &self,
        resource: &str,
        key: &Key,
        revision: u64,
    ) -> Result<Arc<Stored>, StoreError> {
        self.lock().delete(resource, key, revision)
    }

    /// A watcher that sees every change of `resource` after `revision`.
    ///
    /// # Errors
    /// [`StoreError::Expired`] when changes after `revision` are no longer all known.
    pub fn watch(&self, resource: &str, revision: u64) -> Result<Watcher, StoreError> {
        let changed = {
            let mut state = self.lock();
            state.changes(resource, revision, 0)?;
            state.subscribe(resource)
        };
        Ok(Watcher::new(self.clone(), resource.to_owned(), revision, changed))
    }

    /// The resources that hold at least one object, for whoever cleans up.
    #[must_use]
    pub fn resources(&self) -> Vec<String> {
        self.lock().resources()
    }
}
