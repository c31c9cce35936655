//! Reading an informer's cache: typed or not, by key, namespace, labels or owner; never waits.

use std::sync::{Arc, PoisonError};

use kube::core::{Selector, SelectorExt};

use super::{Entry, Informer, Store, index};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::View;

impl Informer {
    /// The object of that key as type `K`; `None` when the cache does not have it. The last 32
    /// objects read stay decoded.
    ///
    /// # Errors
    /// [`crate::Error::Decode`] when the object does not fit the type.
    pub fn get<K: View>(&self, key: &Key) -> Result<Option<Arc<K>>> {
        self.entry(key).map(|entry| self.typed(&entry)).transpose()
    }

    /// All objects, or those of one namespace, in key order. An object that does not fit the type
    /// is left out and reported to the log: one broken object must not stop work on the others.
    #[must_use]
    pub fn list<K: View>(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.typed_all(self.read(|store| store.iter(namespace).cloned().collect()))
    }

    /// The same for those whose labels match; see [`super::selector::parse`].
    #[must_use]
    pub fn select<K: View>(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<K>> {
        self.typed_all(self.select_entries(namespace, selector))
    }

    /// The same, untyped.
    #[must_use]
    pub fn select_entries(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<Entry>> {
        let matching = |entry: &&Arc<Entry>| selector.matches(&entry.header.labels);
        self.read(|store| store.iter(namespace).filter(matching).cloned().collect())
    }

    /// The objects whose newest version cannot be read (it is no object, or its transform panicked),
    /// in key order: the cache has an older version of them, or none, until one comes that can be.
    #[must_use]
    pub fn unreadable(&self) -> Vec<Key> {
        self.read(|store| store.unreadable().cloned().collect())
    }

    /// The objects that have an owner (controller or not) of that uid, in key order.
    #[must_use]
    pub fn by_owner(&self, uid: &str) -> Vec<Arc<Entry>> {
        self.read(|store| store.by_owner(uid).cloned().collect())
    }

    /// The same as type `K`; objects that do not fit it are left out and reported to the log.
    #[must_use]
    pub fn owned_by<K: View>(&self, uid: &str) -> Vec<Arc<K>> {
        self.typed_all(self.by_owner(uid))
    }

    /// Keeps an index by the field at `path`, such as `spec.nodeName`; lists on the way are followed
    /// into every element (`spec.volumes.secret.secretName`). The path is its name.
    pub fn index_field(&self, path: &str) {
        self.index_by(path, index::field(path));
    }

    /// Keeps an index by whatever values `extract` finds. It must depend on the object alone; of two
    /// of one name the first counts.
    pub fn index(
        &self,
        name: &str,
        extract: impl Fn(&Entry) -> Vec<String> + Send + Sync + 'static,
    ) {
        self.index_by(name, Arc::new(extract));
    }

    pub(crate) fn index_by(&self, name: &str, extract: index::Extract) {
        self.write(|store| store.add_index(name, extract));
    }

    /// The objects that an index has under `value`, untyped, in key order.
    ///
    /// # Errors
    /// A terminal [`crate::Error`] when there is no index of that name, or its function panicked on
    /// an object that is cached: that one might be missing.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Arc<Entry>>> {
        let found = self.read(|store| store.by_index(name, value));
        found.map_err(|why| Error::terminal(format!("{} {why}", self.kind())))
    }

    /// The object of that key, untyped.
    #[must_use]
    pub fn entry(&self, key: &Key) -> Option<Arc<Entry>> {
        self.read(|store| store.get(key).cloned())
    }

    /// All objects, untyped, in key order.
    #[must_use]
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.read(|store| store.iter(None).cloned().collect())
    }

    /// How many objects are cached.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read(Store::len)
    }

    /// Whether none is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn typed<K: View>(&self, entry: &Arc<Entry>) -> Result<Arc<K>> {
        self.typed_once(entry, true)
    }

    /// The same; with `keep` it stays decoded for the next who reads it.
    pub(crate) fn typed_once<K: View>(&self, entry: &Arc<Entry>, keep: bool) -> Result<Arc<K>> {
        let recent = || self.handle.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(typed) = recent().get(entry) {
            return Ok(typed);
        }
        // Decoded without the lock; two who read the same object at once may both do it.
        let typed = entry.decode_shared::<K>()?;
        if keep {
            let gone = recent().put(entry, &typed);
            drop(gone);
        }
        Ok(typed)
    }

    fn typed_all<K: View>(&self, entries: Vec<Arc<Entry>>) -> Vec<Arc<K>> {
        let typed = entries.into_iter().map(|entry| entry.decode_shared::<K>());
        typed
            .filter_map(|decoded| {
                decoded.inspect_err(|error| tracing::warn!(%error, "left out of a list")).ok()
            })
            .collect()
    }
}
