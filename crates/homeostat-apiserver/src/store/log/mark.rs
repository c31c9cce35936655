//! How far the log was known to be durable: what tells a torn end from damage.
//!
//! A broken record beyond the mark was never acknowledged and is cut off; before it, something
//! that was acknowledged is lost, and that is never passed over. The mark is written after every
//! sync but not synced itself: it survives the end of the process at once, and the end of the
//! machine soon; an older mark only means that the log must prove by itself that it goes on.

use std::path::{Path, PathBuf};

use super::super::storage::StorageError;
use crate::directory::failed;
use crate::disk::{Disk, DiskFile, Opening};

/// The name of the file.
pub(super) const NAME: &str = "synced";
const SIZE: usize = 20;

/// A place in one of the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The first revision of the log.
    pub(super) log: u64,
    /// How many bytes of it are durable.
    pub(super) bytes: u64,
}

/// The file.
#[derive(Debug)]
pub(super) struct Mark {
    file: Box<dyn DiskFile>,
    path: PathBuf,
}

impl Mark {
    /// The mark in `directory`, which is made if it is not there.
    pub(super) fn open(disk: &dyn Disk, directory: &Path) -> Result<Self, StorageError> {
        let path = directory.join(NAME);
        let opened = disk.open(&path, Opening::Kept);
        let file = opened.map_err(|source| failed("open", &path, source))?;
        Ok(Self { file, path })
    }

    /// What it says; `None` when nothing was written yet.
    pub(super) fn read(&self, disk: &dyn Disk) -> Result<Option<Place>, StorageError> {
        let read = disk.read(&self.path);
        let bytes = read.map_err(|source| failed("read", &self.path, source))?;
        // Zeros are what the first mark is before its bytes reach the disk.
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let place = bytes.try_into().ok().and_then(decode);
        let damaged = || StorageError::damaged(&self.path, 0, "it does not match its checksum");
        place.map(Some).ok_or_else(damaged)
    }

    /// Moves the mark.
    pub(super) fn write(&self, place: Place) -> Result<(), StorageError> {
        let written = self.file.write_all_at(&encode(place), 0);
        written.map_err(|source| failed("write", &self.path, source))
    }

    /// Makes it durable.
    pub(super) fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_all().map_err(|source| failed("sync", &self.path, source))
    }
}

fn encode(place: Place) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&place.log.to_le_bytes());
    bytes[8..16].copy_from_slice(&place.bytes.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(bytes: [u8; SIZE]) -> Option<Place> {
    let (log, rest) = bytes.split_first_chunk()?;
    let (length, crc) = rest.split_first_chunk()?;
    if crc32fast::hash(&bytes[..16]).to_le_bytes() != *crc {
        return None;
    }
    Some(Place { log: u64::from_le_bytes(*log), bytes: u64::from_le_bytes(*length) })
}
