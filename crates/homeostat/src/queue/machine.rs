//! The queue as a pure state machine: `state × call × now → state`; it never waits, never draws
//! randomness, and never reads a clock (`now` is the time since the queue was made).
//!
//! ```text
//!          add                take                 done
//!  idle ────────▶ ready ─────────────▶ running ──────────────▶ idle
//!    │              ▲ ▲                   │ add
//!    │ add_after    │ │ done              ▼
//!    └──▶ waiting ──┘ └──────────── running + dirty
//!         (add, or its time comes)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::trigger::Trigger;

/// How many different reasons are remembered per key; later ones are dropped (the key runs anyway).
const MOST_TRIGGERS: usize = 32;

/// After this many normal keys in a row a waiting low one goes first, so that it never starves.
const NORMAL_IN_A_ROW: u32 = 8;

/// So many times in a row events may cut short the backoff of a failing key. Then one backoff is
/// served to its end, whatever happens: a key that fails and is chatty still slows down.
const EARLY_RETRIES: u32 = 5;

/// Which keys go first among those that are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Work nobody waits for: the first list after a start. One in nine turns at least.
    Low,
    /// Events, timers and retries.
    Normal,
}

/// A key handed to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<T> {
    /// The key; the worker gives it back with `done`.
    pub key: T,
    /// Why it runs, in order of arrival, repeats merged; never empty.
    pub triggers: Vec<Trigger>,
    /// How many backoffs in a row this key has served.
    pub failures: u32,
}

/// A time at which a key becomes ready by itself.
#[derive(Debug, Clone)]
struct Timer {
    due: Duration,
    trigger: Option<Trigger>,
}

#[derive(Debug)]
enum State {
    /// Known only for its failure count.
    Idle,
    Ready {
        priority: Priority,
        place: u64,
    },
    Waiting {
        timer: Timer,
        place: u64,
    },
    Running {
        dirty: Option<Priority>,
        timer: Option<Timer>,
    },
}

#[derive(Debug)]
struct Slot {
    state: State,
    triggers: Vec<Trigger>,
    failures: u32,
    /// Backoffs cut short by an event since one was last served.
    early: u32,
}

impl Slot {
    /// Whether an event may take the place of this timer; it uses up one of the early retries if
    /// the timer is a backoff.
    fn gives_way(&mut self, is_backoff: bool) -> bool {
        if !is_backoff {
            return true;
        }
        let allowed = self.early < EARLY_RETRIES;
        self.early += u32::from(allowed);
        allowed
    }
}

/// One entry per key; every operation is `O(log n)` and deterministic.
#[derive(Debug)]
pub struct Machine<T> {
    slots: BTreeMap<T, Slot>,
    low: BTreeMap<u64, T>,
    normal: BTreeMap<u64, T>,
    waiting: BTreeSet<(Duration, u64, T)>,
    places: u64,
    normal_in_a_row: u32,
    running: usize,
    paused: bool,
    closed: bool,
}

impl<T: Ord + Clone> Default for Machine<T> {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
            low: BTreeMap::new(),
            normal: BTreeMap::new(),
            waiting: BTreeSet::new(),
            places: 0,
            normal_in_a_row: 0,
            running: 0,
            paused: false,
            closed: false,
        }
    }
}

impl<T: Ord + Clone> Machine<T> {
    /// Makes a key ready now. A waiting key's timer is consumed, except that of a failing key whose
    /// backoff was cut short five times already: that one is served to its end, and the trigger is
    /// told then. A running key runs once more after `done`; a ready key keeps its place unless its
    /// priority rises. Ignored after [`Self::close`].
    pub fn add(&mut self, key: &T, trigger: Trigger, priority: Priority, now: Duration) {
        self.release(now);
        if self.closed {
            return;
        }
        let place = self.next_place();
        let slot = Self::slot(&mut self.slots, key);
        remember(&mut slot.triggers, trigger);
        match &mut slot.state {
            State::Running { dirty, .. } => {
                *dirty = Some(dirty.map_or(priority, |old| old.max(priority)));
                return;
            }
            State::Ready { priority: old, .. } if *old >= priority => return,
            State::Ready { place, .. } => {
                self.low.remove(place);
            }
            State::Waiting { timer, place } => {
                let (due, place, is_backoff) = (timer.due, *place, timer.trigger.is_none());
                if !slot.gives_way(is_backoff) {
                    return;
                }
                self.waiting.remove(&(due, place, key.clone()));
            }
            State::Idle => {}
        }
        slot.state = State::Ready { priority, place };
        self.line(priority).insert(place, key.clone());
    }

    /// Makes a key ready at `due`, or earlier on `add`. Of two timers the earlier wins; a key that
    /// is ready already ignores it. Ignored after [`Self::close`].
    pub fn add_at(&mut self, key: &T, trigger: Trigger, due: Duration, now: Duration) {
        self.schedule(key, Timer { due, trigger: Some(trigger) }, now);
    }

    /// Makes a failed key ready after `delay`. The failure counts once the delay has been served:
    /// an event that consumes it leaves [`Self::failures`] as it was.
    pub fn add_failed(&mut self, key: &T, delay: Duration, now: Duration) {
        self.schedule(key, Timer { due: now.saturating_add(delay), trigger: None }, now);
    }

    /// The next ready key, now running; `None` when there is none or the queue is paused.
    pub fn take(&mut self, now: Duration) -> Option<Item<T>> {
        self.release(now);
        if self.paused {
            return None;
        }
        let from_low = self.normal.is_empty()
            || (self.normal_in_a_row >= NORMAL_IN_A_ROW && !self.low.is_empty());
        let (_, key) = if from_low { self.low.pop_first()? } else { self.normal.pop_first()? };
        self.normal_in_a_row = if from_low { 0 } else { self.normal_in_a_row.saturating_add(1) };
        let slot = Self::slot(&mut self.slots, &key);
        slot.state = State::Running { dirty: None, timer: None };
        let item =
            Item { triggers: std::mem::take(&mut slot.triggers), failures: slot.failures, key };
        self.running += 1;
        Some(item)
    }

    /// The worker has finished with a key: it goes to the back of the line if it was added
    /// meanwhile, waits if it was given a time, and is idle otherwise. Ignored for other keys.
    pub fn done(&mut self, key: &T, now: Duration) {
        self.release(now);
        let place = self.next_place();
        let Some(slot) = self.slots.get_mut(key) else { return };
        let State::Running { dirty, timer } = &mut slot.state else { return };
        let (mut dirty, timer) = (dirty.take(), timer.take());
        self.running -= 1;
        let backoff = timer.as_ref().filter(|timer| timer.trigger.is_none() && !self.closed);
        if dirty.is_some() && backoff.is_some() && !slot.gives_way(true) {
            dirty = None;
        }
        match (dirty, timer) {
            (Some(priority), _) => {
                slot.state = State::Ready { priority, place };
                self.line(priority).insert(place, key.clone());
            }
            (None, Some(timer)) if !self.closed => {
                self.waiting.insert((timer.due, place, key.clone()));
                slot.state = State::Waiting { timer, place };
                self.release(now);
            }
            (None, _) => {
                slot.state = State::Idle;
                self.drop_if_idle(key);
            }
        }
    }

    /// The key is well again: its failure count is zero. A pending timer stays.
    pub fn forget(&mut self, key: &T) {
        if let Some(slot) = self.slots.get_mut(key) {
            (slot.failures, slot.early) = (0, 0);
        }
        self.drop_if_idle(key);
    }

    /// While paused, keys are taken in and none is handed out.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// No more intake: timers are dropped, ready and dirty keys are still handed out.
    pub fn close(&mut self) {
        self.closed = true;
        for (_, _, key) in std::mem::take(&mut self.waiting) {
            self.slots.remove(&key);
        }
    }

    /// Drops what is ready or dirty; running keys are left to finish.
    pub fn clear(&mut self) {
        for key in std::mem::take(&mut self.low).into_values() {
            self.slots.remove(&key);
        }
        for key in std::mem::take(&mut self.normal).into_values() {
            self.slots.remove(&key);
        }
        for slot in self.slots.values_mut() {
            if let State::Running { dirty, .. } = &mut slot.state {
                *dirty = None;
            }
        }
    }

    /// Whether [`Self::close`] was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many keys are ready, as of the last call that was given a time.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.low.len() + self.normal.len()
    }

    /// How many keys wait for their time.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many keys are with a worker.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// When the next waiting key becomes ready.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.waiting.first().map(|(due, _, _)| *due)
    }

    /// How many backoffs in a row a key has served; 0 for an unknown one.
    #[must_use]
    pub fn failures(&self, key: &T) -> u32 {
        self.slots.get(key).map_or(0, |slot| slot.failures)
    }

    fn schedule(&mut self, key: &T, timer: Timer, now: Duration) {
        self.release(now);
        if self.closed {
            return;
        }
        let place = self.next_place();
        let slot = Self::slot(&mut self.slots, key);
        match &mut slot.state {
            State::Ready { .. } => return,
            State::Running { timer: old, .. } => {
                if old.as_ref().is_none_or(|old| timer.due < old.due) {
                    *old = Some(timer);
                }
                return;
            }
            State::Waiting { timer: old, .. } if old.due <= timer.due => return,
            State::Waiting { timer: old, place } => {
                self.waiting.remove(&(old.due, *place, key.clone()));
            }
            State::Idle => {}
        }
        self.waiting.insert((timer.due, place, key.clone()));
        slot.state = State::Waiting { timer, place };
        self.release(now);
    }

    /// Moves every key whose time has come to the back of the normal line, earliest first.
    fn release(&mut self, now: Duration) {
        while self.waiting.first().is_some_and(|(due, _, _)| *due <= now) {
            let Some((_, _, key)) = self.waiting.pop_first() else { return };
            let place = self.next_place();
            let slot = Self::slot(&mut self.slots, &key);
            let ready = State::Ready { priority: Priority::Normal, place };
            if let State::Waiting { timer, .. } = std::mem::replace(&mut slot.state, ready) {
                let trigger = timer.trigger.unwrap_or_else(|| {
                    slot.failures = slot.failures.saturating_add(1);
                    slot.early = 0;
                    Trigger::Retry { attempt: slot.failures }
                });
                remember(&mut slot.triggers, trigger);
            }
            self.normal.insert(place, key);
        }
    }

    fn slot<'a>(slots: &'a mut BTreeMap<T, Slot>, key: &T) -> &'a mut Slot {
        slots.entry(key.clone()).or_insert_with(|| Slot {
            state: State::Idle,
            triggers: Vec::new(),
            failures: 0,
            early: 0,
        })
    }

    fn drop_if_idle(&mut self, key: &T) {
        let gone = |slot: &Slot| {
            matches!(slot.state, State::Idle) && slot.failures == 0 && slot.early == 0
        };
        if self.slots.get(key).is_some_and(gone) {
            self.slots.remove(key);
        }
    }

    fn line(&mut self, priority: Priority) -> &mut BTreeMap<u64, T> {
        match priority {
            Priority::Low => &mut self.low,
            Priority::Normal => &mut self.normal,
        }
    }

    fn next_place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }
}

fn remember(triggers: &mut Vec<Trigger>, trigger: Trigger) {
    if triggers.len() < MOST_TRIGGERS && !triggers.contains(&trigger) {
        triggers.push(trigger);
    }
}
