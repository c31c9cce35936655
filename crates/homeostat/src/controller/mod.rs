//! One controller: a reconcile function, what wakes it, and how it is run.
//!
//! ```text
//! primary, owned, watched ──source──▶ queue ──worker──▶ reconcile ──▶ outcome ──▶ queue
//! ```

mod launch;
mod predicate;
mod reconcile;
mod source;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::queue::Backoff;

pub(crate) use launch::{Follower, Launch, Launched, World};
pub use predicate::Predicate;
use reconcile::Boxed;
pub use reconcile::{ByFunction, ByReconciler, IntoReconcile, Reconciler};
use source::{Role, Source};

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
    sources: Vec<Source>,
    filter: Option<Predicate>,
    namespace: Option<String>,
    labels: Option<String>,
    concurrency: usize,
    timeout: Duration,
    request_timeout: Duration,
    backoff: Backoff,
    give_up: Option<GiveUp>,
}

impl<K: Object> Controller<K> {
    /// A controller named after its kind, with one watch on the kind itself.
    pub fn new<How>(reconcile: impl IntoReconcile<K, How>) -> Self {
        Self {
            name: Kind::of::<K>().kind().to_lowercase(),
            reconcile: reconcile.into_reconcile(),
            sources: Vec::new(),
            filter: None,
            namespace: None,
            labels: None,
            concurrency: 4,
            timeout: Duration::from_secs(5 * 60),
            request_timeout: Duration::from_secs(30),
            backoff: Backoff::default(),
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
    pub fn owns<C: Object>(mut self) -> Self {
        self.sources.push(Source { kind: Kind::of::<C>(), role: Role::Owned });
        self
    }

    /// Wakes the keys that `map` names when an object of kind `X` changes (old and new are
    /// mapped). An object that cannot be decoded wakes nobody and is logged.
    #[must_use]
    pub fn watches<X: Object>(
        mut self,
        map: impl Fn(&X) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.sources.push(Source { kind: Kind::of::<X>(), role: Role::mapped(map) });
        self
    }

    /// Caches kind `X` for reads without waking anything.
    #[must_use]
    pub fn reads<X: Object>(mut self) -> Self {
        self.sources.push(Source { kind: Kind::of::<X>(), role: Role::Read });
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
        self.backoff = backoff;
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
            .field("sources", &self.sources)
            .field("namespace", &self.namespace)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}
