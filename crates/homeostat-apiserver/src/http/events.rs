//! What one watcher sees of a change: which event, if any, and in which form.

use std::sync::Arc;

use bytes::{BufMut as _, BytesMut};
use jiff::Timestamp;
use serde_json::Value;

use super::render::View;
use crate::kinds::Kind;
use crate::registry::selector::Selector;
use crate::store::{Change, Stored};

/// One event of a watch.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Added(Arc<Stored>),
    Modified(Arc<Stored>),
    Deleted(Arc<Stored>),
    Bookmark(u64),
    /// The bookmark after the initial events.
    InitialEnd(u64),
}

/// The view of one watcher.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) kind: Arc<Kind>,
    /// Empty for all namespaces.
    pub(crate) namespace: String,
    pub(crate) selector: Selector,
    pub(crate) view: View,
}

impl Events {
    /// What the change looks like from here.
    pub(crate) fn of(&self, change: &Change) -> Option<Event> {
        if !self.namespace.is_empty() && change.object.key.namespace != self.namespace {
            return None;
        }
        let before = change.previous.as_ref().filter(|object| self.selector.matches(object));
        let after = (!change.deleted && self.selector.matches(&change.object))
            .then(|| change.object.clone());
        match (before, after) {
            (None, None) => None,
            (None, Some(object)) => Some(Event::Added(object)),
            (Some(_), Some(object)) => Some(Event::Modified(object)),
            (Some(_), None) if change.deleted => Some(Event::Deleted(change.object.clone())),
            (Some(before), None) => {
                Some(Event::Deleted(at_revision(before, change.object.revision)))
            }
        }
    }

    /// Appends the event as one line.
    pub(crate) fn write(&mut self, bytes: &mut BytesMut, event: &Event, now: Timestamp) {
        self.view.now = now;
        let (word, object) = match event {
            Event::Added(object) => ("ADDED", self.view.object(&self.kind, object)),
            Event::Modified(object) => ("MODIFIED", self.view.object(&self.kind, object)),
            Event::Deleted(object) => ("DELETED", self.view.object(&self.kind, object)),
            Event::Bookmark(revision) => {
                ("BOOKMARK", self.view.bookmark(&self.kind, *revision, false))
            }
            Event::InitialEnd(revision) => {
                ("BOOKMARK", self.view.bookmark(&self.kind, *revision, true))
            }
        };
        put(bytes, word, &object);
        self.view.headers = false;
    }
}

fn put(bytes: &mut BytesMut, word: &str, object: &[u8]) {
    bytes.reserve(word.len() + object.len() + 24);
    bytes.put_slice(b"{\"type\":\"");
    bytes.put_slice(word.as_bytes());
    bytes.put_slice(b"\",\"object\":");
    bytes.put_slice(object);
    bytes.put_slice(b"}\n");
}

/// The object as it was, shown at a later revision: it left the selection then.
fn at_revision(object: &Stored, revision: u64) -> Arc<Stored> {
    let mut value: Value = object.value();
    value["metadata"]["resourceVersion"] = revision.to_string().into();
    Arc::new(Stored { revision, body: value.to_string().into(), ..object.clone() })
}
