//! One controller: a reconcile function, what wakes it, and how it is run.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::error::Result;
use crate::key::Key;
use crate::kind::Object;
use crate::outcome::Outcome;

/// A controller, built step by step and run by a [`crate::Manager`].
#[derive(Debug)]
pub struct Controller<K> {
    primary: PhantomData<K>,
}

impl<K: Object> Controller<K> {
    /// A controller named after its kind, with one watch on the kind itself.
    pub fn new<F, Fut>(reconcile: F) -> Self
    where
        F: Fn(Arc<K>, Context<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome>> + Send + 'static,
    {
        let _ = reconcile;
        Self { primary: PhantomData }
    }
    /// Another name, for logs, events and the field manager.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        let _ = name;
        self
    }
    /// Wakes the owner when an object of kind `C` that it controls changes.
    #[must_use]
    pub fn owns<C: Object>(self) -> Self {
        self
    }
    /// Wakes the keys that `map` names when an object of kind `X` changes (old and new are mapped).
    #[must_use]
    pub fn watches<X: Object>(self, map: impl Fn(&X) -> Vec<Key> + Send + Sync + 'static) -> Self {
        let _ = map;
        self
    }
    /// Caches kind `X` for reads without waking anything.
    #[must_use]
    pub fn reads<X: Object>(self) -> Self {
        self
    }
    /// How many keys may be reconciled at once; 4 by default.
    #[must_use]
    pub fn concurrency(self, limit: usize) -> Self {
        let _ = limit;
        self
    }
    /// How long one reconcile may take; 5 minutes by default.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Self {
        let _ = limit;
        self
    }
}
