//! Why a reconcile runs: carried from the event through the queue into the context and the journal.

use std::fmt;
use std::ops::Deref;

use crate::key::Key;
use crate::kind::Kind;

/// One reason to reconcile a key. Reasons that arrive while a key waits are merged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Trigger {
    /// The object was there at the start, or when this process came to lead again.
    Initial,
    /// The object itself, a child, or a watched object changed.
    Event {
        /// `added`, `updated` or `deleted`.
        change: EventKind,
        /// The kind of the object that changed.
        kind: Kind,
        /// The object that changed.
        key: Key,
    },
    /// A requested time has come.
    Timer,
    /// The reconcile asked to run again at once.
    Requeued,
    /// The backoff after a failure has passed: of the reconcile, or of writing the conditions that the
    /// runtime itself reports.
    Retry {
        /// How many failures in a row came before; from 1.
        attempt: u32,
    },
    /// A conflict or a stale cache: run again from fresh state.
    Conflict,
    /// A source outside the API, by its name; `namespaces` where those that the controller looks
    /// after are others now.
    Source(String),
}

impl Trigger {
    /// Whether it tells of something that happened outside: an event or a source's word. Timers,
    /// retries and requeues are not news, and neither is the first list.
    #[must_use]
    pub fn is_news(&self) -> bool {
        matches!(self, Self::Event { .. } | Self::Source(_))
    }
}

/// Why a key runs: its reasons in order of arrival, repeats merged; read as a slice. Most keys have
/// one, which takes no memory of its own.
#[derive(Debug, Clone, Default)]
pub struct Triggers(Few);

#[derive(Debug, Clone, Default)]
enum Few {
    #[default]
    None,
    One(Trigger),
    Many(Vec<Trigger>),
}

impl Triggers {
    pub(crate) fn push(&mut self, trigger: Trigger) {
        match &mut self.0 {
            Few::None => self.0 = Few::One(trigger),
            Few::Many(triggers) => triggers.push(trigger),
            Few::One(_) => {
                let mut triggers = Vec::with_capacity(4);
                if let Few::One(first) = std::mem::take(&mut self.0) {
                    triggers.push(first);
                }
                triggers.push(trigger);
                self.0 = Few::Many(triggers);
            }
        }
    }
}

impl Deref for Triggers {
    type Target = [Trigger];

    fn deref(&self) -> &[Trigger] {
        match &self.0 {
            Few::None => &[],
            Few::One(trigger) => std::slice::from_ref(trigger),
            Few::Many(triggers) => triggers,
        }
    }
}

impl PartialEq for Triggers {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Triggers {}

impl<const N: usize> PartialEq<[Trigger; N]> for Triggers {
    fn eq(&self, other: &[Trigger; N]) -> bool {
        **self == *other
    }
}

impl FromIterator<Trigger> for Triggers {
    fn from_iter<I: IntoIterator<Item = Trigger>>(triggers: I) -> Self {
        let mut all = Self::default();
        triggers.into_iter().for_each(|trigger| all.push(trigger));
        all
    }
}

/// The reasons in words, separated by commas.
impl fmt::Display for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, trigger) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{trigger}")?;
        }
        Ok(())
    }
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// It is new to the cache.
    Added,
    /// It changed.
    Updated,
    /// It is gone.
    Deleted,
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        })
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initial => f.write_str("initial"),
            Self::Event { change, kind, key } => write!(f, "{kind} {key} {change}"),
            Self::Timer => f.write_str("timer"),
            Self::Requeued => f.write_str("requeued"),
            Self::Retry { attempt } => write!(f, "retry {attempt}"),
            Self::Conflict => f.write_str("conflict"),
            Self::Source(name) => write!(f, "source {name}"),
        }
    }
}
