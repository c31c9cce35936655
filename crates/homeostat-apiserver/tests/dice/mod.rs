//! Chance from a seed: the same seed makes the same requests, everywhere.

#![allow(dead_code, reason = "each test uses its part")]

use homeostat_env::Env;
use jiff::Timestamp;

/// A stream of choices.
pub(crate) struct Dice(Env);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Env::simulated(seed, Timestamp::UNIX_EPOCH))
    }

    pub(crate) fn below(&self, bound: usize) -> usize {
        usize::try_from(self.0.random_below(bound as u64)).unwrap()
    }

    /// True that many times in a hundred.
    pub(crate) fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// One of the choices, each as likely as its weight says.
    pub(crate) fn weighted<T: Copy>(&self, choices: &[(usize, T)]) -> T {
        let total = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total);
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        choices[0].1
    }
}
