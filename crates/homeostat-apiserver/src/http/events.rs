//! What one watcher sees of a change: which event, if any, and in which form.
//!
//! Objects are encoded when they are committed, and other forms once per change: what is left for
//! each watcher is to put the words of the event around bytes that all of them share.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;

use super::negotiate::Form;
use super::render::View;
use crate::kinds::Kind;
use crate::print::Look;
use crate::registry::selector::Selector;
use crate::registry::{convert, fields};
use crate::store::{Change, Stored};

/// Bodies from this size on are sent as they lie in the store; smaller ones are cheaper to copy
/// than to send on their own: as two pieces each, with a frame and a record of TLS for either, which
/// whoever receives them has to put together again.
const SHARED: usize = 16 * 1024;

/// One event of a watch.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// An object that was there when the watch began.
    Initial(Arc<Stored>),
    Added(Arc<Change>),
    Modified(Arc<Change>),
    Deleted(Arc<Change>),
    /// It is still there, but not selected any more.
    Left(Arc<Change>),
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
    /// Counts what is told.
    pub(crate) sent: Counter,
}

impl Events {
    fn selects(&self, object: &Stored) -> bool {
        fields::matches(&self.kind, &self.selector, object)
    }

    /// What the change looks like from here.
    pub(crate) fn of(&self, change: &Arc<Change>) -> Option<Event> {
        if !self.namespace.is_empty() && change.object.key.namespace != self.namespace {
            return None;
        }
        let before = change.previous.as_ref().is_some_and(|object| self.selects(object));
        let after = !change.deleted && self.selects(&change.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(Event::Added(change.clone())),
            (true, true) => Some(Event::Modified(change.clone())),
            (true, false) if change.deleted => Some(Event::Deleted(change.clone())),
            (true, false) => Some(Event::Left(change.clone())),
        }
    }

    /// Appends the event as one line.
    pub(crate) fn write(&mut self, lines: &mut Lines, event: &Event, now: Timestamp) {
        self.view.look.now = now;
        self.sent.inc();
        let (word, object) = match event {
            Event::Initial(object) => ("ADDED", self.view.object(&self.kind, object)),
            Event::Added(change) => ("ADDED", self.changed(change)),
            Event::Modified(change) => ("MODIFIED", self.changed(change)),
            Event::Deleted(change) => ("DELETED", self.changed(change)),
            Event::Left(change) => ("DELETED", self.departed(change)),
            Event::Bookmark(revision) => {
                ("BOOKMARK", self.view.bookmark(&self.kind, *revision, false))
            }
            Event::InitialEnd(revision) => {
                ("BOOKMARK", self.view.bookmark(&self.kind, *revision, true))
            }
        };
        lines.put(word, object);
        self.view.look.headers = false;
    }

    /// The changed object.
    fn changed(&self, change: &Arc<Change>) -> Bytes {
        self.shared(change, &change.object, "")
    }

    /// The object as it was, for those from whose selection it went.
    fn departed(&self, change: &Arc<Change>) -> Bytes {
        let object = change.departed();
        object.map(|object| self.shared(change, &object, "departed")).unwrap_or_default()
    }

    /// An object of a change in the form of this watcher, which others share.
    fn shared(&self, change: &Arc<Change>, object: &Arc<Stored>, which: &str) -> Bytes {
        let encode = || self.view.object(&self.kind, object);
        let View { form, look } = self.view;
        if form == Form::Object && convert::is_as_stored(&self.kind, object) {
            return object.body.clone();
        }
        let version = self.kind.api_version();
        let Look { include, now, headers, version: meta } = look;
        let name = match form {
            // They show ages, and the first one of a watch names the columns.
            Form::Table => {
                let second = now.as_second();
                format!("{which} {version} {form:?} {meta:?} {include:?} {headers} {second}")
            }
            _ => format!("{which} {version} {form:?} {meta:?}"),
        };
        change.form(&name, encode)
    }
}

/// Events as lines, in pieces that are ready to be sent.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pieces: VecDeque<Bytes>,
    last: BytesMut,
    /// The bytes in `pieces`.
    whole: usize,
}

impl Lines {
    /// How many bytes wait to be taken.
    pub(crate) fn size(&self) -> usize {
        self.whole + self.last.len()
    }

    fn put(&mut self, word: &str, object: Bytes) {
        self.last.put_slice(b"{\"type\":\"");
        self.last.put_slice(word.as_bytes());
        self.last.put_slice(b"\",\"object\":");
        if object.len() < SHARED {
            self.last.put_slice(&object);
        } else {
            self.whole += self.last.len() + object.len();
            self.pieces.push_back(self.last.split().freeze());
            self.pieces.push_back(object);
        }
        self.last.put_slice(b"}\n");
    }

    /// Appends the last line of a watch.
    pub(crate) fn put_error(&mut self, status: &crate::status::Status) {
        self.put("ERROR", status.to_value().to_string().into());
    }

    /// Takes the next piece.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        if let Some(piece) = self.pieces.pop_front() {
            self.whole -= piece.len();
            return Some(piece);
        }
        (!self.last.is_empty()).then(|| std::mem::take(&mut self.last).freeze())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures::FutureExt as _;
    use proptest::prelude::proptest;
    use serde_json::{Value, json};

    use super::*;
    use crate::print::{IncludeObject, MetaVersion};
    use crate::store::{Draft, Expect, Key, Limits, Pairs, Range, Store};

    fn events(selector: &str, form: Form) -> Events {
        let kinds = crate::kinds::builtin();
        let kind = kinds.iter().find(|kind| kind.resource() == "configmaps").unwrap();
        let (now, version) = (Timestamp::UNIX_EPOCH, MetaVersion::V1);
        let look = Look { include: IncludeObject::Metadata, now, headers: true, version };
        Events {
            kind: kind.clone(),
            namespace: "default".to_owned(),
            selector: Selector::parse(selector, "").unwrap(),
            view: View { form, look },
            sent: Counter::default(),
        }
    }

    fn lines(lines: &mut Lines) -> Vec<Value> {
        let mut bytes = Vec::new();
        while let Some(piece) = lines.take() {
            bytes.extend_from_slice(&piece);
        }
        assert_eq!(lines.size(), 0);
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Writes, replaces or deletes `name` in one of two namespaces, with one of two labels.
    fn write(store: &Store, name: usize, what: u8) {
        let key = Key::new(["default", "other"][name % 2], format!("map-{name}"));
        let current = store.get("configmaps", &key);
        let expect = current.map_or(Expect::Absent, |it| Expect::Revision(it.revision));
        if let (0, Expect::Revision(revision)) = (what, expect) {
            store.delete("configmaps", &key, revision).unwrap();
            return;
        }
        let filling = "x".repeat(if what == 2 { 2 * SHARED } else { 10 });
        let app = if what.is_multiple_of(2) { "web" } else { "db" };
        let value = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": key.name, "labels": {"app": app}},
            "data": {"filling": filling},
        });
        let draft = Draft { value, fields: Pairs::default() };
        store.put("configmaps", &key, expect, draft).unwrap();
    }

    proptest! {
        #[test]
        fn filtered_events_tell_exactly_what_is_selected(
            writes in proptest::collection::vec((0_usize..5, 0_u8..4), 1..60),
        ) {
            let store = Store::new(Limits::default());
            let mut watcher = store.watch("configmaps", store.revision()).unwrap();
            for (name, what) in writes {
                write(&store, name, what);
            }
            let mut events = events("app=web", Form::Object);
            let (mut told, mut out) = (BTreeMap::new(), Lines::default());
            // A watcher takes only so many bytes at once.
            let batches = std::iter::from_fn(|| watcher.next().now_or_never());
            for change in batches.flatten().flatten() {
                let Some(event) = events.of(&change) else { continue };
                events.write(&mut out, &event, Timestamp::UNIX_EPOCH);
                let line = lines(&mut out).remove(0);
                let (metadata, word) = (&line["object"]["metadata"], line["type"].as_str().unwrap());
                assert_eq!(metadata["resourceVersion"], change.object.revision.to_string());
                let name = metadata["name"].as_str().unwrap().to_owned();
                // Nothing is added twice, changed before it was added, or deleted when not there.
                assert_eq!(told.contains_key(&name), word != "ADDED", "{word} {name}");
                if word == "DELETED" {
                    told.remove(&name);
                } else {
                    told.insert(name, line["object"].clone());
                }
            }
            let range = Range { namespace: Some("default".into()), ..Range::default() };
            let listed = store.list("configmaps", &range).unwrap().items;
            let listed: BTreeMap<String, Value> = listed
                .iter()
                .filter(|object| object.labels.get("app") == Some("web"))
                .map(|object| (object.key.name.clone(), object.value()))
                .collect();
            assert_eq!(told, listed);
        }
    }

    #[test]
    fn a_change_is_encoded_once_for_all_watchers_who_want_the_same_form() {
        let store = Store::new(Limits::default());
        let mut watcher = store.watch("configmaps", store.revision()).unwrap();
        write(&store, 0, 2);
        write(&store, 0, 1);
        let change = watcher.next().now_or_never().unwrap().unwrap().remove(1);
        let shown = |form| events("", form).changed(&change);
        for form in [Form::Metadata, Form::Table] {
            assert_eq!(shown(form).as_ptr(), shown(form).as_ptr(), "{form:?}");
            let left = || events("app=web", form).departed(&change);
            assert_eq!(left().as_ptr(), left().as_ptr(), "{form:?}");
            assert_ne!(left(), shown(form), "{form:?}");
        }
        // The whole object is the very bytes that are stored.
        assert_eq!(shown(Form::Object).as_ptr(), change.object.body.as_ptr());
        // In a version of its own, which is not the stored one.
        let kinds = crate::kinds::builtin();
        let kind = kinds.iter().find(|kind| kind.resource() == "events.events.k8s.io").unwrap();
        let other = || Events { kind: kind.clone(), ..events("", Form::Object) }.changed(&change);
        assert_eq!(other().as_ptr(), other().as_ptr());
    }

    #[test]
    fn a_table_shows_the_age_at_its_time() {
        let store = Store::new(Limits::default());
        let mut watcher = store.watch("configmaps", store.revision()).unwrap();
        write(&store, 0, 2);
        let change = watcher.next().now_or_never().unwrap().unwrap().remove(0);
        let at = |second| {
            let mut events = events("", Form::Table);
            events.view.look.now = Timestamp::from_second(second).unwrap();
            events.changed(&change)
        };
        assert_eq!(at(7).as_ptr(), at(7).as_ptr());
        assert_ne!(at(7).as_ptr(), at(8).as_ptr());
    }
}
