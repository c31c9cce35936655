//! The workers that sleep: how many, and until when one of them does. Kept under the queue's lock,
//! so that whoever changes the queue knows whether somebody must be woken. Never looks at a clock.
//!
//! At most one worker needs a timer: when it is due that one takes the key, and the next timer is
//! handed to another that sleeps.

use std::hash::Hash;
use std::sync::MutexGuard;
use std::time::Duration;

use tokio::sync::Notify;

use super::{Machine, Shared};

/// What the lock of a queue guards.
pub(super) struct Guarded<T> {
    pub(super) machine: Machine<T>,
    /// How many workers sleep.
    asleep: usize,
    /// One of them sleeps until then.
    alarm: Option<Duration>,
}

impl<T: Hash + Eq + Clone> Guarded<T> {
    pub(super) fn new(machine: Machine<T>) -> Self {
        Self { machine, asleep: 0, alarm: None }
    }

    /// Whether somebody who sleeps is needed: to take a key, to wait for one, or to end because
    /// there will be none.
    pub(super) fn needs_sleeper(&self) -> bool {
        let machine = &self.machine;
        self.asleep > 0 && (machine.offers() || self.unwatched().is_some() || machine.is_over())
    }

    /// When something is due that nobody sleeps until.
    fn unwatched(&self) -> Option<Duration> {
        self.machine.next_due().filter(|due| self.alarm.is_none_or(|alarm| *due < alarm))
    }
}

/// A worker that sleeps, as long as it does.
pub(super) struct Asleep<'a, T: Hash + Eq + Clone> {
    shared: &'a Shared<T>,
    alarm: Option<Duration>,
    woken: bool,
}

impl<'a, T: Hash + Eq + Clone> Asleep<'a, T> {
    /// Begins with the lock held, which it gives up.
    pub(super) fn begin(shared: &'a Shared<T>, mut guarded: MutexGuard<'a, Guarded<T>>) -> Self {
        let alarm = guarded.unwatched();
        guarded.asleep += 1;
        guarded.alarm = alarm.or(guarded.alarm);
        Self { shared, alarm, woken: false }
    }

    /// When this one must wake by itself.
    pub(super) fn alarm(&self) -> Option<Duration> {
        self.alarm
    }

    /// It is awake and looks for work itself.
    pub(super) fn end(mut self) {
        self.woken = true;
    }
}

impl<T: Hash + Eq + Clone> Drop for Asleep<'_, T> {
    fn drop(&mut self) {
        let mut guarded = self.shared.lock();
        guarded.asleep -= 1;
        if self.alarm.is_some() && guarded.alarm == self.alarm {
            guarded.alarm = None;
        }
        // One that was dropped in its sleep leaves its part to another.
        if !self.woken {
            self.shared.leave(guarded);
        }
    }
}

/// Wakes one worker when it goes, if it was told to. Whoever makes it before taking the lock has
/// given up the lock by then.
pub(super) struct Bell<'a> {
    work: &'a Notify,
    rings: bool,
}

impl<'a> Bell<'a> {
    pub(super) fn new(work: &'a Notify) -> Self {
        Self { work, rings: false }
    }

    pub(super) fn ring_if(&mut self, needed: bool) {
        self.rings = needed;
    }
}

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        if self.rings {
            self.work.notify_one();
        }
    }
}
