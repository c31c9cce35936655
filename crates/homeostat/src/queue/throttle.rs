//! The optional rate of a queue: when the next key may be handed out. Knows no keys and no clock.

use std::time::Duration;

use super::Rate;

/// A bucket of turns, kept as the time at which it will be full again: no rounding, no ticking.
#[derive(Debug)]
pub(super) struct Throttle {
    rate: Rate,
    full_at: Duration,
}

impl Throttle {
    /// A full bucket.
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, full_at: Duration::ZERO }
    }

    /// When the next turn may be taken; in the past if one is free.
    pub(super) fn free_at(&self) -> Duration {
        let saved = self.rate.every.saturating_mul(self.rate.burst.max(1) - 1);
        self.full_at.saturating_sub(saved)
    }

    /// Takes a turn if one is free.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let free = self.free_at() <= now;
        if free {
            self.full_at = self.full_at.max(now).saturating_add(self.rate.every);
        }
        free
    }
}
