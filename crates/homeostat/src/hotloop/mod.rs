//! Loops that never come to rest: an object that is reconciled, or written, far too often is named
//! together with the fields that go back and forth.
//!
//! Watching costs a few counters for each key that was active lately, and the number of keys is
//! bounded. It never slows anything down and never stops a loop: it says that there is one.

mod detector;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

pub(crate) use detector::{Detector, Run};

use crate::key::Key;
use crate::kind::Kind;

/// What counts as a hot loop. All counts are for one key within one `window`.
///
/// ```
/// use homeostat::HotLoop;
///
/// // For [`homeostat::Controller::hot_loop`]: one that polls a lot, and means it.
/// let limits = HotLoop { reconciles: 6000, ..HotLoop::default() };
/// assert_eq!(limits.flips, 10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotLoop {
    /// Over how long is counted; one minute by default.
    pub window: Duration,
    /// So many times a field of one object was set back to a value it had before; 10 by default.
    /// Somebody else wants another value, or two reconciles disagree. In a status ten times as many:
    /// one that counts what is ready goes up and down with it.
    pub flips: u32,
    /// So many times one object was changed, made or deleted; 200 by default. A reconcile that writes
    /// something new every time (a clock, a random name) wakes itself; one that makes a child again
    /// and again has somebody who deletes it.
    pub writes: u32,
    /// So many reconciles, whatever they did; 600 by default.
    pub reconciles: u32,
}

impl Default for HotLoop {
    fn default() -> Self {
        Self { window: Duration::from_secs(60), flips: 10, writes: 200, reconciles: 600 }
    }
}

/// A loop that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How often the key was reconciled within the window so far.
    pub reconciles: u32,
    /// The object that this key's reconciles changed (or made, or deleted) most often, and how often;
    /// `None` when they change nothing.
    pub object: Option<(Kind, Key, u32)>,
    /// The object whose events woke it most often, and how often.
    pub woken_by: Option<(Kind, Key, u32)>,
    /// The fields of the changed object that changed most often, those that flip first; of the
    /// reconciled object, when it is others who change it. At most five.
    pub fields: Vec<String>,
    /// Over how long was counted.
    pub window: Duration,
}

/// `hot loop: reconciled 12 times in 60s, ConfigMap default/x changed 12 times, woken by …`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hot loop: reconciled {} times in {:?}", self.reconciles, self.window)?;
        if let Some((kind, key, changes)) = &self.object {
            write!(f, ", {kind} {key} changed {changes} times")?;
        }
        if let Some((kind, key, times)) = &self.woken_by {
            write!(f, ", woken by {kind} {key} {times} times")?;
        }
        if !self.fields.is_empty() {
            write!(f, ", again and again in {}", self.fields.join(", "))?;
        }
        Ok(())
    }
}
