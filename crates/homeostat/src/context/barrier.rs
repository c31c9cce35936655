//! Read your own writes: a read waits until the cache has seen what this key wrote.
//!
//! Kept per key, not per kind: a list waits only for the writes of reconciles of its own key, the
//! last reconcile's included, so that nothing is made twice because its event is still on the way.

use std::sync::Arc;

use kube::core::{ObjectMeta, Selector};
use tokio::time::Instant;

use super::follow::Place;
use super::{Context, Memory, PATIENCE, Shared};
use crate::cache::{Expect, Informer, KindCache, Labels, Wanted};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{AnyObject, Kind, Object};

/// With so many writes on the list those that the caches show are looked for.
const MANY: usize = 16;

/// A write that the cache may not show yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(super) uid: String,
    /// What the cache must have seen of it.
    pub(super) until: Expect,
    /// The labels that it left the object with, where they say which caches will show it.
    pub(super) labels: Option<Arc<Labels>>,
    /// Whether its fields keep it out of the declared cache, which then will not show it.
    pub(super) left_out: bool,
    /// A version that was to be seen before the object went: until then it may come yet.
    pub(super) after: Option<String>,
    /// When its answer came.
    pub(super) made: Instant,
}

impl Pending {
    pub(super) fn of(uid: String, until: Expect, made: Instant) -> Self {
        Self { uid, until, labels: None, left_out: false, after: None, made }
    }

    /// It is the end of an object of which `earlier` is waited for: a cache that has yet to show the
    /// object does not show its end.
    pub(super) fn ends(&mut self, earlier: &Self) {
        (self.labels, self.left_out) = (earlier.labels.clone(), earlier.left_out);
        self.after = match &earlier.until {
            Expect::Version(version) => Some(version.clone()),
            _ => earlier.after.clone(),
        };
    }

    pub(super) fn is_shown_by(&self, key: &Key, cache: &Informer) -> bool {
        cache.shows(self.wanted_of(key, cache))
    }

    fn wanted_of<'a>(&'a self, key: &'a Key, cache: &Informer) -> Wanted<'a> {
        let by_labels = self.labels.as_ref().is_some_and(|labels| cache.leaves_out(labels));
        let left_out = by_labels || (self.left_out && cache.selects_by_fields());
        let (expect, after) = (&self.until, self.after.as_deref());
        Wanted { key, uid: &self.uid, expect, left_out, after, made: self.made }
    }
}

impl<K: AnyObject> Context<K> {
    /// Later reads of that object, and lists of its kind, wait until it is gone or going.
    pub(super) fn expect_end(&self, kind: &Kind, key: &Key, uid: Option<&str>, until: Expect) {
        let uid = uid.unwrap_or_default().to_owned();
        self.expect(kind, key, Pending::of(uid, until, self.env().instant()));
    }

    /// Later reads of that object, and lists of its kind, wait for that version of it.
    pub(super) fn expect_version(&self, kind: &Kind, key: &Key, meta: &ObjectMeta) {
        let (Some(uid), Some(revision)) = (&meta.uid, &meta.resource_version) else { return };
        let until = Expect::Version(revision.clone());
        let labels = || Arc::new(meta.labels.clone().unwrap_or_default());
        let labels = self.run.shared.selects_by_labels(kind).then(labels);
        let write = Pending::of(uid.clone(), until, self.env().instant());
        self.expect(kind, key, Pending { labels, ..write });
    }

    fn expect(&self, kind: &Kind, key: &Key, pending: Pending) {
        let (shared, owner) = (&self.run.shared, &self.run.key);
        // What no cache can show is read from the API, which has it already.
        if shared.caches_of(owner, kind, key).next().is_some() {
            let place = (kind.clone(), key.clone());
            shared.memories.with(owner, |memory| memory.expect(place, pending));
        }
    }

    /// Waits until `cache` shows the writes of this key to one object.
    pub(super) async fn settle(&self, kind: &Kind, key: &Key, cache: &Informer) -> Result<()> {
        self.run.shared.settle(&self.run.key, kind, Some((key, cache))).await
    }

    /// Waits until the declared cache of `kind` shows the writes of this key to it.
    pub(super) async fn settle_all(&self, kind: &Kind) -> Result<()> {
        self.run.shared.settle(&self.run.key, kind, None).await
    }

    /// The cache that would show that much of the object `key` if it is there.
    pub(super) fn cache_of(&self, kind: &Kind, key: &Key, part: Part) -> Option<Informer> {
        let declared = self.declared_cache_of(kind, key, part);
        declared.or_else(|| self.run.shared.followed(&self.run.key, kind, key))
    }

    /// The same among those of the declared kinds. One that is limited to a selection answers only
    /// for what it holds, and is not waited for: what it lacks, or does not show yet, has the API.
    pub(super) fn declared_cache_of(&self, kind: &Kind, key: &Key, part: Part) -> Option<Informer> {
        let cache = self.run.shared.caches.get(kind).filter(|cache| part.is_in(cache))?;
        let informer = self.run.shared.declared(kind, key)?;
        let holds = || informer.entry(key).is_some() && self.is_shown(cache, kind, Some(key));
        (!cache.is_selective() || holds()).then_some(informer)
    }

    /// The caches that together have all objects of a declared kind in `namespace` (in all that the
    /// controller looks after) that match `selector`; `None` when they are limited to another
    /// namespace or selection, or know less of them.
    pub(super) fn caches(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
        part: Part,
    ) -> Option<Vec<Informer>> {
        let fits = |cache: &&KindCache| part.is_in(cache) && cache.knows_all(selector);
        let cache = self.run.shared.caches.get(kind).filter(fits)?;
        let informers = cache.informers_of(namespace)?;
        let is_there = informers.iter().all(Informer::is_synced)
            && (!cache.is_selective() || self.is_shown(cache, kind, None));
        is_there.then_some(informers)
    }

    /// The caches that keep the indexes of a declared kind in `namespace`, in the same way.
    pub(super) fn indexed_caches(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> Option<Vec<Informer>> {
        let cache = self.run.shared.caches.get(kind).filter(|cache| Part::Whole.is_in(cache))?;
        cache.informers_of(namespace)
    }

    /// Whether a cache shows the writes of this key to `kind` (to one object of it) already.
    fn is_shown(&self, cache: &KindCache, kind: &Kind, key: Option<&Key>) -> bool {
        // Looked at without the memory's lock: a cache may hold one of its own.
        let writes = self.run.shared.writes_to(&self.run.key, kind, key);
        writes.iter().all(|((_, key), write)| {
            // What is out of its reach it never shows.
            let informer = cache.informer(key.namespace());
            informer.is_none_or(|informer| write.is_shown_by(key, &informer))
        })
    }
}

impl Shared {
    /// Waits until the cache of the primaries shows what reconciles of `owner` wrote to it.
    pub(crate) async fn settle_primary(&self, owner: &Key, cache: &Informer) -> Result<()> {
        self.settle(owner, &self.kind, Some((owner, cache))).await
    }

    /// Forgets the writes that the caches show, if there are many: what is never read again would
    /// be waited for in vain, for ever.
    pub(crate) fn tidy(&self, owner: &Key) {
        let many = |memory: &mut Memory| {
            let is_many = memory.pending.len() >= MANY;
            is_many.then(|| memory.pending.clone())
        };
        // Looked at without the memory's lock: a cache may hold one of its own.
        let pending = self.memories.with_known(owner, many).flatten();
        for (place, write) in pending.into_iter().flatten() {
            self.forget_if_shown(owner, &place, &write);
        }
    }

    /// What reconciles of `owner` wrote to objects of `kind`, or to one of them, as far as it is
    /// waited for.
    pub(super) fn writes_to(
        &self,
        owner: &Key,
        kind: &Kind,
        key: Option<&Key>,
    ) -> Vec<(Place, Pending)> {
        let all = |memory: &mut Memory| {
            let all = memory.pending_of(kind, key);
            all.map(|(place, write)| (place.clone(), write.clone())).collect()
        };
        self.memories.with_known(owner, all).unwrap_or_default()
    }

    /// Waits until a cache shows what reconciles of `owner` wrote to one object, or the declared
    /// cache what they wrote to any object of `kind`.
    async fn settle(
        &self,
        owner: &Key,
        kind: &Kind,
        object: Option<(&Key, &Informer)>,
    ) -> Result<()> {
        let writes = self.writes_to(owner, kind, object.map(|(key, _)| key));
        if writes.is_empty() {
            return Ok(());
        }
        // Boxed: it is seldom needed, and every worker would have room for it.
        Box::pin(self.settle_writes(owner, kind, object.map(|(_, cache)| cache), writes)).await
    }

    async fn settle_writes(
        &self,
        owner: &Key,
        kind: &Kind,
        cache: Option<&Informer>,
        writes: Vec<(Place, Pending)>,
    ) -> Result<()> {
        for (place, write) in writes {
            let key = &place.1;
            if let Some(cache) = cache.cloned().or_else(|| self.declared(kind, key)) {
                let wanted = write.wanted_of(key, &cache);
                if cache.wait_for_write(wanted, PATIENCE).await.is_err() {
                    self.stale.inc();
                    if !cache.can_tell(wanted) {
                        // Waiting longer would tell no more: the versions are no numbers.
                        self.forget(owner, &place, &write);
                    }
                    let why = format!("{kind} {key} was written and is not seen yet");
                    return Err(Error::Stale(why));
                }
            }
            self.forget_if_shown(owner, &place, &write);
        }
        Ok(())
    }

    /// Forgets a write that every cache shows: a kind may have several, and they are not in step.
    fn forget_if_shown(&self, owner: &Key, place: &Place, write: &Pending) {
        let mut caches = self.caches_of(owner, &place.0, &place.1);
        if caches.all(|cache| write.is_shown_by(&place.1, &cache)) {
            self.forget(owner, place, write);
        }
    }

    fn forget(&self, owner: &Key, place: &Place, write: &Pending) {
        self.memories.with(owner, |memory| {
            // Unless there was another write meanwhile.
            if memory.pending.get(place) == Some(write) {
                memory.pending.remove(place);
            }
        });
    }

    /// Whether any cache of a kind knows only the objects with certain labels.
    fn selects_by_labels(&self, kind: &Kind) -> bool {
        let own = Some(&self.primaries).filter(|_| *kind == self.kind);
        let mut all = self.caches.get(kind).into_iter().chain(own);
        all.any(|cache| cache.selection().0.is_some())
    }

    /// Whatever may show the object `key` to reconciles of `owner`. The cache of the primaries is one of
    /// them even where reads go to another one of the kind: it is what a reconcile is given first.
    fn caches_of(&self, owner: &Key, kind: &Kind, key: &Key) -> impl Iterator<Item = Informer> {
        let is_primary = *kind == self.kind && key == owner;
        let own = || self.primaries.informer(key.namespace()).filter(Informer::is_synced);
        let own = is_primary.then(own).flatten();
        [self.declared(kind, key), self.followed(owner, kind, key), own].into_iter().flatten()
    }

    /// The cache of a declared kind in whose part of the cluster the object `key` is.
    fn declared(&self, kind: &Kind, key: &Key) -> Option<Informer> {
        // A namespace may have joined a moment ago.
        self.caches.get(kind)?.informer(key.namespace()).filter(Informer::is_synced)
    }

    /// The watch on an object that `owner` follows.
    fn followed(&self, owner: &Key, kind: &Kind, key: &Key) -> Option<Informer> {
        let place = (kind.clone(), key.clone());
        self.follows.informer(owner, &place).filter(Informer::is_synced)
    }
}

/// How much of an object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Metadata,
}

impl Part {
    /// What type `T` can show.
    pub(super) fn of<T: Object>() -> Self {
        if T::metadata_api() { Self::Metadata } else { Self::Whole }
    }

    fn is_in(self, cache: &KindCache) -> bool {
        self == Self::Metadata || !cache.is_metadata_only()
    }
}
