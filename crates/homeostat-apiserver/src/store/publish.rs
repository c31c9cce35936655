//! The readers' side: which snapshot is shown, and who is told when there is a newer one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::watch;

use super::snapshot::Snapshot;

/// How far the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    /// The revision that readers see.
    pub(super) revision: u64,
    /// The storage failed: there will be no other one.
    pub(super) failed: bool,
}

#[derive(Debug)]
pub(super) struct Published {
    snapshot: RwLock<Arc<Snapshot>>,
    progress: watch::Sender<Progress>,
    /// The last revision that changed each resource somebody watches.
    changed: Mutex<BTreeMap<Arc<str>, watch::Sender<u64>>>,
}

impl Published {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        let progress = Progress { revision: snapshot.revision, failed: false };
        Self {
            snapshot: RwLock::new(Arc::new(snapshot)),
            progress: watch::Sender::new(progress),
            changed: Mutex::default(),
        }
    }

    /// What readers see. Taking it is the only moment a reader holds a lock.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows `snapshot` from now on and wakes those who wait for one of `resources`.
    pub(super) fn show(&self, snapshot: Snapshot, resources: impl Iterator<Item = Arc<str>>) {
        let revision = snapshot.revision;
        let old = {
            let mut shown = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *shown, Arc::new(snapshot))
        };
        self.progress.send_modify(|progress| progress.revision = revision);
        let changed = self.senders();
        for resource in resources {
            if let Some(sender) = changed.get(&resource) {
                sender.send_replace(revision);
            }
        }
        // What only the old one held is given back without anybody waiting for it.
        drop(changed);
        drop(old);
    }

    /// Nothing will be shown any more.
    pub(super) fn fail(&self) {
        self.progress.send_modify(|progress| progress.failed = true);
    }

    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Hears of the changes of a resource; and the names of those that nobody watches any more, which
    /// go: definitions come and go with names of their own.
    pub(super) fn subscribe(&self, resource: &str) -> (watch::Receiver<u64>, Vec<Arc<str>>) {
        let mut changed = self.senders();
        let mut left = Vec::new();
        if let Some(sender) = changed.get(resource) {
            return (sender.subscribe(), left);
        }
        changed.retain(|name, sender| {
            let is_watched = sender.receiver_count() > 0;
            if !is_watched {
                left.push(name.clone());
            }
            is_watched
        });
        let sender = changed.entry(resource.into()).or_insert_with(|| watch::Sender::new(0));
        (sender.subscribe(), left)
    }

    /// How many resources are told of.
    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        self.senders().len()
    }

    /// How many watchers there are.
    pub(super) fn watchers(&self) -> usize {
        self.senders().values().map(watch::Sender::receiver_count).sum()
    }

    fn senders(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, watch::Sender<u64>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
