//! Kubernetes Events: what happened to an object, for the people who `kubectl describe` it.
//!
//! A [`Recorder`] takes notes without ever waiting; one background task writes them as
//! `events.k8s.io/v1`, folding repeats into a series and holding back an object that is too chatty.

mod correlator;
mod delivery;
mod draft;
mod lanes;
mod name;
mod recorder;

pub use draft::EventDraft;
pub(crate) use name::is_reporter;
pub use recorder::Recorder;

use k8s_openapi::api::core::v1::ObjectReference;

/// The limits the API sets, in bytes.
const NOTE_LIMIT: usize = 1024;
const WORD_LIMIT: usize = 128;

/// `Normal` or `Warning`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Something expected happened.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    /// The word the API uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// One thing that happened, before it is folded with others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    pub(crate) controller: String,
    pub(crate) regarding: ObjectReference,
    pub(crate) related: Option<ObjectReference>,
    pub(crate) kind: EventType,
    pub(crate) reason: String,
    pub(crate) action: String,
    pub(crate) text: String,
}

/// The longest prefix of at most `limit` bytes that is whole characters.
fn clip(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
