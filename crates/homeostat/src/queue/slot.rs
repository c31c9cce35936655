//! What the queue knows of one key, and when it becomes ready by itself.

use std::time::Duration;

use super::chain::{Link, Linked};
use super::machine::Priority;
use super::rules::Debounce;
use crate::trigger::{Trigger, Triggers};

/// How many different reasons are remembered per key; later ones are dropped (the key runs anyway).
const MOST_TRIGGERS: usize = 32;

/// So many times in a row events may cut short the backoff of a failing key. Then one backoff is
/// served to its end, whatever happens: a key that fails and is chatty still slows down.
const EARLY_RETRIES: u32 = 5;

/// A time at which a key becomes ready by itself.
#[derive(Debug, Clone)]
pub(super) struct Timer {
    pub(super) due: Duration,
    pub(super) why: Why,
}

/// What a key waits for.
#[derive(Debug, Clone)]
pub(super) enum Why {
    /// A time that somebody asked for.
    Asked(Trigger),
    /// The end of a backoff.
    Backoff,
    /// That nothing happens to it any more, but no longer than until `latest`.
    Quiet { latest: Duration, priority: Priority },
}

impl Timer {
    /// The wait for quiet after an event at `now`; never longer than what the key waited for before.
    pub(super) fn quiet(
        debounce: Debounce,
        priority: Priority,
        before: Option<&Self>,
        now: Duration,
    ) -> Box<Self> {
        let latest = now.saturating_add(debounce.at_most);
        let (latest, priority) = match before {
            None => (latest, priority),
            Some(Self { why: Why::Quiet { latest, priority: old }, .. }) => {
                (*latest, priority.max(*old))
            }
            Some(timer) => (latest.min(timer.due), priority),
        };
        let due = now.saturating_add(debounce.quiet).min(latest);
        Box::new(Self { due, why: Why::Quiet { latest, priority } })
    }

    /// Ends a wait for quiet at `due` at the latest.
    pub(super) fn no_later_than(&mut self, due: Duration) {
        self.due = self.due.min(due);
        if let Why::Quiet { latest, .. } = &mut self.why {
            *latest = (*latest).min(due);
        }
    }

    /// With which priority the key becomes ready when it is due.
    pub(super) fn priority(&self) -> Priority {
        match self.why {
            Why::Quiet { priority, .. } => priority,
            Why::Asked(_) | Why::Backoff => Priority::Normal,
        }
    }
}

/// Whether a running key must run once more.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dirty {
    No,
    /// As soon as it is done.
    AtOnce(Priority),
    /// When it is quiet: the slot's `quiet` says when.
    WhenQuiet,
}

/// What a key does; plain numbers, so that a change of state costs nothing.
#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// Known only for its failure count.
    Idle,
    Ready {
        priority: Priority,
        since: Duration,
    },
    /// Until the slot's `timer` is due.
    Waiting {
        /// Tells timers of one moment apart, in the order they were set.
        turn: u64,
    },
    Running {
        dirty: Dirty,
    },
}

#[derive(Debug)]
pub(super) struct Slot<T> {
    /// `None` in a slot that waits for its next key.
    pub(super) key: Option<T>,
    /// The hash of the key once it is in the table: asked for again when the key goes or the table grows.
    pub(super) hash: u64,
    /// Its place in the line, while it is ready and not alone there: the lane, and the neighbours.
    pub(super) lane: usize,
    pub(super) link: Link,
    pub(super) state: State,
    /// What a waiting key waits for, or a running one will wait for when it is done.
    pub(super) timer: Option<Box<Timer>>,
    /// Until when a dirty key waits for quiet when it is done.
    pub(super) quiet: Option<Box<Timer>>,
    pub(super) triggers: Triggers,
    pub(super) failures: u32,
    /// Backoffs cut short by an event since one was last served.
    pub(super) early: u32,
}

impl<T> Slot<T> {
    pub(super) fn blank() -> Self {
        Self {
            key: None,
            hash: 0,
            lane: 0,
            link: Link::NONE,
            state: State::Idle,
            timer: None,
            quiet: None,
            triggers: Triggers::default(),
            failures: 0,
            early: 0,
        }
    }

    /// Forgets the key and all about it.
    pub(super) fn clear(&mut self) {
        self.key = None;
        self.state = State::Idle;
        (self.timer, self.quiet) = (None, None);
        self.triggers = Triggers::default();
        (self.failures, self.early) = (0, 0);
    }

    /// Whether an event may take the place of its timer; it uses up one of the early retries if
    /// the timer is a backoff.
    pub(super) fn gives_way(&mut self) -> bool {
        if !self.timer.as_ref().is_some_and(|timer| matches!(timer.why, Why::Backoff)) {
            return true;
        }
        let allowed = self.early < EARLY_RETRIES;
        self.early += u32::from(allowed);
        allowed
    }

    /// Whether it has not failed since it was last forgotten.
    pub(super) fn is_well(&self) -> bool {
        self.failures == 0 && self.early == 0
    }

    /// Whether nothing would be lost with it.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.state, State::Idle) && self.is_well()
    }

    /// Says why the key runs.
    pub(super) fn remember(&mut self, trigger: Trigger) {
        if self.triggers.len() < MOST_TRIGGERS && !self.triggers.contains(&trigger) {
            self.triggers.push(trigger);
        }
    }
}

impl<T: Eq> Slot<T> {
    pub(super) fn is_of(&self, key: &T) -> bool {
        self.key.as_ref() == Some(key)
    }
}

impl<T> Linked for Slot<T> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}
