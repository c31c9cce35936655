//! The informers of one client: one per kind and scope, shared by whoever asks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use homeostat_env::Env;
use serde_json::Value;

use super::group::Group;
use super::informer::{Handle, Informer};
use crate::key::Key;
use crate::kind::Kind;
use crate::metrics::SourceMetrics;
use crate::watch::driver::Source;

/// Which objects of a kind; the default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// Only those of this namespace.
    pub namespace: Option<String>,
    /// Only those that match this label selector.
    pub labels: Option<String>,
    /// Only those that match this field selector; servers know few fields.
    pub fields: Option<String>,
    /// Only the metadata of each, to be read as [`kube::core::PartialObjectMeta`]; off by default.
    pub metadata_only: bool,
}

impl Scope {
    /// The objects of one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// One object alone. A watch on it needs the permission for that name only.
    #[must_use]
    pub fn object(key: &Key) -> Self {
        let namespace = key.namespace().map(str::to_owned);
        let fields = Some(format!("metadata.name={}", key.name()));
        Self { namespace, fields, ..Self::default() }
    }

    /// Only those of them that match this label selector; a second one narrows the first.
    #[must_use]
    pub fn labels(mut self, selector: impl AsRef<str>) -> Self {
        narrow(&mut self.labels, selector.as_ref());
        self
    }

    /// Only those of them that match this field selector, too; servers know few fields.
    #[must_use]
    pub fn fields(mut self, selector: impl AsRef<str>) -> Self {
        narrow(&mut self.fields, selector.as_ref());
        self
    }

    /// Only their metadata: what they are called, whose they are, how they are labelled. Such a
    /// cache is small, and its watch carries little.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }
}

/// Only what matches this selector, too.
fn narrow(known: &mut Option<String>, selector: &str) {
    match known {
        Some(known) if !known.is_empty() && !selector.is_empty() => {
            known.push(',');
            known.push_str(selector);
        }
        Some(_) if selector.is_empty() => {}
        _ => *known = Some(selector.to_owned()),
    }
}

/// Changes what is kept of an object before it is cached; see [`Caches::with_transform`].
#[derive(Clone)]
pub struct Transform(Arc<dyn Fn(&mut Value) + Send + Sync>);

impl Transform {
    pub(crate) fn apply(&self, object: &mut Value) {
        (self.0)(object);
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}

/// The shared informers of one client; clones are handles on the same set.
#[derive(Clone)]
pub struct Caches {
    shared: Arc<Shared>,
}

struct Shared {
    client: kube::Client,
    env: Env,
    keep_managed_fields: bool,
    transforms: BTreeMap<Kind, Transform>,
    metrics: SourceMetrics,
    informers: Mutex<Informers>,
}

#[derive(Default)]
struct Informers {
    /// Weak: an informer that nobody holds any more stops.
    known: BTreeMap<(Kind, Scope), Weak<Handle>>,
    /// With so many the stopped ones among them are looked for: seldom enough to cost nothing.
    sweep_at: usize,
}

/// Below so many informers it is not worth while to look for stopped ones.
const FEW: usize = 32;

impl Informers {
    fn sweep(&mut self) {
        if self.known.len() >= self.sweep_at.max(FEW) {
            self.known.retain(|_, handle| handle.strong_count() > 0);
            self.sweep_at = 2 * self.known.len();
        }
    }
}

impl Caches {
    /// No informers yet; `managedFields` will be cut out of what is cached.
    #[must_use]
    pub fn new(client: kube::Client, env: Env) -> Self {
        Self::build(client, env, false, BTreeMap::new(), SourceMetrics::default())
    }

    /// The same, its sources counted in `metrics`.
    pub(crate) fn counted(client: kube::Client, env: Env, metrics: SourceMetrics) -> Self {
        Self::build(client, env, false, BTreeMap::new(), metrics)
    }

    /// The same, with `managedFields` kept; they cost about as much memory as the rest.
    #[must_use]
    pub fn with_managed_fields(client: kube::Client, env: Env) -> Self {
        Self::build(client, env, true, BTreeMap::new(), SourceMetrics::default())
    }

    /// Another set of informers, without any yet, that caches objects of that kind only after
    /// `transform`: whatever it removes takes no memory and cannot be read. Names, labels, owners
    /// and the rest of the header stay as the server sent them. A second one comes after the first.
    #[must_use]
    pub fn with_transform(
        &self,
        kind: Kind,
        transform: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        let Shared { client, env, keep_managed_fields, transforms, metrics, .. } = &*self.shared;
        let mut transforms = transforms.clone();
        let first = transforms.remove(&kind);
        let both = move |object: &mut Value| {
            first.iter().for_each(|first| first.apply(object));
            transform(object);
        };
        transforms.insert(kind, Transform(Arc::new(both)));
        let (client, env, metrics) = (client.clone(), env.clone(), metrics.clone());
        Self::build(client, env, *keep_managed_fields, transforms, metrics)
    }

    /// Another set of informers, without any yet, that keeps `managedFields`.
    pub(crate) fn keeping_managed_fields(&self) -> Self {
        let Shared { client, env, transforms, metrics, .. } = &*self.shared;
        Self::build(client.clone(), env.clone(), true, transforms.clone(), metrics.clone())
    }

    fn build(
        client: kube::Client,
        env: Env,
        keep_managed_fields: bool,
        transforms: BTreeMap<Kind, Transform>,
        metrics: SourceMetrics,
    ) -> Self {
        let informers = Mutex::default();
        let shared = Shared { client, env, keep_managed_fields, transforms, metrics, informers };
        Self { shared: Arc::new(shared) }
    }

    /// The informer of a kind and scope: the one somebody holds already, or a new one that waits
    /// for [`Informer::start`]. It stops when its last handle is dropped.
    #[must_use]
    pub fn informer(&self, kind: Kind, scope: Scope) -> Informer {
        let mut informers = self.shared.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.sweep();
        let id = (kind, scope);
        if let Some(handle) = informers.known.get(&id).and_then(Weak::upgrade)
            && !handle.is_stopped()
        {
            return Informer::of(handle);
        }
        let source = Source {
            kind: id.0.clone(),
            namespace: id.1.namespace.clone(),
            labels: id.1.labels.clone(),
            fields: id.1.fields.clone(),
            metadata_only: id.1.metadata_only,
            keep_managed_fields: self.shared.keep_managed_fields,
            transform: self.shared.transforms.get(&id.0).cloned(),
        };
        let (client, env) = (self.shared.client.clone(), self.shared.env.clone());
        let counts = self.shared.metrics.of(&id.0);
        let handle = Arc::new(Handle::new(client, env, source, counts));
        informers.known.insert(id, Arc::downgrade(&handle));
        Informer::of(handle)
    }

    /// What is cached of an object of that kind, whose JSON is `object`.
    pub(crate) fn transform(&self, kind: &Kind, object: &mut Value) {
        if let Some(transform) = self.shared.transforms.get(kind) {
            transform.apply(object);
        }
    }

    /// Several informers of a kind that are read as one; it follows nothing yet.
    #[must_use]
    pub fn group(&self, kind: Kind) -> Group {
        Group::new(self.clone(), kind)
    }

    /// All informers that somebody holds, ordered by kind and scope.
    #[must_use]
    pub fn informers(&self) -> Vec<Informer> {
        let informers = self.shared.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.known.values().filter_map(Weak::upgrade).map(Informer::of).collect()
    }

    /// Stops every informer; what they hold stays readable and no longer changes.
    pub fn stop(&self) {
        for informer in self.informers() {
            informer.stop();
        }
    }
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.informers()).finish()
    }
}
