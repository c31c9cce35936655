//! How a queue treats its keys: plain data, decided when the queue is made.

use std::fmt;
use std::time::Duration;

use super::Backoff;
use crate::key::Key;

/// Which keys take turns: those of one lane wait for each other, lanes take turns.
pub type Lane<'a> = Option<&'a str>;

/// The rules of a queue.
///
/// By default: the default [`Backoff`], one lane for all keys, no debounce, no rate. None of them
/// gives a failing key up: [`Queue::failures`](super::Queue::failures) shows how that is done.
pub struct Rules<T> {
    /// How long failing keys wait.
    pub backoff: Backoff,
    /// The lane of a key. Lanes take turns, so that one with many keys holds up no other.
    pub lane: fn(&T) -> Lane<'_>,
    /// Whether a key waits until nothing happens to it any more; `None` by default.
    pub debounce: Option<Debounce>,
    /// How often keys are handed out, all together; `None` (no limit) by default.
    pub rate: Option<Rate>,
}

/// Lets a key that events arrive for wait until it is quiet, but not for ever.
///
/// Only news is held back ([`crate::Trigger::is_news`]): a timer, a retry and a requeue come when
/// they are due, and an event that finds one of them pending never makes the key run later than
/// that one would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Debounce {
    /// So long after the last event the key runs.
    pub quiet: Duration,
    /// So long after the first event it runs at the latest.
    pub at_most: Duration,
}

/// One key every so often, whichever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The time from one key to the next on the long run.
    pub every: Duration,
    /// How many may come at once after a pause; at least 1.
    pub burst: u32,
}

impl Rules<Key> {
    /// The rules of controllers: namespaces take turns. Cluster-scoped keys share a lane.
    #[must_use]
    pub fn by_namespace() -> Self {
        Self { lane: |key| key.namespace(), ..Self::default() }
    }
}

impl<T> Default for Rules<T> {
    fn default() -> Self {
        Self { backoff: Backoff::default(), lane: |_| None, debounce: None, rate: None }
    }
}

impl<T> Clone for Rules<T> {
    fn clone(&self) -> Self {
        Self { backoff: self.backoff, lane: self.lane, debounce: self.debounce, rate: self.rate }
    }
}

impl<T> fmt::Debug for Rules<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("backoff", &self.backoff)
            .field("debounce", &self.debounce)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}
