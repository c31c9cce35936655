//! The public face of one followed collection: start it, wait for it, read it, be told of changes.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use homeostat_env::Env;
use kube::core::{Selector, SelectorExt};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::audience::{self, Subscription, Word, Words};
use super::recent::Recent;
use super::{Delta, Labels, Store, selector, task};
use crate::kind::Kind;
use crate::metrics::SourceCounts;
use crate::watch::driver::Source;

/// Who has not been able to follow the API for so long is not ready. When it is away for a moment, it is
/// to find its webhooks where they were, and an informer tries again within a minute.
pub(crate) const CUT_OFF: Duration = Duration::from_secs(120);

/// How a source is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// [`Informer::start`] was not called yet.
    NotStarted,
    /// The first list is under way.
    Syncing,
    /// The cache follows the API.
    Synced,
    /// It does not work at the moment and is tried again: no permission, no such kind, no server.
    Pending(String),
    /// It was stopped.
    Stopped,
}

/// Follows the objects of a kind and scope; clones are handles on the same informer.
///
/// It stops when the last handle is dropped, so a handler must not hold a handle on its own
/// informer (or [`Informer::stop`] must be called).
///
/// ```
/// use homeostat::Kind;
/// use homeostat::cache::{Caches, Scope};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
///
/// # homeostat_testing::on_cluster(async |cluster| {
/// # let (client, env) = (cluster.client.clone(), cluster.env.clone());
/// let caches = Caches::new(client, env);
/// let configs = caches.informer(Kind::of::<ConfigMap>(), Scope::namespace(&*cluster.namespace));
/// configs.index_field("data.team");
/// let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
/// let subscription = configs.subscribe(move |delta| drop(told.send(delta.key().clone())));
/// configs.start();
/// assert!(configs.wait_for_sync().await);
///
/// let config = json!({ "metadata": { "name": "a" }, "data": { "team": "blue" } });
/// cluster.create::<ConfigMap>(config).await;
/// while heard.recv().await.unwrap().name() != "a" {}
/// let blue = configs.by_index("data.team", "blue").unwrap();
/// assert_eq!(blue[0].header.key.name(), "a");
/// drop(subscription); // and nothing more is told
/// # });
/// ```
#[derive(Clone)]
pub struct Informer {
    pub(super) handle: Arc<Handle>,
}

/// What the task and the handles share.
pub(crate) struct Core {
    pub(crate) source: Source,
    /// The labels of the source; `None` as well for what no server understands either.
    selector: Option<Selector>,
    pub(crate) store: RwLock<Store>,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) counts: SourceCounts,
}

/// What waiters look at; sent after every change.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) state: SourceState,
    pub(crate) synced: bool,
    /// When the watch last said something.
    pub(crate) heard: Option<Instant>,
    /// When it first failed after a watch last said something.
    pub(crate) failing: Option<Instant>,
    /// When a list of a new history began that is not complete yet.
    pub(crate) replacing: Option<Instant>,
    /// When the list began with which the server's history was last replaced: versions of writes
    /// from before mean nothing any more.
    pub(crate) replaced: Option<Instant>,
}

impl Progress {
    /// The source is now in that state; whether it was in another one.
    pub(super) fn turn(&mut self, state: SourceState, now: Instant) -> bool {
        if matches!(state, SourceState::Pending(_)) {
            self.failing.get_or_insert(now);
        }
        let is_another = self.state != state;
        self.state = state;
        is_another
    }
}

/// Dropped with the last [`Informer`]; the task holds only the [`Core`].
pub(crate) struct Handle {
    pub(super) core: Arc<Core>,
    /// Whether a controller declares it, and cannot work without it.
    declared: AtomicBool,
    client: kube::Client,
    pub(super) env: Env,
    started: AtomicBool,
    stop: CancellationToken,
    words: Words,
    /// How many handlers there have been.
    handlers: AtomicU64,
    /// Taken by `start`.
    inbox: Mutex<Option<mpsc::UnboundedReceiver<Word>>>,
    pub(super) recent: Mutex<Recent>,
}

impl Handle {
    pub(crate) fn new(
        client: kube::Client,
        env: Env,
        source: Source,
        counts: SourceCounts,
    ) -> Self {
        let (words, inbox) = mpsc::unbounded_channel();
        let progress = Progress {
            state: SourceState::NotStarted,
            synced: false,
            heard: None,
            failing: None,
            replacing: None,
            replaced: None,
        };
        let (progress, _) = watch::channel(progress);
        let selector = source.labels.as_deref().and_then(|labels| selector::parse(labels).ok());
        let store = RwLock::default();
        Self {
            core: Arc::new(Core { source, selector, store, progress, counts }),
            client,
            env,
            started: AtomicBool::new(false),
            declared: AtomicBool::new(false),
            stop: CancellationToken::new(),
            words,
            handlers: AtomicU64::new(0),
            inbox: Mutex::new(Some(inbox)),
            recent: Mutex::default(),
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Informer {
    pub(crate) fn of(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// The kind it follows.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.handle.core.source.kind
    }

    /// A controller cannot work without it.
    pub(crate) fn declare(&self) {
        self.handle.declared.store(true, Ordering::Relaxed);
    }

    /// Whether it only follows a single object for somebody: see [`super::Scope::object`].
    pub(crate) fn is_of_one_object(&self) -> bool {
        let fields = self.handle.core.source.fields.as_deref();
        let one = fields.is_some_and(|fields| fields.starts_with("metadata.name="));
        one && !self.handle.declared.load(Ordering::Relaxed)
    }

    /// The kind, and which of its objects if not all: `Secret (app=web)`.
    pub(crate) fn words(&self) -> String {
        let Source { kind, labels, fields, .. } = &self.handle.core.source;
        match (labels.as_deref(), fields.as_deref()) {
            (None, None) => kind.to_string(),
            (Some(one), None) | (None, Some(one)) => format!("{kind} ({one})"),
            (Some(labels), Some(fields)) => format!("{kind} ({labels}; {fields})"),
        }
    }

    /// Whether it knows only objects with certain fields, and is not about a single one.
    pub(crate) fn selects_by_fields(&self) -> bool {
        self.handle.core.source.fields.is_some() && !self.is_of_one_object()
    }

    /// Whether an object with these labels is none that it knows.
    pub(crate) fn leaves_out(&self, labels: &Labels) -> bool {
        self.handle.core.selector.as_ref().is_some_and(|own| !own.matches(labels))
    }

    /// Calls `handler` for every change, in order, in the informer's task: it must be quick and
    /// must not block. What is in the cache already comes first, as additions marked `initial`.
    /// A handler that panics is reported and called again for the next change. It stays as long as
    /// the informer; [`Self::subscribe`] is for those who come and go.
    pub fn on_event(&self, handler: impl Fn(&Delta) + Send + Sync + 'static) {
        // Fails only when the informer was stopped: there will be no more events to tell of.
        let _ = self.handle.words.send(Word::Join(self.next_handler(), Box::new(handler)));
    }

    /// The same until the subscription is dropped, which does not keep the informer running.
    pub fn subscribe(&self, handler: impl Fn(&Delta) + Send + Sync + 'static) -> Subscription {
        let words = self.handle.words.clone();
        Subscription::new(self.next_handler(), Box::new(handler), words)
    }

    fn next_handler(&self) -> u64 {
        self.handle.handlers.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until every handler that it was given so far is in place, or it has ended.
    pub(crate) async fn handlers_joined(&self) {
        audience::answered(&self.handle.words).await;
    }

    /// Starts the informer's task on the current tokio runtime; a second call does nothing.
    pub fn start(&self) {
        let handle = &self.handle;
        if handle.started.swap(true, Ordering::AcqRel) || handle.is_stopped() {
            return;
        }
        let inbox = handle.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(inbox) = inbox {
            let core = Arc::clone(&handle.core);
            let (client, env, stop) =
                (handle.client.clone(), handle.env.clone(), handle.stop.clone());
            drop(tokio::spawn(task::run(core, client, env, stop, inbox)));
        }
    }

    /// Stops the task; what is cached stays readable and no longer changes.
    pub fn stop(&self) {
        self.handle.stop.cancel();
        self.handle.core.progress.send_modify(|progress| progress.state = SourceState::Stopped);
    }

    /// How the source is doing, in words where it is not well.
    #[must_use]
    pub fn state(&self) -> SourceState {
        self.handle.core.progress.borrow().state.clone()
    }

    /// Waits until the state is one that `wanted` accepts; an informer that stops ends the wait.
    pub async fn wait_for_state(
        &self,
        mut wanted: impl FnMut(&SourceState) -> bool,
    ) -> SourceState {
        let mut progress = self.handle.core.progress.subscribe();
        let accepted =
            |progress: &Progress| wanted(&progress.state) || progress.state == SourceState::Stopped;
        let reached = progress.wait_for(accepted).await;
        reached.map_or(SourceState::Stopped, |progress| progress.state.clone())
    }

    /// Whether the first list is in the cache and was told to the handlers.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.handle.core.progress.borrow().synced
    }

    /// Waits until [`Self::is_synced`], however long that takes; `false` when the informer is
    /// stopped before. Bound it with [`Env::timeout`] and ask [`Self::state`] what is wrong.
    pub async fn wait_for_sync(&self) -> bool {
        let mut progress = self.handle.core.progress.subscribe();
        let ended = |progress: &Progress| progress.synced || progress.state == SourceState::Stopped;
        progress.wait_for(ended).await.is_ok_and(|progress| progress.synced)
    }

    /// When the API last said something about this source, a bookmark at least; `None` before.
    #[must_use]
    pub fn heard(&self) -> Option<Instant> {
        self.handle.core.progress.borrow().heard
    }

    /// Whether it has failed from the start, or for [`CUT_OFF`] without a word of a watch in between.
    pub(crate) fn is_cut_off(&self, now: Instant) -> bool {
        let progress = self.handle.core.progress.borrow();
        let since = progress.failing.filter(|_| progress.synced);
        since.is_none_or(|since| now.saturating_duration_since(since) >= CUT_OFF)
    }

    /// Up to which revision the cache is complete; `None` before the first list has ended.
    #[must_use]
    pub fn revision(&self) -> Option<String> {
        self.read(|store| store.revision().map(str::to_owned))
    }

    pub(super) fn write<R>(&self, change: impl FnOnce(&mut Store) -> R) -> R {
        change(&mut self.handle.core.store.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn read<R>(&self, look: impl FnOnce(&Store) -> R) -> R {
        look(&self.handle.core.store.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Informer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("kind", &format_args!("{}", self.kind()))
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
