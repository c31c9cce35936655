//! What a reconcile can do: read from the cache, write to the API, report status.
//!
//! Reads of kinds the controller declared (`owns`, `watches`, `reads`, and its own kind) come from
//! the cache and wait until the cache has seen what this key wrote before. Reads of other kinds go
//! to the API. The only watch that a context starts is that of [`Context::follow`].

mod announce;
mod apply;
mod barrier;
mod claim;
mod delete;
mod diary;
mod external;
mod finalizer;
mod follow;
mod live;
mod memory;
mod notes;
mod owner;
mod patch;
mod read;
mod replace;
mod request;
mod select;
mod set;
mod status;
mod unseen;
mod voice;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use prometheus_client::metrics::counter::Counter;

use crate::Env;
use crate::cache::{KindCache, Namespaces};
use crate::error::Result;
use crate::event::{EventDraft, Recorder};
use crate::hotloop::HotLoop;
use crate::key::Key;
use crate::kind::{self, AnyObject, Kind};
use crate::lease::Fence;
use crate::trigger::{Trigger, Triggers};

use diary::Diary;

pub use crate::event::EventType;
pub(crate) use follow::Follows;
pub(crate) use memory::{Memories, Memory};
pub(crate) use status::Mark;

/// How long a reconcile waits for a cache before it is tried again.
const PATIENCE: Duration = Duration::from_secs(5);

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
    /// What was asked for, beside the last time.
    wish: Wish,
}

/// What an apply asks for, beside what the one before asked for the same child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// The same.
    Same,
    /// Something else.
    Different,
    /// This process has not applied it before.
    First,
}

/// What all reconciles of one controller share.
pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    /// The kind of the primaries.
    pub(crate) kind: Kind,
    pub(crate) env: Env,
    pub(crate) client: kube::Client,
    /// Those that the controller looks after; `None` where it looks after all.
    pub(crate) namespaces: Option<Namespaces>,
    /// The cache of the primaries.
    pub(crate) primaries: KindCache,
    /// The caches of the declared kinds that reads go to.
    pub(crate) caches: BTreeMap<Kind, KindCache>,
    /// The declared kinds that have no cache.
    pub(crate) uncached: BTreeSet<Kind>,
    /// What the caches call the declared indexes.
    pub(crate) indexes: Arc<BTreeMap<(Kind, String), String>>,
    /// Single objects.
    pub(crate) follows: Arc<Follows>,
    pub(crate) recorder: Recorder,
    pub(crate) memories: Arc<Memories>,
    /// Closed while another process leads.
    pub(crate) fence: Fence,
    /// How often a cache was waited for in vain.
    pub(crate) stale: Counter,
    /// How many reconciles have begun.
    pub(crate) begun: AtomicU64,
    /// How long a request may take.
    pub(crate) request_limit: Duration,
    /// Whether the runtime speaks in the conditions of the primaries.
    pub(crate) marks_status: bool,
    /// What counts as a hot loop, if anything does.
    pub(crate) hot_loop: Option<HotLoop>,
    /// The finalizers that any reconcile has asked for.
    pub(crate) finalizers: Mutex<BTreeSet<String>>,
}

impl Shared {
    /// A number for the reconcile that begins, counted from 1.
    pub(crate) fn next_id(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// One reconcile's view of the cluster; cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use homeostat::kube::ResourceExt;
/// use homeostat::{Change, Context, EventType, Outcome, Result};
///
/// /// A secret beside every config map, with a word from the config map `defaults`.
/// async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
///     // Read, and run again whenever it changes.
///     let defaults = ctx.follow::<ConfigMap>("defaults").await?;
///     let data = defaults.and_then(|defaults| defaults.data.clone()).unwrap_or_default();
///     let secret = Secret {
///         metadata: homeostat::kube::core::ObjectMeta {
///             name: Some(format!("{}-secret", config.name_any())),
///             ..Default::default()
///         },
///         string_data: Some(data),
///         ..Default::default()
///     };
///     // Owned by the config map; no write when nothing would change.
///     let applied = ctx.apply(secret).await?;
///     if applied.change == Change::Created {
///         ctx.event(EventType::Normal, "Prepared", "a secret of its own");
///     }
///     // What was just written is read.
///     assert_eq!(ctx.owned::<Secret>().await?.len(), 1);
///     Ok(Outcome::Done)
/// }
/// # use homeostat::Controller;
/// # use serde_json::json;
/// # homeostat_testing::on_cluster(async |cluster| {
/// #     let defaults = json!({ "metadata": { "name": "defaults" }, "data": { "word": "yes" } });
/// #     cluster.create::<ConfigMap>(defaults).await;
/// #     let running = cluster.start(Controller::new(reconcile).owns::<Secret>()).await;
/// #     cluster.create::<ConfigMap>(json!({ "metadata": { "name": "web" } })).await;
/// #     cluster.until_one::<Secret>("web-secret", "a secret", |made| made.data.is_some()).await;
/// #     running.stop().await.unwrap();
/// # });
/// ```
pub struct Context<K> {
    run: Arc<Run<K>>,
}

struct Run<K> {
    shared: Arc<Shared>,
    key: Key,
    triggers: Triggers,
    /// The generation of the primary that this reconcile was given.
    generation: Option<i64>,
    /// The newest version of the primary that this reconcile knows of.
    primary: Mutex<Arc<K>>,
    /// Whether that version is known to have no condition of the runtime's.
    is_sound: AtomicBool,
    /// Whether this reconcile itself said how ready the primary is.
    said_ready: AtomicBool,
    /// Whether something that tells nobody when it goes was in the way: a thing outside the cluster,
    /// an object that an index cannot read.
    waits_outside: AtomicBool,
    /// What this reconcile did and said so far.
    diary: Mutex<Option<Box<Diary>>>,
}

impl<K: AnyObject> Context<K> {
    pub(crate) fn new(shared: Arc<Shared>, key: Key, triggers: Triggers, primary: Arc<K>) -> Self {
        let run = Run {
            shared,
            key,
            triggers,
            generation: primary.meta().generation,
            primary: Mutex::new(primary),
            is_sound: AtomicBool::new(false),
            said_ready: AtomicBool::new(false),
            waits_outside: AtomicBool::new(false),
            diary: Mutex::default(),
        };
        Self { run: Arc::new(run) }
    }

    /// The primary, as long as this reconcile does not write it, has nothing that the runtime said.
    pub(crate) fn needs_no_mending(&self) {
        self.run.is_sound.store(true, Ordering::Relaxed);
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

    /// The client, for what the context has no method for. Nothing takes note of what is sent with it:
    /// reads are not answered by the cache, later reads do not wait for writes, the journal names
    /// neither, and a hot loop whose writes go this way is found by the number of reconciles alone.
    /// It has the time limit of the controller's requests, and no write is sent while another process
    /// leads.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        &self.run.shared.client
    }

    /// The key of the object being reconciled.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.run.key
    }

    /// The kind of the object being reconciled.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.run.shared.kind
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
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::ConfigMap;
    /// # use homeostat::k8s_openapi::api::events::v1::Event;
    /// use homeostat::{Context, Controller, EventType, Outcome, Result};
    ///
    /// async fn reconcile(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     ctx.event(EventType::Normal, "Seen", "somebody looked at it");
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let running = cluster.start(Controller::new(reconcile)).await;
    /// #     cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": "web" } })).await;
    /// #     let seen = |event: &Event| event.reason.as_deref() == Some("Seen");
    /// #     cluster.until::<Event>("an event", |all| all.iter().any(seen)).await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    pub fn event(&self, kind: EventType, reason: &str, note: impl Into<String>) {
        self.event_about(&*self.primary(), kind, reason, note);
    }

    /// Records an event about another object.
    pub fn event_about<T: AnyObject>(
        &self,
        object: &T,
        kind: EventType,
        reason: &str,
        note: impl Into<String>,
    ) {
        let shared = &self.run.shared;
        shared.recorder.record(&shared.name, reference(object), kind, reason, note);
    }

    /// Records an event that has more to say: another object, what was being done.
    pub fn event_with(&self, draft: EventDraft) {
        let shared = &self.run.shared;
        shared.recorder.record_draft(&shared.name, reference(&*self.primary()), draft);
    }

    /// The kind of an object; one that says it only at run time must be of a declared kind.
    fn kind_of<T: AnyObject>(&self, object: &T) -> Result<Kind> {
        let shared = &self.run.shared;
        kind::of_object(object, shared.caches.keys().chain(&shared.uncached))
    }

    /// The primary as this reconcile last saw or wrote it.
    pub(crate) fn primary(&self) -> Arc<K> {
        self.run.primary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_primary(&self, primary: Arc<K>) {
        self.run.is_sound.store(false, Ordering::Relaxed);
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

pub(crate) fn reference<T: AnyObject>(object: &T) -> ObjectReference {
    let (api_version, kind) = match Kind::of_type::<T>() {
        Some(kind) => (kind.api_version(), kind.kind().to_owned()),
        None => {
            let said = kind::types(object);
            (said.api_version, said.kind)
        }
    };
    let meta = object.meta();
    ObjectReference {
        api_version: Some(api_version),
        kind: Some(kind),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}
