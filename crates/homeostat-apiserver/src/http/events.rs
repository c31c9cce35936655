//! What one watcher sees of a change: which event, if any, and in which form.

use std::sync::Arc;

use bytes::{BufMut as _, BytesMut};
use serde_json::{Value, json};

use super::negotiate::Form;
use super::render;
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
    pub(crate) form: Form,
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
    pub(crate) fn write(&mut self, bytes: &mut BytesMut, event: &Event) {
        let (word, object) = match event {
            Event::Added(object) => ("ADDED", object),
            Event::Modified(object) => ("MODIFIED", object),
            Event::Deleted(object) => ("DELETED", object),
            Event::Bookmark(revision) => return self.write_bookmark(bytes, *revision, false),
            Event::InitialEnd(revision) => return self.write_bookmark(bytes, *revision, true),
        };
        let object = render::object(&self.kind, object, self.form);
        put(bytes, word, &object);
    }

    /// A bookmark has nothing but a revision.
    fn write_bookmark(&self, bytes: &mut BytesMut, revision: u64, initial_end: bool) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, api_version) = match self.form {
            Form::Metadata => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
            _ => (self.kind.kind.clone(), self.kind.api_version()),
        };
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        put(bytes, "BOOKMARK", object.to_string().as_bytes());
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
