//! The cache of one kind as a controller has it: one informer, or one for each of its namespaces.
//!
//! It only finds the informer that answers a question; it never waits and never asks the API.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kube::core::Selector;

use super::index::Extract;
use super::{Caches, Delta, Entry, Group, Informer, Scope, selector};
use crate::error::Result;
use crate::key::Key;
use crate::kind::{Kind, View};

/// The cache of one kind; cheap to clone.
#[derive(Clone)]
pub(crate) struct KindCache {
    source: Source,
    /// What each informer has in common with the others.
    scope: Scope,
}

#[derive(Clone)]
enum Source {
    One(Informer),
    Each(Group),
}

impl KindCache {
    /// One informer for that scope.
    pub(crate) fn one(caches: &Caches, kind: &Kind, mut scope: Scope) -> Self {
        scope.namespace = scope.namespace.filter(|_| kind.is_namespaced());
        let informer = caches.informer(kind.clone(), scope.clone());
        informer.declare();
        Self { source: Source::One(informer), scope }
    }

    /// An informer for each namespace that [`Self::follow`] will name.
    pub(crate) fn each(caches: &Caches, kind: &Kind, scope: Scope) -> Self {
        Self { source: Source::Each(caches.group(kind.clone()).declared()), scope }
    }

    /// Whether it has an informer for each namespace.
    pub(crate) fn is_each(&self) -> bool {
        matches!(self.source, Source::Each(_))
    }

    /// Whether it knows the metadata of its objects and nothing else.
    pub(crate) fn is_metadata_only(&self) -> bool {
        self.scope.metadata_only
    }

    /// Whether it knows only the objects that match a selector.
    pub(crate) fn is_selective(&self) -> bool {
        self.scope.labels.is_some() || self.scope.fields.is_some()
    }

    /// Whether it knows only the objects with certain fields.
    pub(crate) fn has_fields(&self) -> bool {
        self.scope.fields.is_some()
    }

    /// The labels and the fields that it selects by.
    pub(crate) fn selection(&self) -> (Option<&str>, Option<&str>) {
        (self.scope.labels.as_deref(), self.scope.fields.as_deref())
    }

    /// Whether it knows all objects that match `selector`.
    pub(crate) fn knows_all(&self, selector: &Selector) -> bool {
        let within = |own: &String| selector::is_within(selector, own);
        self.scope.fields.is_none() && self.scope.labels.as_ref().is_none_or(within)
    }

    /// How much it knows: of two caches of a kind, reconciles read the one that knows more.
    pub(crate) fn worth(&self) -> (bool, bool) {
        (!self.is_metadata_only(), !self.is_selective())
    }

    /// Whether both are followed by the same informers.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.scope == other.scope
    }

    /// The scope of one namespace.
    pub(crate) fn scope(&self, namespace: &str) -> Scope {
        Scope { namespace: Some(namespace.to_owned()), ..self.scope.clone() }
    }

    /// Follows these namespaces from now on, if it has an informer for each.
    pub(crate) fn follow(&self, namespaces: &BTreeSet<String>) {
        if let Source::Each(group) = &self.source {
            group.follow(namespaces.iter().map(|namespace| self.scope(namespace)));
        }
    }

    /// The informer that follows `namespace`, or everything for `None`; `None` when none does.
    pub(crate) fn informer(&self, namespace: Option<&str>) -> Option<Informer> {
        match &self.source {
            Source::Each(group) => group.informer(&self.scope(namespace?)),
            Source::One(informer) => {
                let limit = self.scope.namespace.as_deref();
                (limit.is_none() || limit == namespace).then(|| informer.clone())
            }
        }
    }

    /// The informers that together follow all of `namespace`, or for `None` all that there is within
    /// reach, in the order of their namespaces; `None` when `namespace` is out of reach.
    pub(crate) fn informers_of(&self, namespace: Option<&str>) -> Option<Vec<Informer>> {
        match namespace {
            Some(_) => self.informer(namespace).map(|informer| vec![informer]),
            None => Some(self.informers()),
        }
    }

    /// All informers that it has at the moment.
    pub(crate) fn informers(&self) -> Vec<Informer> {
        match &self.source {
            Source::One(informer) => vec![informer.clone()],
            Source::Each(group) => group.informers(),
        }
    }

    /// To be called before the first [`Self::follow`].
    pub(crate) fn on_event(&self, handler: impl Fn(&Delta) + Send + Sync + 'static) {
        match &self.source {
            Source::One(informer) => informer.on_event(handler),
            Source::Each(group) => group.on_event(handler),
        }
    }

    pub(crate) fn index(&self, name: &str, extract: &Extract) {
        match &self.source {
            Source::One(informer) => informer.index_by(name, extract.clone()),
            Source::Each(group) => group.index_by(name, extract.clone()),
        }
    }

    pub(crate) fn by_index(&self, name: &str, value: &str) -> Result<Vec<Arc<Entry>>> {
        let mut found = Vec::new();
        for informer in self.informers() {
            found.extend(informer.by_index(name, value)?);
        }
        Ok(found)
    }

    /// The object of that key, as it is kept and as type `K`; with `keep` it stays decoded for a
    /// while.
    pub(crate) fn get<K: View>(
        &self,
        key: &Key,
        keep: bool,
    ) -> Result<Option<(Arc<Entry>, Arc<K>)>> {
        let Some(informer) = self.informer(key.namespace()) else { return Ok(None) };
        let Some(entry) = informer.entry(key) else { return Ok(None) };
        let typed = informer.typed_once(&entry, keep)?;
        Ok(Some((entry, typed)))
    }

    pub(crate) fn entry(&self, key: &Key) -> Option<Arc<Entry>> {
        self.informer(key.namespace())?.entry(key)
    }

    /// All objects, namespace by namespace, in key order.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        self.informers().iter().flat_map(Informer::entries).collect()
    }
}

impl fmt::Debug for KindCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.informers()).finish()
    }
}
