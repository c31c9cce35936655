//! A watcher: a position in the changes that all watchers of a resource share.
//!
//! It buffers nothing and never skips: when the history has moved past its position, it ends.

use std::sync::Arc;

use tokio::sync::watch;

use super::change::Change;
use super::{Store, StoreError};

/// About how many bytes of objects one look at the history takes: what a watcher may hold in
/// memory while its client reads.
const BATCH: usize = 256 * 1024;

/// Sees every change of one resource after a revision, in order.
#[derive(Debug)]
pub struct Watcher {
    store: Store,
    resource: String,
    seen: u64,
    changed: watch::Receiver<u64>,
    batch: usize,
}

impl Watcher {
    pub(super) fn new(
        store: Store,
        resource: String,
        seen: u64,
        changed: watch::Receiver<u64>,
    ) -> Self {
        Self { store, resource, seen, changed, batch: BATCH }
    }

    /// The same watcher, which takes about so many bytes at a time.
    #[cfg(test)]
    pub(super) fn in_pieces_of(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// The next changes, at least one, never a part of a commit; waits for them.
    ///
    /// # Errors
    /// [`StoreError::Expired`] when the watcher was too slow and changes are gone. Safe to call
    /// again after being cancelled.
    pub async fn next(&mut self) -> Result<Vec<Arc<Change>>, StoreError> {
        loop {
            self.changed.mark_unchanged();
            let changes = self.store.snapshot().changes(&self.resource, self.seen, self.batch)?;
            if let Some(last) = changes.last() {
                self.seen = last.object.revision;
                return Ok(changes);
            }
            if self.changed.changed().await.is_err() {
                // The resource's sender lives as long as somebody watches, as this one does.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The revision up to which everything has been seen: a bookmark may promise it.
    ///
    /// `None` while changes are waiting to be read.
    #[must_use]
    pub fn caught_up(&mut self) -> Option<u64> {
        let snapshot = self.store.snapshot();
        match snapshot.changes(&self.resource, self.seen, 0) {
            Ok(changes) if changes.is_empty() => Some(snapshot.revision()),
            _ => None,
        }
    }
}
