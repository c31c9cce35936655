//! One controller: a reconcile function, what wakes it, and how it is run.
//!
//! ```text
//! primary, owned, watched ──source──▶ queue ──worker──▶ reconcile ──▶ outcome ──▶ queue
//! ```

mod launch;
mod mapper;
mod outside;
mod predicate;
mod reconcile;
mod source;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::hotloop::HotLoop;
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::queue::{Backoff, Debounce, Rate, Rules};

pub(crate) use launch::{Follower, Launch, Launched, World};
pub use outside::Source;
pub use predicate::Predicate;
use reconcile::Boxed;
pub use reconcile::{ByFunction, ByReconciler, IntoReconcile, Reconciler};
use source::{Related, Role};

/// Told of a key that is given up, and of its last error.
type Tell = dyn Fn(&Key, &Error) + Send + Sync;

/// When a failing key is given up, and who is told.
#[derive(Clone)]
struct GiveUp {
    attempts: u32,
    tell: Arc<Tell>,
}

/// A controller, built step by step and run by a [`crate::Manager`].
pub struct Controller<K> {
    name: String,
    reconcile: Boxed<K>,
    related: Vec<Related>,
    sources: Vec<Source>,
    filter: Option<Predicate>,
    background: Option<Predicate>,
    namespace: Option<String>,
    labels: Option<String>,
    concurrency: usize,
    timeout: Duration,
    request_timeout: Duration,
    rules: Rules<Key>,
    hot_loop: Option<HotLoop>,
    give_up: Option<GiveUp>,
}

impl<K: Object> Controller<K> {
    /// A controller named after its kind, with one watch on the kind itself.
    pub fn new<How>(reconcile: impl IntoReconcile<K, How>) -> Self {
        Self {
            name: Kind::of::<K>().kind().to_lowercase(),
            reconcile: reconcile.into_reconcile(),
            related: Vec::new(),
            sources: Vec::new(),
            filter: None,
            background: None,
            namespace: None,
            labels: None,
            concurrency: 4,
            timeout: Duration::from_secs(5 * 60),
            request_timeout: Duration::from_secs(30),
            rules: Rules::by_namespace(),
            hot_loop: Some(HotLoop::default()),
            give_up: None,
        }
    }

    /// Another name, for logs, events and the field manager; the lower-case kind by default.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Wakes the owner when an object of kind `C` that it controls (by uid) changes.
    #[must_use]
    pub fn owns<C: Object>(self) -> Self {
        self.relates(Kind::of::<C>(), Role::Owned, None)
    }

    /// The same for changes that pass the filter only.
    #[must_use]
    pub fn owns_when<C: Object>(self, filter: Predicate) -> Self {
        self.relates(Kind::of::<C>(), Role::Owned, Some(filter))
    }

    /// Wakes the keys that `map` names when an object of kind `X` changes (old and new are
    /// mapped). An object that cannot be decoded wakes nobody and is logged.
    #[must_use]
    pub fn watches<X: Object>(self, map: impl Fn(&X) -> Vec<Key> + Send + Sync + 'static) -> Self {
        self.try_watches(move |object: &X| Ok(map(object)))
    }

    /// The same for changes that pass the filter only.
    #[must_use]
    pub fn watches_when<X: Object>(
        self,
        filter: Predicate,
        map: impl Fn(&X) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        let map = mapper::typed(move |object: &X| Ok(map(object)));
        self.relates(Kind::of::<X>(), Role::Watched(map), Some(filter))
    }

    /// Wakes the keys that `map` names, as [`Self::watches`]. A map that fails (or panics) is asked
    /// again with backoff about the same object, so that nobody it concerns is forgotten.
    #[must_use]
    pub fn try_watches<X: Object>(
        self,
        map: impl Fn(&X) -> Result<Vec<Key>> + Send + Sync + 'static,
    ) -> Self {
        self.relates(Kind::of::<X>(), Role::Watched(mapper::typed(map)), None)
    }

    /// Wakes the keys that something outside the API names: a channel, a stream, a clock.
    #[must_use]
    pub fn watches_source(mut self, source: Source) -> Self {
        self.sources.push(source);
        self
    }

    /// Caches kind `X` for reads without waking anything.
    #[must_use]
    pub fn reads<X: Object>(self) -> Self {
        self.relates(Kind::of::<X>(), Role::Read, None)
    }

    fn relates(mut self, kind: Kind, role: Role, filter: Option<Predicate>) -> Self {
        self.related.push(Related { kind, role, filter });
        self
    }

    /// Which changes of the primary wake it; all by default. A second filter narrows the first.
    #[must_use]
    pub fn filter(mut self, filter: Predicate) -> Self {
        self.filter = Some(match self.filter.take() {
            Some(first) => first.and(filter),
            None => filter,
        });
        self
    }

    /// Which changes of the primary nobody waits for: they go behind all others, as the first list
    /// does, and are never starved. None by default; a second one widens the first.
    #[must_use]
    pub fn background(mut self, changes: Predicate) -> Self {
        self.background = Some(match self.background.take() {
            Some(first) => first.or(changes),
            None => changes,
        });
        self
    }

    /// Only that namespace, for the primary and for every other kind; all by default.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only primaries whose labels match (`a=b,c in (d,e)`); others are not even cached.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.labels = Some(selector.to_owned());
        self
    }

    /// How many keys may be reconciled at once; 4 by default, at least 1.
    #[must_use]
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = limit.max(1);
        self
    }

    /// How long one reconcile may take; 5 minutes by default. A longer one is dropped at its next
    /// await and counts as a transient error.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// How long one request of a reconcile may take; 30 s by default. A longer one is given up
    /// ([`crate::Error::NoAnswer`]), which is a transient error. For requests through
    /// [`crate::Context::client`] the limit ends with the header of the answer.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// How long a failing key waits; 1 s doubling to 5 min by default.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.rules.backoff = backoff;
        self
    }

    /// Lets a key wait until no event has come for it for `quiet`, but no longer than `at_most`
    /// after the first: a burst becomes one reconcile. Without it (the default) a key runs at once.
    #[must_use]
    pub fn debounce(mut self, quiet: Duration, at_most: Duration) -> Self {
        self.rules.debounce = Some(Debounce { quiet, at_most });
        self
    }

    /// Begins no more reconciles than that, all keys together; no limit by default. For reconciles
    /// that call something with a limit of its own.
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rules.rate = Some(rate);
        self
    }

    /// What counts as a hot loop, or `None` to look for none; [`HotLoop::default`] by default. One
    /// that is found is a warning in the log, a `HotLoop` event on the object, and one more in
    /// `homeostat_hot_loops_total`; each names the fields that change again and again.
    #[must_use]
    pub fn hot_loop(mut self, limits: impl Into<Option<HotLoop>>) -> Self {
        self.hot_loop = limits.into();
        self
    }

    /// Gives a key up after so many failures in a row (at least 1): it waits for a change of its
    /// object like one with a terminal error, with a `Degraded` condition and a Warning event, and
    /// `tell` is called. By default a failing key is retried for ever.
    #[must_use]
    pub fn give_up_after(
        mut self,
        attempts: u32,
        tell: impl Fn(&Key, &Error) + Send + Sync + 'static,
    ) -> Self {
        self.give_up = Some(GiveUp { attempts: attempts.max(1), tell: Arc::new(tell) });
        self
    }
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("related", &self.related)
            .field("sources", &self.sources)
            .field("namespace", &self.namespace)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}
