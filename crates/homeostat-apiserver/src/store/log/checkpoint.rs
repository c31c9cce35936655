//! A snapshot on disk: every object at one revision, so that the log before it can go.
//!
//! Written beside its place and moved there when it is durable: there is a whole one or none.

use std::path::{Path, PathBuf};

use super::super::snapshot::Snapshot;
use super::super::storage::{Loaded, StorageError};
use super::frame::{self, Found};
use super::record::{self, Reader};
use crate::directory::failed;
use crate::disk::{Disk, DiskFile, Opening};

const MAGIC: [u8; 8] = *b"hmstsnap";
/// About how many bytes of objects share a frame.
const CHUNK: usize = 256 * 1024;
/// The number of the frame that says how many objects there were.
const LAST: u64 = u64::MAX;

pub(super) fn path(directory: &Path, revision: u64) -> PathBuf {
    directory.join(format!("snapshot-{revision:020}"))
}

/// Writes `snapshot`; returns its size.
pub(super) fn write(
    disk: &dyn Disk,
    directory: &Path,
    snapshot: &Snapshot,
) -> Result<u64, StorageError> {
    let path = path(directory, snapshot.revision());
    let beside = path.with_extension("new");
    let written = || -> std::io::Result<u64> {
        let mut file = Growing { file: disk.open(&beside, Opening::Emptied)?, length: 0 };
        put_all(&mut file, snapshot)?;
        file.file.sync_all()?;
        disk.rename(&beside, &path)?;
        disk.sync_directory(directory)?;
        Ok(file.length)
    };
    written().map_err(|source| failed("write", &path, source))
}

/// A file that is written front to back.
struct Growing {
    file: Box<dyn DiskFile>,
    length: u64,
}

impl Growing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

fn put_all(file: &mut Growing, snapshot: &Snapshot) -> std::io::Result<()> {
    let mut bytes = frame::header(MAGIC, snapshot.revision()).to_vec();
    let (mut count, mut number) = (0_u64, 0_u64);
    let mut begin = frame::open(&mut bytes);
    for (resource, _) in snapshot.resources() {
        for object in snapshot.objects(resource) {
            record::put_object(&mut bytes, resource, object);
            count += 1;
            if bytes.len() >= CHUNK {
                frame::seal(&mut bytes, begin, number);
                file.write(&bytes)?;
                bytes.clear();
                begin = frame::open(&mut bytes);
                number += 1;
            }
        }
    }
    if bytes.len() > begin + frame::FRAME {
        frame::seal(&mut bytes, begin, number);
    } else {
        bytes.truncate(begin);
    }
    begin = frame::open(&mut bytes);
    bytes.extend_from_slice(&count.to_le_bytes());
    frame::seal(&mut bytes, begin, LAST);
    file.write(&bytes)
}

/// Reads the snapshot at `revision` whole; returns its size.
pub(super) fn read(
    disk: &dyn Disk,
    directory: &Path,
    revision: u64,
    each: &mut dyn FnMut(Loaded),
) -> Result<u64, StorageError> {
    let path = path(directory, revision);
    let bytes = disk.read(&path).map_err(|source| failed("read", &path, source))?;
    let damaged = |at: usize, what: &str| StorageError::damaged(&path, at, what);
    if frame::read_header(MAGIC, &bytes, &path)? != revision {
        return Err(damaged(0, "it is of another revision than its name says"));
    }
    each(Loaded::Beginning(revision));
    let (mut at, mut count, mut expected) = (frame::HEADER, 0_u64, 0_u64);
    loop {
        match frame::read(&bytes, at) {
            Found::Frame { number: LAST, payload, next } => {
                if Reader(payload).number() != Some(count) || next != bytes.len() {
                    return Err(damaged(at, "it does not hold as many objects as it says"));
                }
                return Ok(bytes.len() as u64);
            }
            Found::Frame { number, payload, next } if number == expected => {
                let mut reader = Reader(payload);
                while !reader.is_empty() {
                    let (resource, object) =
                        reader.object().ok_or_else(|| damaged(at, "an object is unreadable"))?;
                    each(Loaded::Object { resource, object });
                    count += 1;
                }
                expected += 1;
                at = next;
            }
            Found::Frame { .. } => return Err(damaged(at, "a part of it is missing")),
            Found::End => return Err(damaged(at, "it is cut off")),
            Found::Broken(what) => return Err(damaged(at, what)),
        }
    }
}
