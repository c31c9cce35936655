//! What a reconcile did so far, for the journal: what it read, and what it wrote field by field.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Change, Context};
use crate::difference;
use crate::journal::{Read, ReadFrom, Write};
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

/// So many different reads are noted.
const MOST_READS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Notes {
    reads: Vec<Read>,
    writes: Vec<Write>,
    /// The objects as this reconcile left them: the cache may not show it yet.
    left: BTreeMap<(Kind, Key), Bytes>,
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

    /// A write that made or removed something.
    pub(super) fn note_write(&self, verb: &'static str, kind: &Kind, key: &Key, change: Change) {
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
        let left = self.note(|diary| diary.notes.left.insert(place, after.clone()));
        let before = left.as_deref().or(before).filter(|_| change == Change::Changed);
        let fields = before.map(|before| difference::between(kind, before, after));
        let fields = fields.unwrap_or_default();
        self.push_write(Write { verb, kind: kind.clone(), key: key.clone(), change, fields });
    }

    fn push_write(&self, write: Write) {
        tracing::debug!(controller = %self.run.shared.name, key = %self.run.key, %write, "wrote");
        self.note(|diary| diary.notes.writes.push(write));
    }
}
