//! The words that the watch machine, its driver and the cache exchange.

use std::time::Duration;

use super::request::{Refusal, Request};
use crate::key::Key;

/// An object, or what should be one, that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Which; `None` when not even that can be read.
    pub key: Option<Key>,
    /// Its uid; empty when that cannot be read.
    pub uid: String,
    /// Its revision; empty when that cannot be read.
    pub revision: String,
    /// Whether it is gone.
    pub gone: bool,
    /// What is wrong with it, in words.
    pub why: String,
}

/// What the driver saw.
#[derive(Debug)]
pub enum Input<O> {
    /// The start, or the end of a wait.
    Go,
    /// The server has accepted a watch.
    Opened,
    /// The server answered with an error, or sent one in the stream.
    Refused(Refusal),
    /// The connection failed or broke.
    Broken(String),
    /// A page of a list.
    Page {
        /// Its objects.
        items: Vec<O>,
        /// Those among them that cannot be read.
        skipped: Vec<Unreadable>,
        /// The revision of the list.
        revision: String,
        /// Where the next page begins; `None` on the last.
        token: Option<String>,
    },
    /// An object was added or modified.
    Applied {
        /// The object.
        object: O,
        /// Its revision.
        revision: String,
    },
    /// An object was deleted.
    Deleted {
        /// Its last state.
        object: O,
        /// The revision of the deletion.
        revision: String,
    },
    /// The watch is complete up to a revision.
    Bookmark {
        /// That revision.
        revision: String,
        /// Whether it ends the initial events of a streaming list.
        initial_end: bool,
    },
    /// Something that cannot be read: an object that can be named is skipped, and what may be any
    /// object ends the watch or the streaming list.
    Undecodable(Unreadable),
    /// The server ended the watch in good order.
    Closed,
    /// Nothing came for as long as [`Next::Read`] allowed.
    Silent,
}

impl<O> Input<O> {
    /// Whether nothing more can come of what was open.
    pub(super) fn is_an_end(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Broken(_) | Self::Closed | Self::Silent)
    }

    /// Whether it is something that a stream said, other than that its initial events are over.
    pub(super) fn is_a_word(&self) -> bool {
        match self {
            Self::Applied { .. } | Self::Deleted { .. } | Self::Undecodable(_) => true,
            Self::Bookmark { initial_end, .. } => !initial_end,
            _ => false,
        }
    }
}

/// What the cache is told.
#[derive(Debug, PartialEq, Eq)]
pub enum Change<O> {
    /// A list begins; with `new_history` older revisions replace newer ones.
    Restart {
        /// The server's history was lost or restored.
        new_history: bool,
    },
    /// An object was listed, added or modified.
    Applied(O),
    /// An object was deleted.
    Deleted(O),
    /// The list is complete at that revision.
    Synced(String),
    /// Everything up to that revision was told.
    Bookmark(String),
    /// The watch runs.
    Watching,
    /// The source does not work at the moment, and why.
    Pending(String),
    /// An object was skipped: whatever is known of it stays, and is known to be old.
    Skipped(Unreadable),
}

/// What the driver does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this, giving up what is open.
    Request(Request),
    /// Read on, at most this long without a word.
    Read(Duration),
    /// Wait, giving up what is open.
    Wait(Duration),
}

/// The result of one step.
#[derive(Debug, PartialEq, Eq)]
pub struct Step<O> {
    /// For the cache, in order.
    pub changes: Vec<Change<O>>,
    /// For the driver.
    pub next: Next,
}
