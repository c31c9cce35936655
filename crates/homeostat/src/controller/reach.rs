//! How far a controller reaches: everywhere, one namespace, or several that may change while it
//! runs.
//!
//! The primaries of a namespace that joins are heard of only when everything else of that namespace
//! is in its caches, so that no reconcile meets half a namespace. One namespace that cannot be read
//! holds up no other. Primaries without a namespace are shown what all of them hold, and look again
//! whenever they become others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{pending, select_all};

use super::everything::Everything;
use crate::cache::{Caches, Informer, KindCache, Namespaces, Scope};
use crate::context::Follows;
use crate::key::Key;
use crate::kind::Kind;
use crate::queue::Queue;
use crate::trigger::Trigger;

/// What wakes primaries without a namespace when the set has changed.
const SOURCE: &str = "namespaces";

/// Which namespaces.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    Everywhere,
    One(String),
    Several(Namespaces),
}

impl Reach {
    /// The namespaces it is limited to, if it is.
    pub(super) fn namespaces(&self) -> Option<Namespaces> {
        match self {
            Self::Everywhere => None,
            Self::One(namespace) => Some(Namespaces::new([&**namespace])),
            Self::Several(namespaces) => Some(namespaces.clone()),
        }
    }

    /// The cache of a kind that reaches as far.
    pub(super) fn cache(&self, caches: &Caches, kind: &Kind, scope: Scope) -> KindCache {
        match self {
            Self::One(namespace) => {
                let namespace = Some(namespace.clone());
                KindCache::one(caches, kind, Scope { namespace, ..scope })
            }
            Self::Several(_) if kind.is_namespaced() => KindCache::each(caches, kind, scope),
            Self::Everywhere | Self::Several(_) => KindCache::one(caches, kind, scope),
        }
    }
}

/// The caches of a controller that follow a changing set of namespaces.
pub(super) struct Following {
    pub(super) namespaces: Namespaces,
    pub(super) caches: Caches,
    pub(super) kind: Kind,
    pub(super) everything: Everything,
    pub(super) related: Vec<KindCache>,
    pub(super) follows: Arc<Follows>,
    pub(super) queue: Queue<Key>,
    /// The namespaces that the caches follow.
    pub(super) known: BTreeSet<String>,
}

impl Following {
    /// Starts on the namespaces of this moment, and gives their informers.
    pub(super) fn begin(&mut self) -> Vec<Informer> {
        let namespaces = self.namespaces.get();
        self.known.clone_from(&namespaces);
        self.related.iter().for_each(|cache| cache.follow(&namespaces));
        let related = self.related.iter().flat_map(KindCache::informers);
        let primaries = namespaces.iter().filter(|_| self.primaries().is_each());
        related.chain(primaries.map(|namespace| self.prefetch(namespace))).collect()
    }

    fn primaries(&self) -> &KindCache {
        &self.everything.primaries
    }

    /// Fills the cache of primaries, though nobody hears of them before [`Self::run`] says so.
    fn prefetch(&self, namespace: &str) -> Informer {
        let informer = self.caches.informer(self.kind.clone(), self.primaries().scope(namespace));
        informer.declare();
        informer.start();
        informer
    }

    /// Follows the set for ever.
    pub(super) async fn run(mut self) {
        let mut news = self.namespaces.subscribe();
        let (mut ready, mut prefetched) = (BTreeSet::new(), BTreeMap::new());
        loop {
            let wanted = news.borrow_and_update().clone();
            self.related.iter().for_each(|cache| cache.follow(&wanted));
            ready.retain(|namespace| wanted.contains(namespace));
            self.primaries().follow(&ready);
            // What they follow there has a watch of its own from now on, or nobody tells of it.
            self.known.difference(&wanted).for_each(|namespace| self.follows.left(namespace));
            self.look_again(&wanted);
            self.known.clone_from(&wanted);
            let unready: BTreeSet<String> = wanted.difference(&ready).cloned().collect();
            prefetched.retain(|namespace, _| unready.contains(namespace));
            for namespace in unready.iter().filter(|_| self.primaries().is_each()) {
                let informer = || self.prefetch(namespace);
                prefetched.entry(namespace.clone()).or_insert_with(informer);
            }
            let next = async {
                if unready.is_empty() {
                    return pending().await;
                }
                select_all(unready.iter().map(|namespace| self.ready(namespace).boxed())).await.0
            };
            tokio::select! {
                biased;
                changed = news.changed() => if changed.is_err() { return },
                namespace = next => {
                    ready.insert(namespace);
                }
            }
        }
    }

    /// Wakes the primaries that belong to no namespace, if the set is another one now. Whoever was
    /// woken by a part of the change alone may have met the rest of the set as it was.
    fn look_again(&self, wanted: &BTreeSet<String>) {
        if self.known == *wanted || self.primaries().is_each() {
            return;
        }
        self.everything.wake(&self.queue, &Trigger::Source(SOURCE.to_owned()));
    }

    /// Ends when everything but the primaries of `namespace` is in the caches.
    async fn ready(&self, namespace: &str) -> String {
        for informer in self.related.iter().filter_map(|cache| cache.informer(Some(namespace))) {
            if !informer.wait_for_sync().await {
                pending::<()>().await;
            }
            // Another controller may have filled it before: what is read now must be heard of.
            informer.handlers_joined().await;
        }
        namespace.to_owned()
    }
}
