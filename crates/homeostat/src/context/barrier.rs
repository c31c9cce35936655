//! Read your own writes: a read waits until the cache has seen what this key wrote.
//!
//! Kept per key, not per kind: a list waits only for the writes of reconciles of its own key, the
//! last reconcile's included, so that nothing is made twice because its event is still on the way.

use super::{Context, Memories, PATIENCE};
use crate::cache::{Expect, Informer, KindCache};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

/// A write that the cache may not show yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(super) kind: Kind,
    pub(super) key: Key,
    pub(super) uid: String,
    /// What the cache must have seen of it.
    pub(super) until: Expect,
}

impl<K: AnyObject> Context<K> {
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
        let cache_of = |key: &Key| self.cache_of(kind, key);
        settle(&self.run.shared.memories, &self.run.key, cache_of, kind, key).await
    }

    /// The cache that would show the whole object `key` if it is there.
    pub(super) fn full_cache_of(&self, kind: &Kind, key: &Key) -> Option<Informer> {
        let declared = self.run.shared.caches.get(kind);
        if declared.is_some_and(KindCache::is_metadata_only) {
            return self.followed_cache_of(kind, key);
        }
        self.cache_of(kind, key)
    }

    /// The cache that would show at least the metadata of the object `key` if it is there.
    pub(super) fn cache_of(&self, kind: &Kind, key: &Key) -> Option<Informer> {
        self.declared_cache_of(kind, key).or_else(|| self.followed_cache_of(kind, key))
    }

    /// The same among those of the declared kinds. One that is limited to labels shows the primary
    /// and knows nothing of others, so that nobody waits for it to show them.
    pub(super) fn declared_cache_of(&self, kind: &Kind, key: &Key) -> Option<Informer> {
        let cache = self.run.shared.caches.get(kind)?;
        let knows = !cache.is_labelled() || (kind == self.kind() && *key == self.run.key);
        let informer = cache.informer(key.namespace.as_deref()).filter(|_| knows)?;
        // A namespace may have joined a moment ago.
        informer.is_synced().then_some(informer)
    }

    fn followed_cache_of(&self, kind: &Kind, key: &Key) -> Option<Informer> {
        let place = (kind.clone(), key.clone());
        let informer = self.run.shared.follows.informer(&self.run.key, &place)?;
        informer.is_synced().then_some(informer)
    }

    /// The cache of all objects of a declared kind in `namespace`; `None` when it is limited to
    /// another namespace, or to labels.
    pub(super) fn cache(&self, kind: &Kind, namespace: Option<&str>) -> Option<Informer> {
        let cache = self.run.shared.caches.get(kind).filter(|cache| !cache.is_labelled())?;
        cache.informer(namespace).filter(Informer::is_synced)
    }

    /// The same, if it knows more than the metadata.
    pub(super) fn full_cache(&self, kind: &Kind, namespace: Option<&str>) -> Option<Informer> {
        let full = self.run.shared.caches.get(kind).is_some_and(|cache| !cache.is_metadata_only());
        full.then(|| self.cache(kind, namespace)).flatten()
    }
}

/// Waits until the cache shows what reconciles of `owner` wrote to `kind`, or to one object of it.
pub(crate) async fn settle(
    memories: &Memories,
    owner: &Key,
    cache_of: impl Fn(&Key) -> Option<Informer>,
    kind: &Kind,
    key: Option<&Key>,
) -> Result<()> {
    let concerns =
        |write: &&Pending| write.kind == *kind && key.is_none_or(|key| write.key == *key);
    let pending = memories.with_known(owner, |memory| {
        memory.pending.iter().filter(concerns).cloned().collect::<Vec<Pending>>()
    });
    for write in pending.unwrap_or_default() {
        let Pending { key, uid, until, .. } = &write;
        if let Some(informer) = cache_of(key) {
            let seen = informer.wait_for_object(key, uid, until, PATIENCE).await;
            seen.map_err(|_| {
                Error::Stale(format!("{kind} {key} was written and is not seen yet"))
            })?;
        }
        memories.with(owner, |memory| memory.pending.retain(|other| *other != write));
    }
    Ok(())
}
