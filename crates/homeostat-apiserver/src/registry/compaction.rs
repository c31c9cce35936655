//! How long past revisions can be read: the clock that lists at a revision, and pages of lists,
//! grow too old by. It forgets nothing itself; watches have a history of their own.
//!
//! At every tick all revisions become unreadable that were past already at the tick before. Ticks
//! are noticed when something happens, not by a timer: with nothing happening, nothing is past.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The oldest readable revision, kept up with time.
#[derive(Debug)]
pub(super) struct Compaction {
    interval: SignedDuration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: Timestamp,
    /// The revision at the last tick.
    recorded: u64,
    /// The oldest revision that can still be read.
    oldest: u64,
}

impl Compaction {
    pub(super) fn new(interval: Duration, now: Timestamp) -> Self {
        let interval = SignedDuration::try_from(interval).unwrap_or(SignedDuration::MAX);
        let next = now.saturating_add(interval).unwrap_or(Timestamp::MAX);
        Self { interval, state: Mutex::new(State { next, recorded: 0, oldest: 0 }) }
    }

    /// The oldest readable revision, given the time and the current revision.
    pub(super) fn oldest(&self, now: Timestamp, revision: u64) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= state.next {
            let next = state.next.saturating_add(self.interval).unwrap_or(Timestamp::MAX);
            // A second tick since the last look: what is recorded by now is past, too.
            state.oldest = if now >= next { revision } else { state.recorded };
            state.recorded = revision;
            state.next = now.saturating_add(self.interval).unwrap_or(Timestamp::MAX);
        }
        state.oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_revision_is_readable_for_at_least_one_interval() {
        let compaction = Compaction::new(Duration::from_secs(300), at(0));
        assert_eq!(compaction.oldest(at(10), 5), 0);
        assert_eq!(compaction.oldest(at(300), 7), 0, "7 is recorded, nothing was before");
        assert_eq!(compaction.oldest(at(599), 9), 0);
        assert_eq!(compaction.oldest(at(600), 9), 7);
        assert_eq!(compaction.oldest(at(900), 9), 9);
    }

    #[test]
    fn after_a_long_silence_everything_before_it_is_past() {
        let compaction = Compaction::new(Duration::from_secs(300), at(0));
        assert_eq!(compaction.oldest(at(10), 5), 0);
        assert_eq!(compaction.oldest(at(1000), 6), 6);
    }
}
