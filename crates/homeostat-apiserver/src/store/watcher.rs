//! A watcher: a position in the ring of changes that all watchers of a resource share.
//!
//! It copies nothing and never skips: when the ring has moved past its position, it ends.

use tokio::sync::watch;

use super::{Change, Store, StoreError};

/// How many changes one look at the ring takes, so that the lock is never held for long.
const BATCH: usize = 256;

/// Sees every change of one resource after a revision, in order.
#[derive(Debug)]
pub struct Watcher {
    store: Store,
    resource: String,
    seen: u64,
    changed: watch::Receiver<u64>,
}

impl Watcher {
    pub(super) fn new(
        store: Store,
        resource: String,
        seen: u64,
        changed: watch::Receiver<u64>,
    ) -> Self {
        Self { store, resource, seen, changed }
    }

    /// The next changes, at least one; waits for them.
    ///
    /// # Errors
    /// [`StoreError::Expired`] when the watcher was too slow and changes are gone. Safe to call
    /// again after being cancelled.
    pub async fn next(&mut self) -> Result<Vec<Change>, StoreError> {
        loop {
            self.changed.mark_unchanged();
            let changes = self.store.lock().changes(&self.resource, self.seen, BATCH)?;
            if let Some(last) = changes.last() {
                self.seen = last.object.revision;
                return Ok(changes);
            }
            if self.changed.changed().await.is_err() {
                // The resource's sender lives as long as the store, which this watcher holds.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The revision up to which everything has been seen: a bookmark may promise it.
    ///
    /// `None` while changes are waiting to be read.
    #[must_use]
    pub fn caught_up(&mut self) -> Option<u64> {
        let state = self.store.lock();
        let revision = state.revision();
        match state.changes(&self.resource, self.seen, 1) {
            Ok(changes) if changes.is_empty() => Some(revision),
            _ => None,
        }
    }
}
