//! What a reconcile did so far, for the journal: what it read, and what it wrote field by field.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::follow::Place;
use super::{Change, Context};
use crate::cache::Entry;
use crate::difference;
use crate::journal::{Read, ReadFrom, Write};
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

/// So many different reads are noted, and so many writes.
const MOST_READS: usize = 64;
const MOST_WRITES: usize = 256;
/// So many objects that no cache shows are kept as they were read.
const MOST_SEEN: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Notes {
    reads: Vec<Read>,
    writes: Vec<Write>,
    /// The objects as this reconcile left them, which the cache may not show yet, or as it read them
    /// where there is no cache.
    known: BTreeMap<Place, Bytes>,
    /// How many of them were read.
    seen: usize,
}

impl<K: AnyObject> Context<K> {
    /// What was read and written so far.
    pub(crate) fn take_notes(&self) -> (Vec<Read>, Vec<Write>) {
        let notes = self.noted(|diary| std::mem::take(&mut diary.notes)).unwrap_or_default();
        (notes.reads, notes.writes)
    }

    pub(super) fn note_read(&self, kind: &Kind, key: Option<&Key>, from: ReadFrom, found: usize) {
        let read = Read { kind: kind.clone(), key: key.cloned(), from, found };
        self.note(|diary| {
            let reads = &mut diary.notes.reads;
            if reads.len() < MOST_READS && !reads.contains(&read) {
                reads.push(read);
            }
        });
    }

    /// An object as the API has it, which no cache shows: a write to it is compared with that.
    pub(super) fn note_seen(&self, kind: &Kind, key: &Key, object: &Bytes) {
        let place = (kind.clone(), key.clone());
        self.note(|diary| {
            let Notes { known, seen, .. } = &mut diary.notes;
            if *seen < MOST_SEEN || known.contains_key(&place) {
                *seen += usize::from(known.insert(place, object.clone()).is_none());
            }
        });
    }

    /// The object as this reconcile left it, or as it read it where there is no cache.
    pub(super) fn known(&self, place: &Place) -> Option<Bytes> {
        self.noted(|diary| diary.notes.known.get(place).cloned()).flatten()
    }

    /// A write of fields of something that was there, which led to `revision`: says whether it
    /// changed anything. `after` is the object as it is now, if that is known.
    pub(super) fn note_written(
        &self,
        verb: &'static str,
        (kind, key): (&Kind, &Key),
        cached: Option<&Entry>,
        revision: Option<&str>,
        after: Option<&Bytes>,
    ) -> Change {
        let (place, revision) = ((kind.clone(), key.clone()), revision.unwrap_or_default());
        let change = self.change_to(&place, cached, revision);
        let before = cached.map(Entry::json);
        let before = before.as_deref().map(str::as_bytes);
        match after {
            Some(after) => self.note_change(verb, (kind, key), change, before, after),
            None => self.note_write(verb, kind, key, change),
        }
        if cached.is_none() {
            let (moved, now) = (change == Change::Changed, self.env().instant());
            self.memory(|memory| memory.wrote(place, revision, moved, now));
        }
        change
    }

    /// A write that made something, as the API answered.
    pub(super) fn note_created(&self, kind: &Kind, key: &Key, object: &Bytes) {
        self.note(|diary| diary.notes.known.insert((kind.clone(), key.clone()), object.clone()));
        self.note_write("create", kind, key, Change::Created);
    }

    /// A write that removed something: what comes after it is another object.
    pub(super) fn note_deleted(&self, kind: &Kind, key: &Key) {
        self.note(|diary| diary.notes.known.remove(&(kind.clone(), key.clone())));
        self.note_write("delete", kind, key, Change::Deleted);
    }

    /// A write of which no more is known.
    fn note_write(&self, verb: &'static str, kind: &Kind, key: &Key, change: Change) {
        self.push_write(Write {
            verb,
            kind: kind.clone(),
            key: key.clone(),
            change,
            fields: Vec::new(),
        });
    }

    /// A write to something that was there: `before` as it was known (this reconcile's own writes
    /// to it go before), `after` as the API answered.
    pub(super) fn note_change(
        &self,
        verb: &'static str,
        (kind, key): (&Kind, &Key),
        change: Change,
        before: Option<&[u8]>,
        after: &Bytes,
    ) {
        let place = (kind.clone(), key.clone());
        let known = self.note(|diary| diary.notes.known.insert(place, after.clone()));
        let before = known.as_deref().or(before).filter(|_| change == Change::Changed);
        let fields = before.map(|before| difference::between(kind, before, after));
        let fields = fields.unwrap_or_default();
        self.push_write(Write { verb, kind: kind.clone(), key: key.clone(), change, fields });
    }

    fn push_write(&self, write: Write) {
        tracing::debug!(controller = %self.run.shared.name, key = %self.run.key, %write, "wrote");
        self.note(|diary| {
            let writes = &mut diary.notes.writes;
            if writes.len() < MOST_WRITES {
                writes.push(write);
            }
        });
    }
}
