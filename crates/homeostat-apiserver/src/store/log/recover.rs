//! What a directory holds after whatever ended the last process: which files count, where the log
//! ends, and whether anything that was acknowledged is missing.

use std::path::{Path, PathBuf};

use super::super::storage::{Loaded, StorageError};
use super::frame::{self, Found};
use super::mark::Place;
use super::record::Reader;
use super::{MAGIC, checkpoint};
use crate::directory::failed;
use crate::disk::Disk;

/// The revision of an empty store.
const NOTHING: u64 = 1;

/// The files of a directory that matter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    /// Revisions of snapshots, oldest first.
    pub(super) snapshots: Vec<u64>,
    /// First revisions of logs, oldest first.
    pub(super) logs: Vec<u64>,
}

/// Where things are to go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The log to append to, and where it ends; `None` when there is none yet.
    pub(super) log: Option<Place>,
    /// The last revision.
    pub(super) revision: u64,
    /// The size of the newest snapshot.
    pub(super) snapshot_bytes: u64,
    /// Logs that were begun but never marked. They hold nothing, and must go: the log before them goes
    /// on, and would run past their beginning.
    pub(super) unmarked: Vec<PathBuf>,
}

pub(super) fn log_path(directory: &Path, start: u64) -> PathBuf {
    directory.join(format!("log-{start:020}"))
}

/// Finds the files and removes those that were never finished.
pub(super) fn files(disk: &dyn Disk, directory: &Path) -> Result<Files, StorageError> {
    let names = disk.names(directory).map_err(|source| failed("list", directory, source))?;
    let mut files = Files::default();
    for name in names {
        if name.ends_with(".new") {
            let path = directory.join(name);
            disk.remove(&path).map_err(|source| failed("remove", &path, source))?;
        } else if let Some(revision) = name.strip_prefix("snapshot-") {
            files.snapshots.extend(revision.parse::<u64>());
        } else if let Some(start) = name.strip_prefix("log-") {
            files.logs.extend(start.parse::<u64>());
        }
    }
    files.snapshots.sort_unstable();
    files.logs.sort_unstable();
    Ok(files)
}

/// Loads the newest snapshot and every commit after it.
pub(super) fn load(
    disk: &dyn Disk,
    directory: &Path,
    files: &Files,
    mark: Option<Place>,
    each: &mut dyn FnMut(Loaded),
) -> Result<End, StorageError> {
    let mut end = End { log: None, revision: NOTHING, snapshot_bytes: 0, unmarked: Vec::new() };
    if let Some(revision) = files.snapshots.last() {
        end.snapshot_bytes = checkpoint::read(disk, directory, *revision, each)?;
        end.revision = *revision;
    }
    let begin = end.revision;
    for start in files.logs.iter().filter(|start| **start > begin) {
        if mark.is_none_or(|mark| mark.log < *start) {
            end.unmarked.push(check_unmarked(disk, directory, *start)?);
            continue;
        }
        let known = mark.filter(|mark| mark.log == *start).map(|mark| mark.bytes);
        let place = read_log(disk, directory, *start, known, &mut end.revision, each)?;
        end.log = Some(place);
    }
    match (mark, end.log) {
        (Some(mark), log) if log.is_none_or(|log| log.log != mark.log) => {
            Err(StorageError::damaged(log_path(directory, mark.log), 0, "it is missing"))
        }
        (None, _) if !files.snapshots.is_empty() => {
            Err(StorageError::damaged(directory.join(super::mark::NAME), 0, "it is missing"))
        }
        _ => Ok(end),
    }
}

/// A log that was begun but never marked holds nothing, or the mark is not the one it was.
fn check_unmarked(disk: &dyn Disk, directory: &Path, start: u64) -> Result<PathBuf, StorageError> {
    let path = log_path(directory, start);
    let bytes = disk.read(&path).map_err(|source| failed("read", &path, source))?;
    if bytes.len() <= frame::HEADER {
        return Ok(path);
    }
    let what = format!("it does not know of {}", path.display());
    Err(StorageError::damaged(directory.join(super::mark::NAME), 0, what))
}

/// Reads one log. `known` bytes of it were durable; a log that another one follows was whole.
fn read_log(
    disk: &dyn Disk,
    directory: &Path,
    start: u64,
    known: Option<u64>,
    revision: &mut u64,
    each: &mut dyn FnMut(Loaded),
) -> Result<Place, StorageError> {
    let path = log_path(directory, start);
    let bytes = disk.read(&path).map_err(|source| failed("read", &path, source))?;
    let damaged = |at: usize, what: &str| StorageError::damaged(&path, at, what);
    if frame::read_header(MAGIC, &bytes, &path)? != start {
        return Err(damaged(0, "it begins at another revision than its name says"));
    }
    if start != *revision + 1 {
        return Err(damaged(0, &format!("the log of revision {} is missing", *revision + 1)));
    }
    let mut at = frame::HEADER;
    let broken = loop {
        let (number, payload, next) = match frame::read(&bytes, at) {
            Found::Frame { number, payload, next } => (number, payload, next),
            Found::End => break "it ends before what was acknowledged",
            Found::Broken(what) => break what,
        };
        let mut reader = Reader(payload);
        while !reader.is_empty() {
            let commit = reader.commit().ok_or_else(|| damaged(at, "a record is unreadable"))?;
            if !matches!(&commit, Loaded::Commit { revision: next, .. } if *next == *revision + 1) {
                return Err(damaged(at, &format!("revision {} is missing", *revision + 1)));
            }
            *revision += 1;
            each(commit);
        }
        if number != *revision {
            return Err(damaged(at, "a record has another number than its last revision"));
        }
        at = next;
    };
    let durable = known.unwrap_or(bytes.len() as u64);
    if (at as u64) < durable || frame::any_after(&bytes, at) {
        return Err(damaged(at, broken));
    }
    Ok(Place { log: start, bytes: at as u64 })
}
