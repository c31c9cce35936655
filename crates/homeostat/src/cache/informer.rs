//! The public face of one followed collection: start it, wait for it, read it, be told of changes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use homeostat_env::Env;
use kube::core::{Selector, SelectorExt};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::entry::Decoded;
use super::task::{self, Handler};
use super::{Delta, Entry, Store, revision};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::watch::driver::Source;

/// How many typed objects an informer keeps decoded, besides those that somebody holds.
const RECENTLY_DECODED: usize = 32;

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

/// What [`Informer::wait_for_object`] waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The object at this resource version or a later one.
    Version(String),
    /// The object gone.
    Deleted,
    /// The object gone, or marked as being deleted.
    Deleting,
}

/// Follows the objects of a kind and scope; clones are handles on the same informer.
///
/// It stops when the last handle is dropped, so a handler must not hold a handle on its own
/// informer (or [`Informer::stop`] must be called).
#[derive(Clone)]
pub struct Informer {
    handle: Arc<Handle>,
}

/// What the task and the handles share.
pub(crate) struct Core {
    pub(crate) source: Source,
    pub(crate) store: RwLock<Store>,
    pub(crate) progress: watch::Sender<Progress>,
}

/// What waiters look at; sent after every change.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) state: SourceState,
    pub(crate) synced: bool,
}

/// Dropped with the last [`Informer`]; the task holds only the [`Core`].
pub(crate) struct Handle {
    core: Arc<Core>,
    client: kube::Client,
    env: Env,
    started: AtomicBool,
    stop: CancellationToken,
    handlers: mpsc::UnboundedSender<Handler>,
    /// Taken by `start`.
    inbox: Mutex<Option<mpsc::UnboundedReceiver<Handler>>>,
    recent: Mutex<VecDeque<Decoded>>,
}

impl Handle {
    pub(crate) fn new(client: kube::Client, env: Env, source: Source) -> Self {
        let (handlers, inbox) = mpsc::unbounded_channel();
        let progress = Progress { state: SourceState::NotStarted, synced: false };
        let (progress, _) = watch::channel(progress);
        Self {
            core: Arc::new(Core { source, store: RwLock::default(), progress }),
            client,
            env,
            started: AtomicBool::new(false),
            stop: CancellationToken::new(),
            handlers,
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

    /// Calls `handler` for every change, in order, in the informer's task: it must be quick and
    /// must not block. What is in the cache already comes first, as additions marked `initial`.
    /// A handler that panics is reported and called again for the next change.
    pub fn on_event(&self, handler: impl Fn(&Delta) + Send + Sync + 'static) {
        // Fails only when the informer was stopped: there will be no more events to tell of.
        let _ = self.handle.handlers.send(Box::new(handler));
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

    /// The object of that key as type `K`; `None` when the cache does not have it.
    ///
    /// # Errors
    /// [`Error::Decode`] when the object does not fit the type.
    pub fn get<K: Object>(&self, key: &Key) -> Result<Option<Arc<K>>> {
        self.entry(key).map(|entry| self.typed(&entry)).transpose()
    }

    /// All objects, or those of one namespace, in key order. An object that does not fit the type
    /// is left out and reported to the log: one broken object must not stop work on the others.
    #[must_use]
    pub fn list<K: Object>(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.typed_all(self.read(|store| store.iter(namespace).cloned().collect()))
    }

    /// The same for those whose labels match; see [`super::selector::parse`].
    #[must_use]
    pub fn select<K: Object>(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<K>> {
        self.typed_all(self.select_entries(namespace, selector))
    }

    /// The same, untyped.
    #[must_use]
    pub fn select_entries(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<Entry>> {
        let matching = |entry: &&Arc<Entry>| selector.matches(&entry.header.labels);
        self.read(|store| store.iter(namespace).filter(matching).cloned().collect())
    }

    /// The objects that have an owner (controller or not) of that uid, in key order.
    #[must_use]
    pub fn by_owner(&self, uid: &str) -> Vec<Arc<Entry>> {
        self.read(|store| store.by_owner(uid).cloned().collect())
    }

    /// The same as type `K`; objects that do not fit it are left out and reported to the log.
    #[must_use]
    pub fn owned_by<K: Object>(&self, uid: &str) -> Vec<Arc<K>> {
        self.typed_all(self.by_owner(uid))
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

    /// Up to which revision the cache is complete; `None` before the first list has ended.
    #[must_use]
    pub fn revision(&self) -> Option<String> {
        self.read(|store| store.revision().map(str::to_owned))
    }

    /// Waits until the cache is complete up to `revision`.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is not within `limit`, or the informer is stopped before.
    pub async fn wait_for_revision(&self, revision: &str, limit: Duration) -> Result<()> {
        self.wait_until(limit, |store| reached(store, revision), || format!("revision {revision}"))
            .await
    }

    /// Waits until the cache shows what a write has done to the object `key` with that `uid`.
    /// A later state counts too: deleted or made anew since.
    ///
    /// # Errors
    /// [`Error::Stale`] when it does not within `limit`, or the informer is stopped before.
    pub async fn wait_for_object(
        &self,
        key: &Key,
        uid: &str,
        expect: &Expect,
        limit: Duration,
    ) -> Result<()> {
        let shown = |store: &Store| match (store.get(key), expect) {
            (None, Expect::Deleted | Expect::Deleting) => true,
            (None, Expect::Version(version)) => reached(store, version),
            (Some(entry), Expect::Deleted) => *entry.header.uid != *uid,
            (Some(entry), Expect::Deleting) => {
                *entry.header.uid != *uid || entry.header.is_being_deleted()
            }
            (Some(entry), Expect::Version(version)) => {
                let cached = &entry.header.resource_version;
                // Versions that cannot be compared must be equal.
                revision::compare(cached, version)
                    .map_or(cached == version, std::cmp::Ordering::is_ge)
            }
        };
        self.wait_until(limit, shown, || format!("{key} {expect:?}")).await
    }

    async fn wait_until(
        &self,
        limit: Duration,
        shown: impl Fn(&Store) -> bool,
        what: impl Fn() -> String,
    ) -> Result<()> {
        let mut progress = self.handle.core.progress.subscribe();
        let wait = async {
            // Subscribed before looking: a change in between is not missed.
            while !self.read(&shown) {
                if progress.borrow_and_update().state == SourceState::Stopped
                    || progress.changed().await.is_err()
                {
                    return false;
                }
            }
            true
        };
        let seen = self.handle.env.timeout(limit, wait).await.unwrap_or(false);
        if seen {
            return Ok(());
        }
        let at = self.revision().unwrap_or_else(|| "nothing yet".to_owned());
        Err(Error::Stale(format!("{} at {at} has not seen {}", self.kind(), what())))
    }

    fn typed<K: Object>(&self, entry: &Entry) -> Result<Arc<K>> {
        let typed = entry.decode::<K>()?;
        let mut recent = self.handle.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENTLY_DECODED {
            recent.pop_front();
        }
        recent.push_back(Arc::clone(&typed) as Decoded);
        Ok(typed)
    }

    fn typed_all<K: Object>(&self, entries: Vec<Arc<Entry>>) -> Vec<Arc<K>> {
        let typed = entries.into_iter().map(|entry| entry.decode::<K>());
        typed
            .filter_map(|decoded| {
                decoded.inspect_err(|error| tracing::warn!(%error, "left out of a list")).ok()
            })
            .collect()
    }

    fn read<R>(&self, look: impl FnOnce(&Store) -> R) -> R {
        look(&self.handle.core.store.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn reached(store: &Store, wanted: &str) -> bool {
    store.revision().is_some_and(|at| {
        revision::compare(at, wanted).map_or(at == wanted, std::cmp::Ordering::is_ge)
    })
}

impl fmt::Debug for Informer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("kind", &format_args!("{}", self.kind()))
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
