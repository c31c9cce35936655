//! The revisioned store: every object, one counter of revisions, and the recent past.
//!
//! ```text
//! writers ──▶ head ──commits──▶ flusher ──▶ storage        (durable: shown once it is safe)
//!              └────────snapshot────────────────▶ published ──▶ readers, watchers
//! ```
//!
//! Only the store assigns revisions. Writers build on the newest state, readers and watchers see
//! the newest durable one; in memory the two are the same. It knows neither kinds nor HTTP.

mod change;
mod finished;
mod flusher;
mod forms;
mod head;
mod log;
mod object;
mod pairs;
mod publish;
mod snapshot;
mod storage;
#[cfg(test)]
mod tests;
mod watcher;

use std::sync::{Arc, MutexGuard};

pub use change::Change;
pub use finished::Finished;
use flusher::{Flusher, Queue, Writers};
pub use head::Commit;
use head::Head;
pub use log::{Log, LogOptions};
pub use object::{Draft, Key, Stored};
pub use pairs::Pairs;
use publish::Published;
pub use snapshot::Snapshot;
pub use storage::{Loaded, Storage, StorageError};
pub use watcher::Watcher;

/// What a write expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing under that key.
    Absent,
    /// The object at exactly this revision.
    Revision(u64),
}

/// One write of a commit.
#[derive(Debug, Clone)]
pub struct Write {
    /// The resource.
    pub resource: String,
    /// Where in it.
    pub key: Key,
    /// What must be there.
    pub expect: Expect,
    /// What shall be there; `None` deletes.
    pub draft: Option<Draft>,
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
    /// The storage failed: what was written is not known to be kept, and nothing more is written.
    #[error("the storage failed, nothing is written any more; the server's log says why")]
    Failed,
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

/// How much of the past is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Changes of each resource; as many as fit by default.
    pub changes: usize,
    /// Bytes of all resources together that are kept for the past alone; 64 MiB by default. What is
    /// made of changes for watchers takes a quarter of that at the most, besides.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { changes: usize::MAX, bytes: 64 * 1024 * 1024 }
    }
}

/// How the store is, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// The revision that readers see.
    pub revision: u64,
    /// Bytes kept for the past alone, and made of it for watchers.
    pub history_bytes: usize,
    /// Watchers.
    pub watchers: usize,
}

/// A handle on the store; clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    queue: Arc<Queue>,
    published: Arc<Published>,
    /// `None` in memory.
    flusher: Option<Arc<Flusher>>,
}

impl Store {
    /// An empty store in memory.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self::with(Head::new(limits))
    }

    /// A store that begins with what `storage` has kept and keeps every commit there.
    ///
    /// # Errors
    /// [`StorageError`] when that cannot be read.
    pub fn open(limits: Limits, mut storage: impl Storage) -> Result<Self, StorageError> {
        let mut head = Head::new(limits);
        storage.load(&mut |loaded| match loaded {
            Loaded::Beginning(revision) => head.begin_at(revision),
            Loaded::Object { resource, object } => head.restore(&resource, object),
            Loaded::Commit { revision, changes } => head.replay(revision, changes),
        })?;
        let mut store = Self::with(head);
        let flusher =
            Flusher::start(store.queue.clone(), store.published.clone(), Box::new(storage))
                .map_err(|source| StorageError::Io {
                    what: "start the thread that writes",
                    path: std::path::PathBuf::new(),
                    source,
                })?;
        store.flusher = Some(Arc::new(flusher));
        Ok(store)
    }

    fn with(head: Head) -> Self {
        let published = Arc::new(Published::new(head.snapshot.clone()));
        Self { queue: Arc::new(Queue::new(head)), published, flusher: None }
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.queue.writers()
    }

    /// What readers see: the newest state that is durable. It stays as it is.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.snapshot()
    }

    /// The revision that readers see; never 0.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.snapshot().revision()
    }

    /// What writers build on: the newest state, which may not be durable yet.
    #[must_use]
    pub fn newest(&self) -> Snapshot {
        self.writers().head.snapshot.clone()
    }

    /// The newest version of the object under `key`, as writers see it.
    #[must_use]
    pub fn get(&self, resource: &str, key: &Key) -> Option<Arc<Stored>> {
        self.writers().head.snapshot.get(resource, key)
    }

    /// The objects of a resource at one revision, by default the newest, as writers see it.
    ///
    /// # Errors
    /// [`StoreError::Expired`] when `range.at` is older than the history.
    pub fn list(&self, resource: &str, range: &Range) -> Result<Page, StoreError> {
        self.newest().list(resource, range)
    }

    /// Waits until readers see `revision`.
    ///
    /// # Errors
    /// [`StoreError::Failed`] when they never will.
    pub async fn wait_for(&self, revision: u64) -> Result<(), StoreError> {
        let mut progress = self.published.progress();
        let reached = progress.wait_for(|now| now.revision >= revision || now.failed).await;
        match reached {
            Ok(now) if now.revision >= revision => Ok(()),
            // The sender lives in the store, which `self` holds: only a failure comes here.
            _ => Err(StoreError::Failed),
        }
    }

    /// Waits until everything committed so far is durable and seen by readers.
    ///
    /// # Errors
    /// [`StoreError::Failed`] when it never will be.
    pub async fn settle(&self) -> Result<(), StoreError> {
        if self.flusher.is_none() {
            return Ok(());
        }
        let newest = self.writers().head.snapshot.revision;
        self.wait_for(newest).await
    }

    /// Does all of `writes` at one revision, or nothing; returns the objects as written, and of
    /// those deleted the last state.
    ///
    /// In memory they are seen by everybody when this returns; with a storage [`Store::settle`]
    /// says when.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when something is not as expected or a key is named twice;
    /// [`StoreError::Failed`] after the storage failed.
    pub fn commit(&self, writes: Vec<Write>) -> Result<Vec<Arc<Stored>>, StoreError> {
        let mut writers = self.writers();
        if writers.failed {
            return Err(StoreError::Failed);
        }
        let commit = writers.head.commit(writes)?;
        let objects = commit.changes.iter().map(|(_, change)| change.object.clone()).collect();
        if self.flusher.is_some() {
            self.queue.push(writers, [commit]);
        } else {
            let names = commit.changes.into_iter().map(|(name, _)| name);
            // Under the lock: readers see the commits in their order.
            self.published.show(writers.head.snapshot.clone(), names);
        }
        Ok(objects)
    }

    /// Makes all of `objects` that are not there yet, each at a revision of its own; what is there stays
    /// as it is. Returns those that were made, in the place of the others `None`.
    ///
    /// In memory nobody sees one of them before all are there, which spares the maps a copy for each.
    ///
    /// # Errors
    /// [`StoreError::Failed`] after the storage failed.
    pub fn put_absent(
        &self,
        objects: impl IntoIterator<Item = Finished>,
    ) -> Result<Vec<Option<Arc<Stored>>>, StoreError> {
        let mut writers = self.writers();
        if writers.failed {
            return Err(StoreError::Failed);
        }
        let commits: Vec<Option<Commit>> =
            objects.into_iter().map(|object| writers.head.put_absent(object)).collect();
        let object = |commit: &Commit| commit.changes.first().map(|(_, it)| it.object.clone());
        let made = commits.iter().map(|commit| commit.as_ref().and_then(object)).collect();
        let commits = commits.into_iter().flatten();
        if self.flusher.is_some() {
            self.queue.push(writers, commits);
        } else {
            let names = commits.flat_map(|commit| commit.changes).map(|(name, _)| name);
            self.published.show(writers.head.snapshot.clone(), names);
        }
        Ok(made)
    }

    /// Does `work` for a caller that will wait until what it commits is durable: with nobody else
    /// writing to the storage, this very thread does, and everybody sees it when this returns.
    /// [`Store::settle`] says when in all other cases.
    ///
    /// To be called from tasks of a runtime with several threads, where other tasks go on
    /// elsewhere meanwhile, or from outside of any runtime.
    pub fn in_place<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.flusher {
            Some(flusher) => flusher.in_place(work),
            None => work(),
        }
    }

    /// Forgets all changes up to `revision`: whoever still wants them comes too late. It shows with
    /// the next commit.
    pub fn forget_until(&self, revision: u64) {
        self.writers().head.forget_until(revision);
    }

    /// Commits `draft` under `key`.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn put(
        &self,
        resource: &str,
        key: &Key,
        expect: Expect,
        draft: Draft,
    ) -> Result<Arc<Stored>, StoreError> {
        self.one(resource, key, expect, Some(draft))
    }

    /// Removes the object under `key` and returns its last state, at the deletion's revision.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn delete(
        &self,
        resource: &str,
        key: &Key,
        revision: u64,
    ) -> Result<Arc<Stored>, StoreError> {
        self.one(resource, key, Expect::Revision(revision), None)
    }

    fn one(
        &self,
        resource: &str,
        key: &Key,
        expect: Expect,
        draft: Option<Draft>,
    ) -> Result<Arc<Stored>, StoreError> {
        let write = Write { resource: resource.to_owned(), key: key.clone(), expect, draft };
        self.commit(vec![write])?.pop().ok_or(StoreError::Conflict)
    }

    /// A watcher that sees every change of `resource` after `revision`.
    ///
    /// # Errors
    /// [`StoreError::Expired`] when changes after `revision` are no longer all known.
    pub fn watch(&self, resource: &str, revision: u64) -> Result<Watcher, StoreError> {
        let changed = {
            let mut writers = self.writers();
            let (changed, left) = self.published.subscribe(resource);
            writers.head.watch(resource, &left);
            changed
        };
        self.snapshot().changes(resource, revision, 0)?;
        Ok(Watcher::new(self.clone(), resource.to_owned(), revision, changed))
    }

    /// Whether writes are still taken: not after its storage failed.
    #[must_use]
    pub fn works(&self) -> bool {
        !self.writers().failed
    }

    /// How the store is.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            revision: self.revision(),
            history_bytes: self.writers().head.weight(),
            watchers: self.published.watchers(),
        }
    }
}
