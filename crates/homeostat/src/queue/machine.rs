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
//!
//! With a debounce, news makes an idle key wait until it is quiet instead of making it ready.

mod rest;

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;

use super::line::Line;
use super::rules::Rules;
use super::slot::{Dirty, Slot, State, Timer, Why};
use super::slots::Slots;
use super::throttle::Throttle;
use crate::trigger::{Trigger, Triggers};

/// After this many normal keys in a row a waiting low one goes first, so that it never starves.
const NORMAL_IN_A_ROW: u32 = 8;

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
    pub triggers: Triggers,
    /// How many backoffs in a row this key has served.
    pub failures: u32,
    /// When it became ready, as the time of its queue; see [`Queue::waited`](super::Queue::waited).
    pub ready_since: Duration,
}

/// One entry per key. Timers cost `O(log n)`, everything else is constant; all of it deterministic.
#[derive(Debug)]
pub struct Machine<T> {
    rules: Rules<T>,
    slots: Slots<T>,
    low: Line,
    normal: Line,
    waiting: BTreeMap<(Duration, u64), usize>,
    throttle: Option<Throttle>,
    timers: u64,
    normal_in_a_row: u32,
    running: usize,
    failing: usize,
    adds: u64,
    /// The slot handed out last: whoever is done is likely to be that one.
    last: usize,
    paused: bool,
    closed: bool,
}

impl<T: Hash + Eq + Clone> Machine<T> {
    /// An empty queue with these rules; the backoff among them is the caller's business.
    #[must_use]
    pub fn new(rules: Rules<T>) -> Self {
        Self {
            throttle: rules.rate.map(Throttle::new),
            rules,
            slots: Slots::new(),
            low: Line::new(),
            normal: Line::new(),
            waiting: BTreeMap::new(),
            timers: 0,
            normal_in_a_row: 0,
            running: 0,
            failing: 0,
            adds: 0,
            last: usize::MAX,
            paused: false,
            closed: false,
        }
    }

    /// Makes a key ready now, or as soon as it is quiet if the rules say so. A waiting key's timer
    /// is consumed, except that of a failing key whose backoff was cut short five times already:
    /// that one is served to its end, unless the key was [mended](Self::mended), and the trigger is
    /// told then. A running key runs once more
    /// after `done`; a ready key keeps its place unless its priority rises. Ignored after
    /// [`Self::close`].
    #[inline(always)] // or key and trigger are moved once more
    pub fn add(&mut self, key: T, trigger: Trigger, priority: Priority, now: Duration) {
        self.release(now);
        if self.closed {
            return;
        }
        let debounce = if trigger.is_news() { self.rules.debounce } else { None };
        let id = self.slots.of(key);
        let slot = &mut self.slots[id];
        slot.remember(trigger);
        let mut before = None;
        match slot.state {
            State::Running { dirty } => {
                let dirty = match (dirty, debounce) {
                    (Dirty::AtOnce(old), _) => Dirty::AtOnce(old.max(priority)),
                    (Dirty::No | Dirty::WhenQuiet, Some(debounce)) => {
                        let before = slot.quiet.take();
                        slot.quiet = Some(Timer::quiet(debounce, priority, before.as_deref(), now));
                        Dirty::WhenQuiet
                    }
                    (Dirty::No | Dirty::WhenQuiet, None) => {
                        let held = slot.quiet.take().map(|timer| timer.priority());
                        Dirty::AtOnce(held.map_or(priority, |held| held.max(priority)))
                    }
                };
                slot.state = State::Running { dirty };
                return;
            }
            State::Ready { priority: old, .. } if old >= priority => return,
            State::Ready { since, .. } => {
                self.low.leave(&mut self.slots, id);
                return self.line_up(id, priority, since);
            }
            State::Waiting { turn } => {
                if !self.gives_way(id) {
                    return;
                }
                before = self.slots[id].timer.take();
                if let Some(timer) = &before {
                    self.waiting.remove(&(timer.due, turn));
                }
            }
            State::Idle => {}
        }
        match debounce {
            Some(debounce) => {
                self.wait(id, Timer::quiet(debounce, priority, before.as_deref(), now));
                self.release(now);
            }
            None => {
                let held = before.filter(|timer| matches!(timer.why, Why::Quiet { .. }));
                let priority = held.map_or(priority, |timer| timer.priority().max(priority));
                self.make_ready(id, priority, now);
            }
        }
    }

    /// Makes a key ready at `due`, or earlier on `add`. Of two timers the earlier wins; a key that
    /// is ready already ignores it. Ignored after [`Self::close`].
    pub fn add_at(&mut self, key: T, trigger: Trigger, due: Duration, now: Duration) {
        self.schedule(key, Box::new(Timer { due, why: Why::Asked(trigger) }), now);
    }

    /// Makes a failed key ready after `delay`. The failure counts once the delay has been served:
    /// an event that consumes it leaves [`Self::failures`] as it was.
    pub fn add_failed(&mut self, key: T, delay: Duration, now: Duration) {
        self.schedule(
            key,
            Box::new(Timer { due: now.saturating_add(delay), why: Why::Backoff }),
            now,
        );
    }

    /// The next ready key, now running; `None` when there is none, the queue is paused, or its
    /// rate is used up.
    pub fn take(&mut self, now: Duration) -> Option<Item<T>> {
        let id = self.next(|| now)?;
        self.hand_out(id)
    }

    /// Takes the next key out of its line; [`Self::hand_out`] must follow. In two steps, so that an
    /// item is written once, to where it is wanted: moving one costs more than finding it. The time
    /// is asked for only when it matters.
    #[inline(always)]
    pub(super) fn next(&mut self, now: impl Fn() -> Duration) -> Option<usize> {
        if !self.waiting.is_empty() {
            self.release_waiting(now());
        }
        if self.paused || self.ready() == 0 {
            return None;
        }
        if self.throttle.as_mut().is_some_and(|throttle| !throttle.take(now())) {
            return None;
        }
        let from_low = self.normal.is_empty()
            || (self.normal_in_a_row >= NORMAL_IN_A_ROW && !self.low.is_empty());
        let line = if from_low { &mut self.low } else { &mut self.normal };
        let id = line.pop(&mut self.slots)?;
        self.last = id;
        self.normal_in_a_row = if from_low { 0 } else { self.normal_in_a_row.saturating_add(1) };
        self.running += 1;
        Some(id)
    }

    /// Hands out the key that [`Self::next`] gave.
    #[inline(always)]
    pub(super) fn hand_out(&mut self, id: usize) -> Option<Item<T>> {
        let slot = &mut self.slots[id];
        let State::Ready { since: ready_since, .. } = slot.state else { return None };
        slot.state = State::Running { dirty: Dirty::No };
        let failures = slot.failures;
        let triggers = std::mem::take(&mut slot.triggers);
        slot.key.clone().map(|key| Item { key, triggers, failures, ready_since })
    }

    /// The worker has finished with a key: it goes to the back of the line if it was added
    /// meanwhile, waits if it was given a time, and is idle otherwise. Nothing happens to a key that
    /// does not run. The time is asked for only when it matters.
    pub fn done(&mut self, key: &T, now: impl Fn() -> Duration) {
        let asked = (!self.waiting.is_empty()).then(&now);
        if let Some(now) = asked {
            self.release(now);
        }
        let Some(id) = self.slots.find_near(self.last, key) else { return };
        let slot = &mut self.slots[id];
        let State::Running { mut dirty } = slot.state else { return };
        self.running -= 1;
        slot.state = State::Idle;
        if self.closed {
            slot.timer = None;
        }
        if !matches!(dirty, Dirty::No) && slot.timer.is_some() && !self.gives_way(id) {
            dirty = Dirty::No;
        }
        let slot = &mut self.slots[id];
        if matches!(dirty, Dirty::No) && slot.timer.is_none() {
            return self.drop_if_blank(id);
        }
        let (timer, quiet) = (slot.timer.take(), slot.quiet.take());
        let now = asked.unwrap_or_else(now);
        match (dirty, quiet, timer) {
            (Dirty::AtOnce(priority), ..) => self.make_ready(id, priority, now),
            (Dirty::WhenQuiet, Some(quiet), _) if self.closed => {
                self.make_ready(id, quiet.priority(), now);
            }
            (Dirty::WhenQuiet, Some(mut quiet), timer) => {
                if let Some(timer) = timer {
                    quiet.no_later_than(timer.due);
                }
                self.wait(id, quiet);
            }
            (_, _, Some(timer)) => self.wait(id, timer),
            (_, _, None) => {}
        }
        self.release(now);
    }

    /// The key is well again: its failure count is zero. A pending timer stays.
    pub fn forget(&mut self, key: &T) {
        if let Some(id) = self.slots.find(key) {
            let slot = &mut self.slots[id];
            self.failing -= usize::from(!slot.is_well());
            (slot.failures, slot.early) = (0, 0);
            self.drop_if_blank(id);
        }
    }

    /// Somebody has put the key right, or so it seems: the next event ends its backoff, however many
    /// have done so before. Its failure count stays.
    pub fn mended(&mut self, key: &T) {
        if let Some(id) = self.slots.find(key) {
            let slot = &mut self.slots[id];
            let was_well = slot.is_well();
            slot.early = 0;
            self.failing -= usize::from(!was_well && slot.is_well());
            self.drop_if_blank(id);
        }
    }

    /// Whether events have ended backoffs of the key since it last served one.
    pub(super) fn was_cut_short(&self, key: &T) -> bool {
        self.slots.find(key).is_some_and(|id| self.slots[id].early > 0)
    }

    /// No more intake: timers are dropped; keys that are ready or dirty, or wait for quiet, are
    /// still handed out.
    pub fn close(&mut self) {
        self.closed = true;
        for ((due, _), id) in std::mem::take(&mut self.waiting) {
            match self.slots[id].timer.take() {
                Some(timer) if matches!(timer.why, Why::Quiet { .. }) => {
                    self.make_ready(id, timer.priority(), due);
                }
                _ => self.remove(id),
            }
        }
    }

    /// Drops what is ready or dirty; running keys are left to finish.
    pub fn clear(&mut self) {
        (self.low, self.normal) = (Line::new(), Line::new());
        let is_ready = |slot: &Slot<T>| matches!(slot.state, State::Ready { .. });
        let ready = self.slots.iter().filter(|(_, slot)| is_ready(slot)).map(|(id, _)| id);
        for id in ready.collect::<Vec<_>>() {
            self.remove(id);
        }
        for slot in self.slots.iter_mut() {
            slot.quiet = None;
            if let State::Running { dirty } = &mut slot.state {
                *dirty = Dirty::No;
                slot.triggers = Triggers::default();
            }
        }
    }

    /// Whether [`Self::close`] was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the queue is closed and nothing will be handed out any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.closed && (self.paused || self.ready() == 0)
    }

    /// Whether the queue is over and every key that was handed out has come back.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_over() && self.running == 0
    }

    /// The priority that puts a key behind all that are ready.
    pub(super) fn last_priority(&self) -> Priority {
        if self.low.is_empty() { Priority::Normal } else { Priority::Low }
    }

    /// Whether a worker would be given a key whatever the time is.
    pub(super) fn offers(&self) -> bool {
        self.ready() > 0 && !self.paused && self.throttle.is_none()
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

    /// How many keys have failed and were not forgotten since.
    #[must_use]
    pub fn failing(&self) -> usize {
        self.failing
    }

    /// How often a key became ready, all keys together.
    #[must_use]
    pub fn adds(&self) -> u64 {
        self.adds
    }

    /// When [`Self::take`] may give something that it does not give now: a waiting key becomes
    /// ready, or the rate allows the next one.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let timer = self.waiting.first_key_value().map(|((due, _), _)| *due);
        let held = !self.paused && self.ready() > 0;
        let turn = self.throttle.as_ref().filter(|_| held).map(Throttle::free_at);
        timer.into_iter().chain(turn).min()
    }

    /// How many backoffs in a row a key has served; 0 for an unknown one.
    #[must_use]
    pub fn failures(&self, key: &T) -> u32 {
        self.slots.find(key).map_or(0, |id| self.slots[id].failures)
    }

    /// How many keys something is kept for, and for how many there is room.
    #[cfg(test)]
    pub(super) fn known(&self) -> (usize, usize) {
        self.slots.known()
    }

    fn schedule(&mut self, key: T, timer: Box<Timer>, now: Duration) {
        self.release(now);
        if self.closed {
            return;
        }
        let id = self.slots.of(key);
        let slot = &mut self.slots[id];
        if slot.timer.as_ref().is_some_and(|old| old.due <= timer.due) {
            return;
        }
        match slot.state {
            State::Ready { .. } => return,
            State::Running { .. } => return slot.timer = Some(timer),
            State::Waiting { turn } => {
                if let Some(old) = &slot.timer {
                    self.waiting.remove(&(old.due, turn));
                }
            }
            State::Idle => {}
        }
        self.wait(id, timer);
        self.release(now);
    }

    /// Moves every key whose time has come to the back of its line, earliest first.
    fn release(&mut self, now: Duration) {
        if !self.waiting.is_empty() {
            self.release_waiting(now);
        }
    }

    fn release_waiting(&mut self, now: Duration) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            let ((due, _), id) = first.remove_entry();
            let slot = &mut self.slots[id];
            let mut priority = Priority::Normal;
            if let Some(timer) = slot.timer.take() {
                match timer.why {
                    Why::Asked(trigger) => slot.remember(trigger),
                    Why::Quiet { priority: waited, .. } => priority = waited,
                    Why::Backoff => {
                        self.failing += usize::from(slot.is_well());
                        slot.failures = slot.failures.saturating_add(1);
                        slot.early = 0;
                        slot.remember(Trigger::Retry { attempt: slot.failures });
                    }
                }
            }
            self.make_ready(id, priority, due);
        }
    }

    fn wait(&mut self, id: usize, timer: Box<Timer>) {
        self.timers += 1;
        self.waiting.insert((timer.due, self.timers), id);
        let slot = &mut self.slots[id];
        slot.state = State::Waiting { turn: self.timers };
        slot.timer = Some(timer);
    }

    fn make_ready(&mut self, id: usize, priority: Priority, since: Duration) {
        self.adds += 1;
        self.line_up(id, priority, since);
    }

    fn line_up(&mut self, id: usize, priority: Priority, since: Duration) {
        let line = match priority {
            Priority::Low => &mut self.low,
            Priority::Normal => &mut self.normal,
        };
        self.slots[id].state = State::Ready { priority, since };
        line.join(&mut self.slots, id, self.rules.lane);
    }

    /// Whether an event may take the place of the key's timer.
    fn gives_way(&mut self, id: usize) -> bool {
        let slot = &mut self.slots[id];
        let was_well = slot.is_well();
        let gives_way = slot.gives_way();
        self.failing += usize::from(was_well && !slot.is_well());
        gives_way
    }

    fn drop_if_blank(&mut self, id: usize) {
        if self.slots[id].is_blank() {
            self.slots.remove(id);
        }
    }

    fn remove(&mut self, id: usize) {
        self.failing -= usize::from(!self.slots[id].is_well());
        self.slots.remove(id);
    }
}
