//! Follows every kind that can be listed and deleted, custom ones as they appear, and keeps the
//! graph. It decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeostat::cache::{Caches, Delta, Informer, Owner, Scope, SourceState};
use homeostat::kube::Discovery;
use homeostat::kube::discovery::Scope as Reach;
use homeostat::queue::Queue;
use homeostat::{Kind, Result, Trigger};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use tokio::sync::Notify;

use super::Surroundings;
use super::graph::{Graph, Uid};
use crate::quota::Recounts;

/// What handlers, workers and the namespace controller share.
pub(crate) struct Monitor {
    caches: Caches,
    graph: Arc<Mutex<Graph>>,
    informers: Mutex<BTreeMap<Kind, Informer>>,
    /// Kinds that are never owners or dependents worth following, but are content of namespaces.
    unfollowed: BTreeSet<Kind>,
    definitions: Informer,
    definitions_changed: Arc<Notify>,
    queues: Queues,
}

#[derive(Clone)]
struct Queues {
    objects: Queue<Uid>,
    namespaces: Queue<Arc<str>>,
    /// Namespaces that are on their way out: every removal inside wakes them.
    terminating: Arc<Mutex<BTreeSet<Arc<str>>>>,
    recounts: Recounts,
}

impl Monitor {
    pub(super) async fn start(
        surroundings: &Surroundings,
        objects: Queue<Uid>,
        namespaces: Queue<Arc<str>>,
        recounts: Recounts,
    ) -> Result<Arc<Self>> {
        let caches = surroundings.caches.clone();
        let definitions = caches.informer(Kind::of::<CustomResourceDefinition>(), Scope::default());
        let definitions_changed = Arc::new(Notify::new());
        let changed = Arc::clone(&definitions_changed);
        definitions.on_event(move |_| changed.notify_one());
        definitions.start();
        definitions.wait_for_state(is_decided).await;
        let custom = custom_kinds(&definitions);
        let (followed, unfollowed) = discover(surroundings).await?;
        let monitor = Self {
            caches,
            graph: Arc::default(),
            informers: Mutex::default(),
            unfollowed,
            definitions,
            definitions_changed,
            queues: Queues { objects, namespaces, terminating: Arc::default(), recounts },
        };
        for kind in followed.into_iter().chain(custom) {
            monitor.follow(&kind);
        }
        for informer in monitor.followed() {
            informer.wait_for_state(is_decided).await;
        }
        Ok(Arc::new(monitor))
    }

    /// Starts and ends followings as definitions of custom kinds come and go.
    pub(super) async fn follow_definitions(self: Arc<Self>) {
        let mut known = custom_kinds(&self.definitions);
        loop {
            let served = custom_kinds(&self.definitions);
            for kind in served.difference(&known) {
                self.follow(kind);
                // Owners of the new kind were unknown until now.
                let owned = self.graph().owned();
                for uid in owned {
                    self.queues.objects.add(uid, Trigger::Source("definitions".into()));
                }
            }
            for kind in known.difference(&served) {
                self.leave(kind);
            }
            known = served;
            self.definitions_changed.notified().await;
        }
    }

    fn follow(&self, kind: &Kind) {
        let mut informers = lock(&self.informers);
        if informers.contains_key(kind) {
            return;
        }
        let informer = self.caches.informer(kind.clone(), Scope::default());
        let (graph, queues) = (Arc::clone(&self.graph), self.queues.clone());
        let (own, is_namespace) = (kind.clone(), *kind == Kind::of::<Namespace>());
        informer.on_event(move |delta| {
            let look = lock(&graph).take(&own, delta);
            for uid in look {
                queues.objects.add(uid, trigger(&own, delta));
            }
            queues.tell_namespace(delta, is_namespace);
            queues.recounts.tell(&own, delta);
        });
        informer.start();
        informers.insert(kind.clone(), informer);
    }

    fn leave(&self, kind: &Kind) {
        lock(&self.informers).remove(kind);
        // A definition ends after its objects; one that is still there only serves another version.
        let definitions = self.definitions.list::<CustomResourceDefinition>(None);
        let is_defined = definitions.iter().any(|definition| {
            let spec = &definition.spec;
            spec.group == kind.group() && spec.names.plural == kind.plural()
        });
        // Not in the head of the loop: the graph would stay locked throughout.
        let left = self.graph().of_kind(kind);
        for uid in left {
            let mut graph = self.graph();
            let look = if is_defined { graph.remove(&uid) } else { graph.end(&uid) };
            drop(graph);
            for uid in look {
                self.queues.objects.add(uid, Trigger::Source("definitions".into()));
            }
        }
    }

    /// The graph as of now; hold it shortly.
    pub(crate) fn graph(&self) -> MutexGuard<'_, Graph> {
        lock(&self.graph)
    }

    /// Looks at an object again.
    pub(super) fn visit(&self, uid: Uid) {
        self.queues.objects.add(uid, Trigger::Source("owner".into()));
    }

    /// The kind an owner reference names: this version of it, or the one that is followed.
    pub(super) fn kind_of(&self, owner: &Owner) -> Option<Kind> {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let informers = lock(&self.informers);
        informers.keys().find(|k| k.kind() == owner.kind && k.group() == group).cloned()
    }

    /// The caches of all kinds that are followed.
    pub(super) fn followed(&self) -> Vec<Informer> {
        lock(&self.informers).values().cloned().collect()
    }

    /// Every kind whose objects live in namespaces.
    pub(crate) fn namespaced_kinds(&self) -> Vec<Kind> {
        let followed: BTreeSet<Kind> = lock(&self.informers).keys().cloned().collect();
        followed.union(&self.unfollowed).filter(|kind| kind.is_namespaced()).cloned().collect()
    }

    /// Ends the special attention to a namespace.
    pub(crate) fn forget_namespace(&self, namespace: &str) {
        lock(&self.queues.terminating).remove(namespace);
    }
}

impl Queues {
    fn tell_namespace(&self, delta: &Delta, is_namespace: bool) {
        let header = &delta.object().header;
        if is_namespace {
            if delta.new.is_none() {
                lock(&self.terminating).remove(header.key.name());
            } else if header.is_being_deleted() {
                let namespace: Arc<str> = Arc::from(header.key.name());
                lock(&self.terminating).insert(Arc::clone(&namespace));
                self.namespaces.add(namespace, Trigger::Initial);
            }
            return;
        }
        let Some(namespace) = header.key.namespace() else { return };
        if lock(&self.terminating).contains(namespace) {
            self.namespaces.add(Arc::from(namespace), Trigger::Source("content".into()));
        }
    }
}

fn trigger(kind: &Kind, delta: &Delta) -> Trigger {
    Trigger::Event { change: delta.change, kind: kind.clone(), key: delta.key().clone() }
}

fn is_decided(state: &SourceState) -> bool {
    matches!(state, SourceState::Synced | SourceState::Pending(_))
}

/// The kinds to follow, and the listable ones not worth following (events: many, and never owned).
async fn discover(surroundings: &Surroundings) -> Result<(BTreeSet<Kind>, BTreeSet<Kind>)> {
    let discovery = Discovery::new(surroundings.client.clone()).run_aggregated().await?;
    let (mut followed, mut unfollowed) = (BTreeSet::new(), BTreeSet::new());
    for group in discovery.groups_alphabetical() {
        for (resource, capabilities) in group.recommended_resources() {
            let can = |verb: &str| capabilities.operations.iter().any(|known| known == verb);
            if !can("list") || !can("delete") {
                continue;
            }
            let kind = Kind::new(
                resource.group,
                resource.version,
                resource.kind,
                resource.plural,
                capabilities.scope == Reach::Namespaced,
            );
            if can("watch") && kind.kind() != "Event" {
                followed.insert(kind);
            } else {
                unfollowed.insert(kind);
            }
        }
    }
    Ok((followed, unfollowed))
}

/// The custom kinds that are served, each in its storage version.
fn custom_kinds(definitions: &Informer) -> BTreeSet<Kind> {
    let mut kinds = BTreeSet::new();
    for definition in definitions.list::<CustomResourceDefinition>(None) {
        let conditions = definition.status.as_ref().and_then(|s| s.conditions.as_ref());
        let established = conditions
            .is_some_and(|all| all.iter().any(|c| c.type_ == "Established" && c.status == "True"));
        let spec = &definition.spec;
        let served = spec.versions.iter().filter(|version| version.served);
        let version = served.max_by_key(|version| version.storage);
        if let Some(version) = version.filter(|_| established) {
            kinds.insert(Kind::new(
                &spec.group,
                &version.name,
                &spec.names.kind,
                &spec.names.plural,
                spec.scope == "Namespaced",
            ));
        }
    }
    kinds
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
