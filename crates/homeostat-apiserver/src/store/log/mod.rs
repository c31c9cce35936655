//! The log: commits in a file, made durable group by group, and snapshots that let it stay short.
//!
//! ```text
//! store/log-<first revision>      frames of commits, filled with zeros ahead
//! store/snapshot-<revision>       every object at that revision
//! store/synced                    how far the log is durable
//! ```
//!
//! It never rewrites what was acknowledged, and never opens over damage.

mod checkpoint;
mod frame;
mod mark;
mod record;
mod recover;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::head::Commit;
use super::snapshot::Snapshot;
use super::storage::{Loaded, Storage, StorageError};
use crate::directory::{DataDirectory, failed};
use crate::disk::{Disk, DiskFile, FileSystem, Opening};
use mark::{Mark, Place};

const MAGIC: [u8; 8] = *b"hmst_log";
/// Zeros are written ahead in steps that double from here …
const FIRST_STEP: u64 = 1024 * 1024;
/// … to here: a sync that does not change the file's size costs half.
const LARGEST_STEP: u64 = 8 * 1024 * 1024;

/// How a log behaves.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// A log of more bytes than this, and than the last snapshot, is replaced by a new snapshot;
    /// 32 MiB by default.
    pub longest: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { longest: 32 * 1024 * 1024 }
    }
}

/// A log in a data directory.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    options: LogOptions,
    mark: Mark,
    /// `None` until everything was loaded.
    current: Option<Current>,
    snapshot_bytes: u64,
    snapshotting: Option<JoinHandle<Result<u64, StorageError>>>,
    buffer: Vec<u8>,
    /// Kept for as long as the log is open.
    held: Option<DataDirectory>,
}

/// The file that is written to.
#[derive(Debug)]
struct Current {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    start: u64,
    /// Where the next frame goes.
    end: u64,
    /// How far zeros were written ahead.
    allocated: u64,
}

impl Log {
    /// The log in `directory`; nothing is read before [`Storage::load`].
    ///
    /// # Errors
    /// [`StorageError`] when its directory cannot be used.
    pub fn open(directory: &DataDirectory, options: LogOptions) -> Result<Self, StorageError> {
        let path = directory.below("store")?;
        let mut log = Self::on(Arc::new(FileSystem), path, options)?;
        log.held = Some(directory.clone());
        Ok(log)
    }

    /// The same in a directory of any disk, which nobody else may use.
    pub(super) fn on(
        disk: Arc<dyn Disk>,
        directory: PathBuf,
        options: LogOptions,
    ) -> Result<Self, StorageError> {
        let mark = Mark::open(&*disk, &directory)?;
        Ok(Self {
            disk,
            directory,
            options,
            mark,
            current: None,
            snapshot_bytes: 0,
            snapshotting: None,
            buffer: Vec::new(),
            held: None,
        })
    }

    /// Begins the log of the commits from `start` on.
    fn begin(&mut self, start: u64) -> Result<(), StorageError> {
        let path = recover::log_path(&self.directory, start);
        let io = |source| failed("begin", &path, source);
        let file = self.disk.open(&path, Opening::Emptied).map_err(io)?;
        file.write_all_at(&frame::header(MAGIC, start), 0).map_err(io)?;
        file.sync_all().map_err(io)?;
        self.disk.sync_directory(&self.directory).map_err(io)?;
        let end = frame::HEADER as u64;
        self.mark.write(Place { log: start, bytes: end })?;
        self.mark.sync()?;
        self.current = Some(Current { file, path, start, end, allocated: end });
        Ok(())
    }

    /// Goes on with a log that ended at `place`; what lies behind was never acknowledged. Of what
    /// was not known to be durable a sync may have failed: then it is only in the system's memory,
    /// and is synced again only if it is written again.
    fn resume(&mut self, place: Place, known: u64) -> Result<(), StorageError> {
        let path = recover::log_path(&self.directory, place.log);
        let io = |source| failed("open", &path, source);
        let file = self.disk.open(&path, Opening::Existing).map_err(io)?;
        if known < place.bytes {
            let bytes = self.disk.read(&path).map_err(io)?;
            let (from, until) = (known as usize, place.bytes as usize);
            file.write_all_at(bytes.get(from..until).unwrap_or_default(), known).map_err(io)?;
        }
        file.set_len(place.bytes).map_err(io)?;
        file.sync_all().map_err(io)?;
        self.mark.write(place)?;
        self.mark.sync()?;
        let Place { log: start, bytes: end } = place;
        self.current = Some(Current { file, path, start, end, allocated: end });
        Ok(())
    }

    /// Ends a log that has grown too long and has a snapshot written in its place.
    fn rotate(&mut self, after: &Snapshot) -> Result<(), StorageError> {
        let longest = self.options.longest.max(self.snapshot_bytes);
        if self.current.as_ref().is_none_or(|current| current.end <= longest) {
            return Ok(());
        }
        match self.snapshotting.take_if(|thread| thread.is_finished()) {
            Some(finished) => self.finish(finished),
            None if self.snapshotting.is_some() => return Ok(()),
            None => {}
        }
        let Some(current) = &self.current else { return Ok(()) };
        let io = |source| failed("end", &current.path, source);
        current.file.set_len(current.end).map_err(io)?;
        current.file.sync_all().map_err(io)?;
        self.begin(after.revision() + 1)?;
        let (disk, directory) = (self.disk.clone(), self.directory.clone());
        let snapshot = after.clone();
        let thread = std::thread::Builder::new().name("homeostat-snapshot".into());
        let write = move || {
            let size = checkpoint::write(&*disk, &directory, &snapshot)?;
            remove_before(&*disk, &directory, snapshot.revision())?;
            Ok(size)
        };
        let spawned = thread.spawn(write);
        self.snapshotting =
            Some(spawned.map_err(|source| failed("snapshot", Path::new(""), source))?);
        Ok(())
    }

    /// Takes note of a snapshot. One that failed is not the end: the logs are still there.
    fn finish(&mut self, thread: JoinHandle<Result<u64, StorageError>>) {
        match thread.join() {
            Ok(Ok(size)) => self.snapshot_bytes = size,
            Ok(Err(error)) => tracing::warn!(%error, "no snapshot was written; the log stays"),
            Err(_) => tracing::warn!("the writing of a snapshot panicked; the log stays"),
        }
    }
}

/// Removes what a snapshot at `revision` has made superfluous.
fn remove_before(disk: &dyn Disk, directory: &Path, revision: u64) -> Result<(), StorageError> {
    let files = recover::files(disk, directory)?;
    let snapshots = files.snapshots.into_iter().filter(|older| *older < revision);
    let snapshots = snapshots.map(|older| checkpoint::path(directory, older));
    let logs = files.logs.into_iter().filter(|start| *start <= revision);
    let logs = logs.map(|start| recover::log_path(directory, start));
    // Logs first: a snapshot without its logs is harmless, logs without their snapshot are not.
    for path in logs.chain(snapshots) {
        disk.remove(&path).map_err(|source| failed("remove", &path, source))?;
    }
    disk.sync_directory(directory).map_err(|source| failed("sync", directory, source))
}

impl Storage for Log {
    fn load(&mut self, each: &mut dyn FnMut(Loaded)) -> Result<(), StorageError> {
        let disk = self.disk.clone();
        let files = recover::files(&*disk, &self.directory)?;
        let mark = self.mark.read(&*disk)?;
        let end = recover::load(&*disk, &self.directory, &files, mark, each)?;
        self.snapshot_bytes = end.snapshot_bytes;
        // Only now: what is refused is left as it was found.
        for path in &end.unmarked {
            disk.remove(path).map_err(|source| failed("remove", path, source))?;
        }
        match end.log {
            Some(place) => self.resume(place, mark.map_or(0, |mark| mark.bytes))?,
            None => self.begin(end.revision + 1)?,
        }
        if let Some(revision) = files.snapshots.last() {
            // Whoever wrote it may have ended before its name was durable.
            let synced = disk.sync_directory(&self.directory);
            synced.map_err(|source| failed("sync", &self.directory, source))?;
            remove_before(&*disk, &self.directory, *revision)?;
        }
        Ok(())
    }

    fn append(&mut self, commits: &[Commit], after: &Snapshot) -> Result<(), StorageError> {
        let (Some(current), Some(last)) = (&mut self.current, commits.last()) else {
            return Ok(());
        };
        self.buffer.clear();
        let begin = frame::open(&mut self.buffer);
        for commit in commits {
            record::put_commit(&mut self.buffer, commit);
        }
        frame::seal(&mut self.buffer, begin, last.revision);
        current.append(&self.buffer)?;
        self.mark.write(Place { log: current.start, bytes: current.end })?;
        self.rotate(after)
    }
}

impl Current {
    fn append(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        let length = bytes.len() as u64;
        if self.end + length > self.allocated {
            let step = self.allocated.clamp(FIRST_STEP, LARGEST_STEP);
            let until = self.end + length + step;
            self.fill(until).map_err(|source| failed("lengthen", &self.path, source))?;
        }
        let written = self.file.write_all_at(bytes, self.end).and_then(|()| self.file.sync_data());
        written.map_err(|source| failed("write", &self.path, source))?;
        self.end += length;
        Ok(())
    }

    /// Writes zeros up to `until`, so that the syncs to come change nothing but data.
    fn fill(&mut self, until: u64) -> std::io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let mut at = self.allocated;
        while at < until {
            let length = (until - at).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..usize::try_from(length).unwrap_or(0)], at)?;
            at += length;
        }
        self.allocated = until;
        self.file.sync_all()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some(thread) = self.snapshotting.take() {
            self.finish(thread);
        }
        if let Err(error) = self.mark.sync() {
            tracing::warn!(%error, "the end of the log is not marked");
        }
    }
}
