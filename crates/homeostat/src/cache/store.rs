//! The objects of one informer, ordered by key, with exact deltas for whatever changes them.
//!
//! It never calls anybody and never waits; the informer carries its deltas to the handlers.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::{Extract, Index};
use super::owners::Owners;
use super::revision;
use super::{Entry, Header};
use crate::key::Key;
use crate::trigger::EventKind;
use crate::watch::Unreadable;

/// A change of one object in the cache.
#[derive(Debug, Clone)]
pub struct Delta {
    /// What happened.
    pub change: EventKind,
    /// The object before; `None` when it was added.
    pub old: Option<Arc<Entry>>,
    /// The object after; `None` when it was deleted.
    pub new: Option<Arc<Entry>>,
    /// Whether the object was there before the handler: the first list, or a late handler.
    pub initial: bool,
}

impl Delta {
    /// The object after, or the last known one when it was deleted.
    ///
    /// # Panics
    /// Never for deltas of this crate: one of the two is always there.
    #[must_use]
    pub fn object(&self) -> &Arc<Entry> {
        #[expect(clippy::expect_used, reason = "a delta always has an object")]
        self.new.as_ref().or(self.old.as_ref()).expect("a delta has an old or a new object")
    }

    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.object().header.key
    }

    pub(crate) fn added(entry: Arc<Entry>, initial: bool) -> Self {
        Self { change: EventKind::Added, old: None, new: Some(entry), initial }
    }
}

/// Objects by key, and by the uid of their owners.
#[derive(Debug, Default)]
pub struct Store {
    entries: BTreeMap<Key, Arc<Entry>>,
    by_owner: Owners,
    indexes: BTreeMap<String, Index>,
    /// Objects whose newest version, of this revision, cannot be read: of what was read before the
    /// last stays in `entries`.
    unreadable: BTreeMap<Key, String>,
    /// The list in progress.
    listing: Option<Listing>,
    /// Whether the list in progress may replace newer versions: a new history has begun.
    new_history: bool,
    /// The store is complete up to here; `None` before the first list has ended.
    revision: Option<String>,
    /// Whether something whose name could not be read came since the last list that had no such
    /// thing: then it is complete but for that.
    is_doubtful: bool,
}

/// A list in progress.
#[derive(Debug, Default)]
struct Listing {
    /// Keys that it has not shown yet; what is left of them at its end is gone.
    unseen: BTreeSet<Key>,
    /// Whether it has shown something whose name cannot be read, which may be any of them.
    is_doubtful: bool,
}

impl Store {
    /// A list begins. With `new_history` its versions count even where they look older.
    pub fn begin_list(&mut self, new_history: bool) {
        let unseen = self.entries.keys().chain(self.unreadable.keys()).cloned().collect();
        self.listing = Some(Listing { unseen, is_doubtful: false });
        self.new_history = new_history;
    }

    /// An object as the server has it, from a list or a watch. An older version than the cached one
    /// is ignored; an equal one is no change; another uid is a deletion and an addition.
    pub fn apply(&mut self, entry: Entry) -> Vec<Delta> {
        let key = entry.header.key.clone();
        self.note_shown(&key);
        let is_ghost = !self.mend(&entry) && self.is_ghost(&entry.header.resource_version);
        let entry = Arc::new(entry);
        let old = match self.entries.entry(key.clone()) {
            Place::Occupied(known) => Arc::clone(known.get()),
            Place::Vacant(_) if is_ghost => return Vec::new(),
            Place::Vacant(place) => {
                place.insert(Arc::clone(&entry));
                self.note(&key, &entry);
                return vec![Delta::added(entry, false)];
            }
        };
        let (was, is) = (&old.header, &entry.header);
        // A restored server counts anew: a version may have the number of another one of before.
        let is_equal = || !self.new_history || old.json() == entry.json();
        if was.uid == is.uid && was.resource_version == is.resource_version && is_equal() {
            return Vec::new();
        }
        if !self.new_history && revision::is_earlier(&is.resource_version, &was.resource_version) {
            return Vec::new();
        }
        let same = was.uid == is.uid;
        self.remove(&key);
        self.insert(key, &entry);
        if same {
            let change = EventKind::Updated;
            return vec![Delta { change, old: Some(old), new: Some(entry), initial: false }];
        }
        vec![deleted(old), Delta::added(entry, false)]
    }

    /// An object that the server says is deleted. Its last state becomes the delta's old one;
    /// a deletion older than the cached version is ignored.
    pub fn delete(&mut self, entry: Entry) -> Option<Delta> {
        let key = &entry.header.key;
        self.mend(&entry);
        let cached = &self.entries.get(key)?.header;
        let gone = &entry.header;
        if revision::is_earlier(&gone.resource_version, &cached.resource_version) {
            return None;
        }
        let known = self.remove(key)?;
        // Of another of that name, whose making could not be read, nobody was told.
        let is_same = known.header.uid == entry.header.uid;
        Some(deleted(if is_same { Arc::new(entry) } else { known }))
    }

    /// An object that cannot be read. What is cached of it stays, known to be old, until a version
    /// comes that can be read or it is gone: nobody is told that something was deleted which is there.
    pub fn skip(&mut self, object: &Unreadable) -> Option<Delta> {
        let Some(key) = &object.key else {
            self.is_doubtful = true;
            if let Some(listing) = &mut self.listing {
                listing.is_doubtful = true;
            }
            return None;
        };
        self.note_shown(key);
        let cached = self.entries.get(key).map(|entry| &entry.header);
        let is_known = cached.is_some_and(|Header { resource_version: cached, .. }| {
            let is_cached = !object.gone && *cached == object.revision;
            is_cached || revision::is_earlier(&object.revision, cached)
        });
        let is_new = cached.is_none() && !self.unreadable.contains_key(key);
        if (is_known && !self.new_history) || (is_new && self.is_ghost(&object.revision)) {
            return None;
        }
        let is_another = |cached: &Header| !object.uid.is_empty() && *cached.uid != *object.uid;
        let is_gone = object.gone || cached.is_some_and(is_another);
        if object.gone {
            self.unreadable.remove(key);
        } else {
            self.unreadable.insert(key.clone(), object.revision.clone());
        }
        is_gone.then(|| self.remove(key).map(deleted)).flatten()
    }

    /// The list is complete at `revision`: whatever it did not show is deleted.
    pub fn end_list(&mut self, revision: &str) -> Vec<Delta> {
        if self.new_history {
            self.revision = None;
        }
        self.new_history = false;
        self.advance(revision);
        let Listing { unseen, is_doubtful } = self.listing.take().unwrap_or_default();
        if is_doubtful {
            let kept = |key: Key| {
                let entry = self.entries.get(&key)?;
                Some((key, entry.header.resource_version.clone()))
            };
            let kept: Vec<_> = unseen.into_iter().filter_map(kept).collect();
            self.unreadable.extend(kept);
            return Vec::new();
        }
        self.is_doubtful = false;
        self.unreadable.retain(|key, _| !unseen.contains(key));
        unseen.iter().filter_map(|key| self.remove(key)).map(deleted).collect()
    }

    /// Whether a list has begun and not ended.
    pub(super) fn is_listing(&self) -> bool {
        self.listing.is_some()
    }

    /// A watch has told everything up to `revision`; a list in progress proves nothing yet.
    pub fn watched(&mut self, revision: &str) {
        if self.listing.is_none() && !revision.is_empty() {
            self.advance(revision);
        }
    }

    /// The store is complete up to `revision`, which never goes back.
    fn advance(&mut self, revision: &str) {
        let known = self.revision.as_deref();
        if !known.is_some_and(|known| revision::is_earlier(revision, known)) {
            self.revision = Some(revision.to_owned());
        }
    }

    /// Up to where the store is complete; `None` before the first list has ended.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// The object of that key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    /// Whether the newest version of that object cannot be read: what is cached of it, if anything
    /// is, is an older one.
    #[must_use]
    pub fn is_unreadable(&self, key: &Key) -> bool {
        self.unreadable.contains_key(key)
    }

    /// The keys of all such objects, in order.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.unreadable.keys()
    }

    /// All objects, or those of one namespace, in key order.
    pub fn iter<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Entry>> + use<'a> {
        let first = match namespace {
            Some(namespace) => Key::namespaced(namespace, ""),
            None => Key::cluster(""),
        };
        self.entries
            .range(first..)
            .take_while(move |(key, _)| namespace.is_none() || key.namespace() == namespace)
            .map(|(_, entry)| entry)
    }

    /// The objects with an owner of that uid, in key order.
    pub fn by_owner<'a>(&'a self, uid: &str) -> impl Iterator<Item = &'a Arc<Entry>> + use<'a> {
        self.by_owner.find(uid).into_iter().filter_map(|key| self.entries.get(key))
    }

    /// Keeps an index of that name from now on, unless there is one.
    pub(super) fn add_index(&mut self, name: &str, extract: Extract) {
        if !self.indexes.contains_key(name) {
            let mut index = Index::new(extract);
            self.entries.values().for_each(|entry| index.insert(entry));
            self.indexes.insert(name.to_owned(), index);
        }
    }

    /// The objects that an index has under `value`, in key order, or why nobody knows.
    pub(super) fn by_index(&self, name: &str, value: &str) -> Result<Vec<Arc<Entry>>, String> {
        let Some(index) = self.indexes.get(name) else {
            return Err(format!("has no index {name}; declare it first"));
        };
        if let Some((key, said)) = index.broken() {
            return Err(format!("has an index {name} that panicked on {key}: {said}"));
        }
        Ok(index.find(value).filter_map(|key| self.entries.get(key)).cloned().collect())
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A relist by a server that lags behind shows objects that are long deleted: whatever is older
    /// than the revision up to which the store is complete would be in it if it were alive. In doubt a
    /// list is taken at its word, and one is asked for that does not lag.
    fn is_ghost(&self, revision: &str) -> bool {
        let known = self.revision.as_deref();
        self.listing.is_some()
            && !self.new_history
            && !self.is_doubtful
            && known.is_some_and(|known| revision::is_earlier(revision, known))
    }

    /// Takes note that the list in progress has that object.
    fn note_shown(&mut self, key: &Key) {
        if let Some(listing) = &mut self.listing {
            listing.unseen.remove(key);
        }
    }

    /// Takes note that an object can be read, at its end at least; whether it could not be before.
    /// An older version proves nothing.
    fn mend(&mut self, entry: &Entry) -> bool {
        let Header { key, resource_version, .. } = &entry.header;
        let Some(known) = self.unreadable.get(key) else { return false };
        if !self.new_history && revision::is_earlier(resource_version, known) {
            return false;
        }
        self.unreadable.remove(key).is_some()
    }

    fn insert(&mut self, key: Key, entry: &Arc<Entry>) {
        self.note(&key, entry);
        self.entries.insert(key, Arc::clone(entry));
    }

    /// Takes note of whose an object is and of what the indexes find in it.
    fn note(&mut self, key: &Key, entry: &Arc<Entry>) {
        for owner in &*entry.header.owners {
            self.by_owner.insert(&owner.uid, key);
        }
        self.indexes.values_mut().for_each(|index| index.insert(entry));
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Entry>> {
        let entry = self.entries.remove(key)?;
        for owner in &*entry.header.owners {
            self.by_owner.remove(&owner.uid, key);
        }
        self.indexes.values_mut().for_each(|index| index.remove(&entry));
        Some(entry)
    }
}

fn deleted(old: Arc<Entry>) -> Delta {
    Delta { change: EventKind::Deleted, old: Some(old), new: None, initial: false }
}
