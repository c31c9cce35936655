//! Commits and objects as bytes. Lengths before texts, nothing clever; the frame has the checksum.

use bytes::Bytes;

use super::super::head::Commit;
use super::super::storage::Loaded;
use super::super::{Key, Pairs, Stored};

const PUT: u8 = 1;
const DELETE: u8 = 2;

fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    // Larger bodies were refused long before.
    into.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    into.extend_from_slice(bytes);
}

fn put_place(into: &mut Vec<u8>, resource: &str, key: &Key) {
    put_bytes(into, resource.as_bytes());
    put_bytes(into, key.namespace.as_bytes());
    put_bytes(into, key.name.as_bytes());
}

/// Appends an object with everything that need not be decoded again.
pub(super) fn put_object(into: &mut Vec<u8>, resource: &str, object: &Stored) {
    put_place(into, resource, &object.key);
    into.extend_from_slice(&object.revision.to_le_bytes());
    put_bytes(into, object.api_version.as_bytes());
    put_bytes(into, object.labels.as_bytes());
    put_bytes(into, object.fields.as_bytes());
    put_bytes(into, &object.body);
}

/// Appends a commit. Of a deletion only the place is kept: the rest follows from what was there.
pub(super) fn put_commit(into: &mut Vec<u8>, commit: &Commit) {
    into.extend_from_slice(&commit.revision.to_le_bytes());
    into.extend_from_slice(&u32::try_from(commit.changes.len()).unwrap_or(u32::MAX).to_le_bytes());
    for (resource, change) in &commit.changes {
        if change.deleted {
            into.push(DELETE);
            put_place(into, resource, &change.object.key);
        } else {
            into.push(PUT);
            put_object(into, resource, &change.object);
        }
    }
}

/// Reads what was put, front to back; `None` where the bytes say something else.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn count(&mut self) -> Option<usize> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    fn place(&mut self) -> Option<(String, Key)> {
        Some((self.text()?, Key { namespace: self.text()?, name: self.text()? }))
    }

    pub(super) fn object(&mut self) -> Option<(String, Stored)> {
        let (resource, key) = self.place()?;
        let object = Stored {
            key,
            revision: self.number()?,
            api_version: self.text()?,
            labels: Pairs::from_bytes(self.bytes()?)?,
            fields: Pairs::from_bytes(self.bytes()?)?,
            body: Bytes::copy_from_slice(self.bytes()?),
        };
        Some((resource, object))
    }

    pub(super) fn commit(&mut self) -> Option<Loaded> {
        let revision = self.number()?;
        let count = self.count()?;
        let mut changes = Vec::new();
        for _ in 0..count {
            let (kind, rest) = self.0.split_first()?;
            self.0 = rest;
            changes.push(match *kind {
                PUT => {
                    let (resource, object) = self.object()?;
                    (resource, object.key.clone(), Some(object))
                }
                DELETE => {
                    let (resource, key) = self.place()?;
                    (resource, key, None)
                }
                _ => return None,
            });
        }
        Some(Loaded::Commit { revision, changes })
    }
}
