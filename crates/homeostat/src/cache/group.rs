//! Several informers of one kind read as one, while the set of them changes: the namespaces that an
//! operator is told to look after, the Secrets that its objects name.
//!
//! A group never reads more than it was told to follow, so permissions for those objects suffice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::audience::{Subscription, tell};
use super::index::{self, Extract};
use super::store::Delta;
use super::{Caches, Entry, Informer, Scope};
use crate::error::Result;
use crate::key::Key;
use crate::kind::{Kind, View};
use crate::trigger::EventKind;

type Handler = Arc<dyn Fn(&Delta) + Send + Sync>;

/// Objects of one kind from scopes that may change at any time; clones are handles on the same
/// group. Scopes are told apart, so two that overlap tell of an object twice.
///
/// ```
/// use homeostat::Kind;
/// use homeostat::cache::{Caches, Scope};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
///
/// # homeostat_testing::on_cluster(async |cluster| {
/// # let (client, env) = (cluster.client.clone(), cluster.env.clone());
/// # let namespace = &*cluster.namespace;
/// # cluster.create::<ConfigMap>(json!({ "metadata": { "name": "a" } })).await;
/// let caches = Caches::new(client, env);
/// let configs = caches.group(Kind::of::<ConfigMap>());
/// configs.follow([Scope::namespace(namespace)]);
/// assert!(configs.wait_for_sync().await);
/// assert!(configs.entries().iter().any(|entry| entry.header.key.name() == "a"));
///
/// configs.follow([]); // what is not followed any more cannot be read
/// assert!(configs.entries().is_empty());
/// # });
/// ```
#[derive(Clone)]
pub struct Group {
    caches: Caches,
    kind: Kind,
    /// Whether a controller declares it, and cannot work without it.
    declared: bool,
    /// Held while the set changes, so that its changes are told one after the other.
    turn: Arc<Mutex<()>>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    members: BTreeMap<Scope, Member>,
    handlers: Vec<Handler>,
    /// Kept by every member.
    indexes: Vec<(String, Extract)>,
}

struct Member {
    informer: Informer,
    told: Arc<Mutex<Told>>,
    /// Others may hold the informer, and go on when this member has left.
    _subscription: Subscription,
}

/// What the handlers know of one member; `None` once it has left.
type Told = Option<BTreeMap<Key, Arc<Entry>>>;

impl Group {
    pub(super) fn new(caches: Caches, kind: Kind) -> Self {
        Self { caches, kind, declared: false, turn: Arc::default(), inner: Arc::default() }
    }

    /// The same for a controller that cannot work without it.
    pub(super) fn declared(self) -> Self {
        Self { declared: true, ..self }
    }

    /// Follows these scopes from now on. New ones are started; whatever was only in scopes that are
    /// no longer among them is told as deleted and can no longer be read.
    pub fn follow(&self, scopes: impl IntoIterator<Item = Scope>) {
        let wanted: BTreeSet<Scope> = scopes.into_iter().collect();
        let _turn = lock(&self.turn);
        let (handlers, left) = {
            let mut inner = self.lock();
            let known: Vec<Scope> = inner.members.keys().cloned().collect();
            let left = known.iter().filter(|scope| !wanted.contains(scope));
            let left: Vec<Member> = left.filter_map(|scope| inner.members.remove(scope)).collect();
            (inner.handlers.clone(), left)
        };
        // Told without the lock: whoever hears of it may look at what is still there.
        for member in left {
            // From here on the member's own events say nothing any more.
            let told = lock(&member.told).take();
            for entry in told.into_iter().flat_map(BTreeMap::into_values) {
                let change = EventKind::Deleted;
                let gone = Delta { change, old: Some(entry), new: None, initial: false };
                handlers.iter().for_each(|handler| tell(&self.kind, &**handler, &gone));
            }
        }
        let mut inner = self.lock();
        let indexes = inner.indexes.clone();
        for scope in wanted {
            inner
                .members
                .entry(scope)
                .or_insert_with_key(|scope| self.member(scope.clone(), &handlers, &indexes));
        }
    }

    fn member(&self, scope: Scope, handlers: &[Handler], indexes: &[(String, Extract)]) -> Member {
        let informer = self.caches.informer(self.kind.clone(), scope);
        if self.declared {
            informer.declare();
        }
        for (name, extract) in indexes {
            informer.index_by(name, extract.clone());
        }
        let told = Arc::new(Mutex::new(Some(BTreeMap::new())));
        let (known, handlers) = (Arc::clone(&told), handlers.to_vec());
        let kind = self.kind.clone();
        let subscription = informer.subscribe(move |delta| {
            let mut known = lock(&known);
            let Some(known) = &mut *known else { return };
            match &delta.new {
                Some(new) => known.insert(delta.key().clone(), Arc::clone(new)),
                None => known.remove(delta.key()),
            };
            handlers.iter().for_each(|handler| tell(&kind, &**handler, delta));
        });
        informer.start();
        Member { informer, told, _subscription: subscription }
    }

    /// Calls `handler` for every change in the scopes followed from the next [`Self::follow`] on;
    /// to be called before it. It must be quick, and must not change the group; it may read it.
    pub fn on_event(&self, handler: impl Fn(&Delta) + Send + Sync + 'static) {
        self.lock().handlers.push(Arc::new(handler));
    }

    /// Keeps an index by the field at `path` in every scope, as [`Informer::index_field`].
    pub fn index_field(&self, path: &str) {
        self.index_by(path, index::field(path));
    }

    pub(crate) fn index_by(&self, name: &str, extract: Extract) {
        let mut inner = self.lock();
        for member in inner.members.values() {
            member.informer.index_by(name, extract.clone());
        }
        inner.indexes.push((name.to_owned(), extract));
    }

    /// The objects that an index has under `value`, untyped, in key order.
    ///
    /// # Errors
    /// A terminal [`crate::Error`] when there is no index of that name.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Arc<Entry>>> {
        let mut by_key = BTreeMap::new();
        for informer in self.informers() {
            let found = informer.by_index(name, value)?.into_iter();
            by_key.extend(found.map(|entry| (entry.header.key.clone(), entry)));
        }
        Ok(by_key.into_values().collect())
    }

    /// The object of that key as type `K`; `None` when no scope has it.
    ///
    /// # Errors
    /// [`crate::Error::Decode`] when the object does not fit the type.
    pub fn get<K: View>(&self, key: &Key) -> Result<Option<Arc<K>>> {
        for informer in self.informers() {
            if let Some(found) = informer.get(key)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// All objects, untyped, in key order.
    #[must_use]
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        let entries = self.informers().into_iter().flat_map(|informer| informer.entries());
        let by_key: BTreeMap<Key, Arc<Entry>> =
            entries.map(|entry| (entry.header.key.clone(), entry)).collect();
        by_key.into_values().collect()
    }

    /// The informers of the scopes that are followed now.
    #[must_use]
    pub fn informers(&self) -> Vec<Informer> {
        self.lock().members.values().map(|member| member.informer.clone()).collect()
    }

    /// The informer of one scope; `None` when it is not followed now.
    #[must_use]
    pub fn informer(&self, scope: &Scope) -> Option<Informer> {
        self.lock().members.get(scope).map(|member| member.informer.clone())
    }

    /// Waits until every scope that is followed now is in sync; `false` when one was stopped.
    pub async fn wait_for_sync(&self) -> bool {
        for informer in self.informers() {
            if !informer.wait_for_sync().await {
                return false;
            }
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("kind", &format_args!("{}", self.kind))
            .field("informers", &self.informers())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
