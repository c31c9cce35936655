//! What a reconcile can do: read from the cache, write to the API, report status.
//!
//! Reads of kinds the controller declared (`owns`, `watches`, `reads`, and its own kind) come from
//! the cache and wait until the cache has seen what this key wrote before. Reads of other kinds go
//! to the API. A context never starts a watch.

mod announce;
mod apply;
mod barrier;
mod external;
mod finalizer;
mod memory;
mod notes;
mod owner;
mod read;
mod request;
mod set;
mod status;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;

use crate::Env;
use crate::cache::Informer;
use crate::event::Recorder;
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::lease::Fence;
use crate::trigger::Trigger;

pub use crate::event::EventType;
pub(crate) use barrier::settle;
pub(crate) use memory::{Memories, Memory};
use notes::Notes;
pub(crate) use status::Mark;

/// What a write changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Created,
    /// The object was there and is different now.
    Changed,
    /// The object is gone, or on its way out.
    Deleted,
    /// Nothing changed.
    Unchanged,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Unchanged => "unchanged",
        })
    }
}

/// The result of [`Context::apply`].
#[derive(Debug, Clone)]
pub struct Applied<T> {
    /// The object as the API has it now.
    pub object: Arc<T>,
    /// What the write changed.
    pub change: Change,
}

/// What all reconciles of one controller share.
pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) env: Env,
    pub(crate) client: kube::Client,
    /// The caches of the declared kinds.
    pub(crate) informers: BTreeMap<Kind, Informer>,
    /// The namespace the caches are limited to.
    pub(crate) namespace: Option<String>,
    pub(crate) recorder: Recorder,
    pub(crate) memories: Arc<Memories>,
    /// Closed while another process leads.
    pub(crate) fence: Fence,
    /// How long a request may take.
    pub(crate) request_limit: Duration,
    /// The kind whose cache holds only labelled objects: good for the primary and nothing else.
    pub(crate) labelled: Option<Kind>,
}

/// One reconcile's view of the cluster; cheap to clone.
pub struct Context<K> {
    run: Arc<Run<K>>,
}

struct Run<K> {
    shared: Arc<Shared>,
    key: Key,
    triggers: Vec<Trigger>,
    /// The newest version of the primary that this reconcile knows of.
    primary: Mutex<Arc<K>>,
    notes: Mutex<Notes>,
}

impl<K: Object> Context<K> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        key: Key,
        triggers: Vec<Trigger>,
        primary: Arc<K>,
    ) -> Self {
        let (primary, notes) = (Mutex::new(primary), Mutex::default());
        Self { run: Arc::new(Run { shared, key, triggers, primary, notes }) }
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.env().now()
    }

    /// The environment.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.run.shared.env
    }

    /// The client, for what the context has no method for. Reads through it are not cached, and
    /// later reads do not wait for writes through it.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        &self.run.shared.client
    }

    /// The key of the object being reconciled.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.run.key
    }

    /// The name of the controller, which is also its field manager.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.run.shared.name
    }

    /// Why this reconcile runs.
    #[must_use]
    pub fn triggers(&self) -> &[Trigger] {
        &self.run.triggers
    }

    /// Records an event about the primary; deduplicated, rate-limited, never waits for the network.
    /// `reason` is one CamelCase word.
    pub fn event(&self, kind: EventType, reason: &str, note: impl Into<String>) {
        self.event_about(&*self.primary(), kind, reason, note);
    }

    /// Records an event about another object.
    pub fn event_about<T: Object>(
        &self,
        object: &T,
        kind: EventType,
        reason: &str,
        note: impl Into<String>,
    ) {
        let shared = &self.run.shared;
        shared.recorder.record(&shared.name, reference(object), kind, reason, note);
    }

    /// The primary as this reconcile last saw or wrote it.
    pub(crate) fn primary(&self) -> Arc<K> {
        self.run.primary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_primary(&self, primary: Arc<K>) {
        *self.run.primary.lock().unwrap_or_else(PoisonError::into_inner) = primary;
    }
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self { run: self.run.clone() }
    }
}

impl<K> fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.run.shared.name)
            .field("key", &self.run.key)
            .field("triggers", &self.run.triggers)
            .finish_non_exhaustive()
    }
}

pub(crate) fn reference<T: Object>(object: &T) -> ObjectReference {
    let (kind, meta) = (Kind::of::<T>(), object.meta());
    ObjectReference {
        api_version: Some(kind.api_version()),
        kind: Some(kind.kind().to_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}
