//! Single objects that a reconcile depends on and that its controller does not watch as a kind: the
//! Secret that a spec names. Each has a watch of its own for as long as somebody follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::barrier::Part;
use super::{Context, PATIENCE};
use crate::cache::{Caches, Delta, Informer, Scope, SourceState, Subscription};
use crate::controller;
use crate::error::{Error, Result};
use crate::key::{Key, NameOrKey};
use crate::kind::{AnyObject, Kind, Object, View};
use crate::queue::Queue;
use crate::trigger::{EventKind, Trigger};

/// One object of the API.
pub(super) type Place = (Kind, Key);

impl<K: AnyObject> Context<K> {
    /// Reads an object, by its name beside the primary or by its key, and runs this reconcile again
    /// whenever it changes, comes or goes: for a Secret or ConfigMap that the primary names. `None` if
    /// there is none (yet).
    ///
    /// Its kind need not be declared and permission for that one object suffices: it has a watch of
    /// its own, shared by all keys that follow it. It is followed until a reconcile of this key ends
    /// well (or with a terminal error) without asking for it again. For many objects of a kind
    /// [`crate::Controller::watches`] is cheaper.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     let Some(name) = config.annotations().get("password-in") else { return Ok(Outcome::Done) };
    ///     let seen = match ctx.follow::<Secret>(name).await? {
    ///         Some(secret) => secret.resource_version().unwrap_or_default(),
    ///         None => "none yet".to_owned(), // its coming wakes this reconcile
    ///     };
    ///     let note = serde_json::json!({ "data": { "seen": seen } });
    ///     ctx.merge_patch_primary(&note).await?;
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let running = cluster.start(Controller::new(reconcile)).await;
    /// #     let named = serde_json::json!({ "name": "web", "annotations": { "password-in": "s" } });
    /// #     cluster.create::<ConfigMap>(serde_json::json!({ "metadata": named })).await;
    /// #     let says = |words: String| move |web: &ConfigMap| {
    /// #         web.data.as_ref().is_some_and(|data| data["seen"] == words)
    /// #     };
    /// #     cluster.until_one("web", "no secret", says("none yet".to_owned())).await;
    /// #     let secret: Secret = cluster.create(serde_json::json!({ "metadata": { "name": "s" } })).await;
    /// #     cluster.until_one("web", "a secret", says(secret.resource_version().unwrap())).await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// Transient when the object cannot be watched: no permission, no such kind, no answer in 5 s.
    pub async fn follow<T: Object>(&self, object: impl NameOrKey) -> Result<Option<Arc<T>>> {
        let kind = Kind::of::<T>();
        self.follow_of(&kind, &self.key_meant(&kind, &object)).await
    }

    /// The same for an object of any kind and namespace.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub async fn follow_of<T: View>(&self, kind: &Kind, key: &Key) -> Result<Option<Arc<T>>> {
        let (follows, place) = (&self.run.shared.follows, (kind.clone(), key.clone()));
        self.note(|diary| diary.followed.insert(place.clone()));
        if self.declared_cache_of(kind, key, Part::Metadata).is_some() {
            follows.add(&self.run.key, &place);
            // Its namespace may have left the set before anybody knew who follows it.
            if self.declared_cache_of(kind, key, Part::Metadata).is_some() {
                return self.get_of(kind, key).await;
            }
        }
        let (informer, subscription) = follows.watch(&self.run.key, &place);
        // Read only once its changes are heard of: one in between would be nobody's event.
        let joined = self.env().timeout(PATIENCE, subscription.joined()).await;
        let known =
            |state: &SourceState| matches!(state, SourceState::Synced | SourceState::Pending(_));
        if joined.is_err() || !informer.is_synced() {
            let state = self.env().timeout(PATIENCE, informer.wait_for_state(known)).await;
            let why = match state {
                _ if joined.is_err() => Some("no answer".to_owned()),
                Ok(SourceState::Synced) => None,
                Ok(SourceState::Pending(why)) => Some(why),
                _ => Some("no answer".to_owned()),
            };
            if let Some(why) = why {
                return Err(Error::transient(format!("{kind} {key} cannot be followed: {why}")));
            }
        }
        self.get_of(kind, key).await
    }

    /// What this reconcile followed.
    pub(crate) fn take_followed(&self) -> BTreeSet<Place> {
        self.noted(|diary| std::mem::take(&mut diary.followed)).unwrap_or_default()
    }
}

/// What the keys of one controller follow.
pub(crate) struct Follows {
    caches: Caches,
    queue: Queue<Key>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    targets: BTreeMap<Place, Target>,
    /// What each key follows.
    by_follower: BTreeMap<Key, BTreeSet<Place>>,
}

#[derive(Default)]
struct Target {
    /// `None` where the cache of a declared kind tells of it.
    watch: Option<(Informer, Arc<Subscription>)>,
    followers: BTreeSet<Key>,
}

impl Follows {
    pub(crate) fn new(caches: Caches, queue: Queue<Key>) -> Arc<Self> {
        Arc::new(Self { caches, queue, table: Mutex::default() })
    }

    /// The caches it watches with.
    pub(super) fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Wakes those who follow the object that changed. The first list is no change: whoever follows
    /// has read it.
    pub(crate) fn wake(&self, kind: &Kind, delta: &Delta) {
        if delta.initial {
            return;
        }
        let table = self.lock();
        if table.targets.is_empty() {
            return;
        }
        let place = (kind.clone(), delta.key().clone());
        for follower in table.targets.get(&place).into_iter().flat_map(|t| &t.followers) {
            self.queue.add(follower.clone(), controller::trigger(kind, delta));
        }
    }

    /// Wakes those who follow something in a namespace whose caches are gone, which told of it.
    pub(crate) fn left(&self, namespace: &str) {
        let table = self.lock();
        for ((kind, key), target) in &table.targets {
            if target.watch.is_none() && key.namespace() == Some(namespace) {
                let (change, kind, key) = (EventKind::Deleted, kind.clone(), key.clone());
                let trigger = Trigger::Event { change, kind, key };
                for follower in &target.followers {
                    self.queue.add(follower.clone(), trigger.clone());
                }
            }
        }
    }

    fn add(&self, follower: &Key, place: &Place) {
        self.lock().add(follower, place);
    }

    /// Follows an object that no declared cache tells of.
    fn watch(self: &Arc<Self>, follower: &Key, place: &Place) -> (Informer, Arc<Subscription>) {
        let mut table = self.lock();
        let target = table.add(follower, place);
        let begin = || {
            // Others may watch it too, and go on when nobody here follows it any more.
            let informer = self.caches.informer(place.0.clone(), Scope::object(&place.1));
            let (follows, kind) = (Arc::downgrade(self), place.0.clone());
            let subscription = informer.subscribe(move |delta| {
                if let Some(follows) = Weak::upgrade(&follows) {
                    follows.wake(&kind, delta);
                }
            });
            informer.start();
            (informer, Arc::new(subscription))
        };
        target.watch.get_or_insert_with(begin).clone()
    }

    /// The watch on an object that `follower` follows.
    pub(super) fn informer(&self, follower: &Key, place: &Place) -> Option<Informer> {
        let table = self.lock();
        let target = table.targets.get(place)?;
        let watch = target.watch.as_ref().filter(|_| target.followers.contains(follower));
        watch.map(|(informer, _)| informer.clone())
    }

    /// A reconcile has ended that followed `places`: with `only` the key follows nothing else.
    pub(crate) fn ended(&self, follower: &Key, places: &BTreeSet<Place>, only: bool) {
        let mut table = self.lock();
        let followed = table.by_follower.get(follower).into_iter().flatten();
        let left: Vec<Place> =
            followed.filter(|place| only && !places.contains(place)).cloned().collect();
        left.iter().for_each(|place| table.remove(follower, place));
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn add(&mut self, follower: &Key, place: &Place) -> &mut Target {
        self.by_follower.entry(follower.clone()).or_default().insert(place.clone());
        let target = self.targets.entry(place.clone()).or_default();
        target.followers.insert(follower.clone());
        target
    }

    fn remove(&mut self, follower: &Key, place: &Place) {
        if let Some(places) = self.by_follower.get_mut(follower) {
            places.remove(place);
            if places.is_empty() {
                self.by_follower.remove(follower);
            }
        }
        if let Some(target) = self.targets.get_mut(place) {
            target.followers.remove(follower);
            if target.followers.is_empty() {
                // Its informer stops with its last handle.
                self.targets.remove(place);
            }
        }
    }
}
