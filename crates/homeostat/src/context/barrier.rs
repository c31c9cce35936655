//! Read your own writes: a read waits until the cache has seen what this key wrote.
//!
//! Kept per key, not per kind: a list waits only for the writes of reconciles of its own key, the
//! last reconcile's included, so that nothing is made twice because its event is still on the way.

use std::time::Duration;

use super::{Context, Memories};
use crate::cache::{Expect, Informer};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{Kind, Object};

/// How long a read waits for the cache before the reconcile is tried again.
const PATIENCE: Duration = Duration::from_secs(5);

/// A write that the cache may not show yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(super) kind: Kind,
    pub(super) key: Key,
    pub(super) uid: String,
    /// What the cache must have seen of it.
    pub(super) until: Expect,
}

impl<K: Object> Context<K> {
    /// Later reads of that object, and lists of its kind, wait until the cache has seen `until`.
    pub(super) fn expect(&self, kind: &Kind, key: &Key, uid: &str, until: Expect) {
        if self.cache_of(kind, key).is_none() {
            return; // Read from the API, which has it already.
        }
        let (kind, key, uid) = (kind.clone(), key.clone(), uid.to_owned());
        self.run.shared.memories.with(&self.run.key, |memory| {
            memory.pending.retain(|old| old.kind != kind || old.key != key);
            memory.pending.push(Pending { kind, key, uid, until });
        });
    }

    /// Waits until the cache shows the writes of this key to `kind` (to one object of it).
    pub(super) async fn settle(&self, kind: &Kind, key: Option<&Key>) -> Result<()> {
        let Some(informer) = self.run.shared.informers.get(kind) else { return Ok(()) };
        settle(&self.run.shared.memories, &self.run.key, informer, kind, key).await
    }

    /// The cache that would show the object `key` if it is there. One that is limited to labels
    /// shows the primary and knows nothing of others, so that nobody waits for it to show them.
    pub(super) fn cache_of(&self, kind: &Kind, key: &Key) -> Option<&Informer> {
        if self.run.shared.labelled.as_ref() == Some(kind) && *key == self.run.key {
            return self.run.shared.informers.get(kind);
        }
        self.cache(kind, key.namespace.as_deref())
    }

    /// The cache of all objects of a declared kind in `namespace`; `None` when it is limited to
    /// another namespace, or to labels.
    pub(super) fn cache(&self, kind: &Kind, namespace: Option<&str>) -> Option<&Informer> {
        if self.run.shared.labelled.as_ref() == Some(kind) {
            return None;
        }
        let informer = self.run.shared.informers.get(kind)?;
        match &self.run.shared.namespace {
            Some(limit) if kind.is_namespaced() => (namespace == Some(limit)).then_some(informer),
            _ => Some(informer),
        }
    }
}

/// Waits until `informer` shows what reconciles of `owner` wrote to `kind`, or to one object of it.
pub(crate) async fn settle(
    memories: &Memories,
    owner: &Key,
    informer: &Informer,
    kind: &Kind,
    key: Option<&Key>,
) -> Result<()> {
    let concerns =
        |write: &&Pending| write.kind == *kind && key.is_none_or(|key| write.key == *key);
    let pending: Vec<Pending> =
        memories.with(owner, |memory| memory.pending.iter().filter(concerns).cloned().collect());
    for write in pending {
        let Pending { key, uid, until, .. } = &write;
        let seen = informer.wait_for_object(key, uid, until, PATIENCE).await;
        seen.map_err(|_| Error::Stale(format!("{kind} {key} was written and is not seen yet")))?;
        memories.with(owner, |memory| memory.pending.retain(|other| *other != write));
    }
    Ok(())
}
