//! How long a failing key waits; knows nothing of clocks or of where its randomness comes from.

use std::time::Duration;

/// Exponential backoff: `first · factor^n`, never longer than `max`.
///
/// The default is 1 s doubling to 5 min with a tenth of jitter.
///
/// ```
/// use std::time::Duration;
/// use homeostat::Backoff;
///
/// let backoff = Backoff { max: Duration::from_secs(3), ..Backoff::default() }.exact();
/// let delays: Vec<u64> = (0..4).map(|failures| backoff.delay(failures, 0.0).as_secs()).collect();
/// assert_eq!(delays, [1, 2, 3, 3]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The delay after the first failure; 1 s by default.
    pub first: Duration,
    /// By what each further delay is longer; 2 by default.
    pub factor: f64,
    /// The longest delay; 5 min by default. Only an API that says how long it wants to be left alone
    /// (`Retry-After`) is left alone for longer, for 5 min at most.
    pub max: Duration,
    /// The fraction of the delay that is drawn at random, between 0 (none) and 1; 0.1 by default.
    /// Jitter only shortens a delay, so that `max` stays a promise.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            factor: 2.0,
            max: Duration::from_secs(300),
            jitter: 0.1,
        }
    }
}

impl Backoff {
    /// The delay after `failures` earlier failures; `dice` in `[0, 1)` decides the jitter.
    #[must_use]
    pub fn delay(&self, failures: u32, dice: f64) -> Duration {
        let power = i32::try_from(failures).unwrap_or(i32::MAX);
        let seconds = self.first.as_secs_f64() * self.factor.powi(power);
        // Infinity is larger than any maximum; a NaN from odd factors falls back to it too.
        let seconds = seconds.min(self.max.as_secs_f64());
        let shortened = seconds * (1.0 - self.jitter.clamp(0.0, 1.0) * dice.clamp(0.0, 1.0));
        Duration::try_from_secs_f64(shortened).unwrap_or(self.max)
    }

    /// The same without jitter: exact delays, for tests and for controllers that want them.
    #[must_use]
    pub fn exact(self) -> Self {
        Self { jitter: 0.0, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_one_second_to_five_minutes() {
        let backoff = Backoff::default().exact();
        let seconds: Vec<u64> = (0..11).map(|n| backoff.delay(n, 0.9).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.delay(u32::MAX, 0.0), backoff.max);
    }

    #[test]
    fn jitter_only_shortens() {
        let backoff = Backoff { jitter: 0.5, ..Backoff::default() };
        assert_eq!(backoff.delay(1, 0.0), Duration::from_secs(2));
        assert_eq!(backoff.delay(1, 0.5), Duration::from_millis(1500));
    }
}
