//! Events are forgotten an hour after they were last written, or the store would grow for ever.
//!
//! Nothing wakes up for it: each Event that is written takes those with it whose time has come.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::store::{Key, Store, Stored};

/// The resource whose objects expire.
pub(super) const EVENTS: &str = "events";
/// How long an Event is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// When which version of which Event was written, oldest first.
#[derive(Debug, Default)]
pub(super) struct Expiry(Mutex<VecDeque<(Timestamp, Key, u64)>>);

impl Expiry {
    /// Notes a written Event and deletes those that have not been written for an hour.
    pub(super) fn written(&self, store: &Store, event: &Stored, now: Timestamp) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.push_back((now, event.key.clone(), event.revision));
        while written.front().is_some_and(|(at, ..)| now.duration_since(*at) >= KEPT) {
            let Some((_, key, revision)) = written.pop_front() else { return };
            // A conflict means that it was written again, or is gone already.
            let _ = store.delete(EVENTS, &key, revision);
        }
    }
}
