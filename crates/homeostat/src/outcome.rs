//! What a reconcile that went well asks for next.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

/// When to run again. An error is not an outcome: it cannot be combined with a requeue time.
///
/// ```
/// use std::time::Duration;
/// use homeostat::Outcome;
///
/// assert_eq!(Outcome::RequeueAfter(Duration::from_secs(5)).to_string(), "requeue after 5s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to do until an event.
    Done,
    /// Run again at once, after the keys already waiting (of its namespace: those take turns). While
    /// keys of the first list wait it is the last of them, and events go before those.
    Requeue,
    /// Run again after this long, or earlier on an event.
    RequeueAfter(Duration),
    /// Run again at that time, or earlier on an event; at once when it has passed.
    RequeueAt(Timestamp),
}

/// The words of the journal: `done`, `requeue`, `requeue after 5s`, `requeue at <time>`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Requeue => f.write_str("requeue"),
            Self::RequeueAfter(delay) => write!(f, "requeue after {delay:?}"),
            Self::RequeueAt(time) => write!(f, "requeue at {time}"),
        }
    }
}
