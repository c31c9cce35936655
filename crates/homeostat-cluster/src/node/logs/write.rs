//! Writes log files, begins a new one when the last is full, and tells followers that there is more.

use std::collections::VecDeque;
use std::io::{ErrorKind, Result};
use std::path::PathBuf;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use bytes::{Buf, Bytes, BytesMut};
use homeostat_env::Env;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::sync::{Mutex, broadcast, watch};

/// Longer lines are written in parts.
const LONGEST: usize = 16 * 1024;
/// As much as a pipe holds.
const AT_ONCE: usize = 64 * 1024;
/// How far behind a client that looks on may be.
const PIECES: usize = 1024;

/// When a log begins a new file and how many it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file; 10 MiB by default.
    pub bytes: u64,
    /// Files that are kept, the one being written included; 5 by default.
    pub files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 10 << 20, files: 5 }
    }
}

/// The log of one run of a container; cheap to clone.
#[derive(Debug, Clone)]
pub struct Log(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stem: PathBuf,
    limits: Limits,
    file: Mutex<File>,
    /// The files that are kept, oldest first; never empty.
    segments: StdMutex<VecDeque<Segment>>,
    /// Bytes written so far, and whether no more will come.
    written: watch::Sender<(u64, bool)>,
    /// What comes, as it comes.
    live: broadcast::Sender<Piece>,
}

/// The name of a stream and what was written to it.
pub(crate) type Piece = (&'static str, Bytes);

/// One file of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    number: u64,
    /// Where in the log it begins.
    pub(super) start: u64,
}

impl Log {
    /// Makes an empty log, whose files are `stem` with a number.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub async fn create(stem: PathBuf, limits: Limits) -> Result<Self> {
        let first = Segment { number: 0, start: 0 };
        let file = Mutex::new(File::create(path(&stem, first)).await?);
        let segments = StdMutex::new([first].into());
        let (written, _) = watch::channel((0, false));
        let (live, _) = broadcast::channel(PIECES);
        Ok(Self(Arc::new(Inner { stem, limits, file, segments, written, live })))
    }

    /// A log that an earlier process wrote: to be read, and complete. What was rotated away is
    /// as if it had never been.
    ///
    /// # Errors
    /// When its files cannot be read, or there are none.
    pub async fn reopen(stem: PathBuf) -> Result<Self> {
        let folder = stem.parent().unwrap_or(&stem);
        let mut numbers = Vec::new();
        let mut entries = tokio::fs::read_dir(folder).await?;
        while let Some(entry) = entries.next_entry().await? {
            let path = entry.path();
            let number = path.file_name().and_then(|name| {
                let rest = name.to_str()?.strip_prefix(stem.file_name()?.to_str()?)?;
                rest.strip_prefix('.')?.strip_suffix(".log")?.parse::<u64>().ok()
            });
            numbers.extend(number);
        }
        numbers.sort_unstable();
        let (mut segments, mut end) = (VecDeque::new(), 0);
        for number in numbers {
            let segment = Segment { number, start: end };
            end += tokio::fs::metadata(path(&stem, segment)).await?.len();
            segments.push_back(segment);
        }
        let last = segments.back().copied().ok_or(ErrorKind::NotFound)?;
        let file = Mutex::new(File::open(path(&stem, last)).await?);
        let (written, _) = watch::channel((end, true));
        let (live, _) = broadcast::channel(1);
        let (limits, segments) = (Limits::default(), StdMutex::new(segments));
        Ok(Self(Arc::new(Inner { stem, limits, file, segments, written, live })))
    }

    /// Removes its files: nothing was ever written.
    pub(crate) async fn discard(self) {
        for segment in self.segments() {
            // A file too many is an empty log at worst.
            let _ = tokio::fs::remove_file(path(&self.0.stem, segment)).await;
        }
    }

    /// Says when there is more to read: bytes so far, and whether the log is complete.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<(u64, bool)> {
        self.0.written.subscribe()
    }

    /// Everything that is written from now on, as it comes and not line by line.
    pub(crate) fn live(&self) -> broadcast::Receiver<Piece> {
        self.0.live.subscribe()
    }

    /// No more will be written.
    pub fn close(&self) {
        self.0.written.send_modify(|(_, closed)| *closed = true);
    }

    /// The files there are, oldest first.
    pub(super) fn segments(&self) -> Vec<Segment> {
        let segments = self.0.segments.lock().unwrap_or_else(PoisonError::into_inner);
        segments.iter().copied().collect()
    }

    /// Writes whole records; a record is never divided between two files.
    pub(super) async fn append(&self, mut records: &[u8]) -> Result<()> {
        let mut file = self.0.file.lock().await;
        while !records.is_empty() {
            let (end, _) = *self.0.written.borrow();
            let current =
                self.segments().last().copied().unwrap_or(Segment { number: 0, start: 0 });
            let mut fit = fitting(records, self.0.limits.bytes.saturating_sub(end - current.start));
            if fit == 0 && end > current.start {
                let next = Segment { number: current.number + 1, start: end };
                *file = File::create(path(&self.0.stem, next)).await?;
                for old in self.push(next) {
                    tokio::fs::remove_file(path(&self.0.stem, old)).await?;
                }
                continue;
            }
            if fit == 0 {
                // Longer than any file may be: alone in one.
                fit = first_record(records);
            }
            file.write_all(&records[..fit]).await?;
            file.flush().await?;
            self.0.written.send_modify(|(bytes, _)| *bytes += fit as u64);
            records = &records[fit..];
        }
        Ok(())
    }

    /// Adds a file; those that are one too many.
    fn push(&self, next: Segment) -> Vec<Segment> {
        let mut segments = self.0.segments.lock().unwrap_or_else(PoisonError::into_inner);
        segments.push_back(next);
        let surplus = segments.len().saturating_sub(self.0.limits.files.max(1));
        segments.drain(..surplus).collect()
    }

    /// Up to `most` bytes of one file from a place of the log on, and the place they really begin
    /// at: later than asked for when that has been rotated away.
    pub(super) async fn bytes_at(&self, at: u64, most: u64) -> Result<(u64, Vec<u8>)> {
        loop {
            let segments = self.segments();
            let holds = segments.iter().rposition(|segment| segment.start <= at).unwrap_or(0);
            let Some(segment) = segments.get(holds) else { return Ok((at, Vec::new())) };
            let at = at.max(segment.start);
            let end = segments.get(holds + 1).map_or(u64::MAX, |next| next.start);
            let mut file = match File::open(path(&self.0.stem, *segment)).await {
                // Rotated away in this moment; else it is an error.
                Err(error) if error.kind() == ErrorKind::NotFound && self.lost(*segment) => {
                    continue;
                }
                file => file?,
            };
            file.seek(std::io::SeekFrom::Start(at - segment.start)).await?;
            let mut raw = Vec::new();
            file.take(most.min(end - at)).read_to_end(&mut raw).await?;
            return Ok((at, raw));
        }
    }

    fn lost(&self, segment: Segment) -> bool {
        !self.segments().contains(&segment)
    }
}

fn path(stem: &std::path::Path, segment: Segment) -> PathBuf {
    stem.with_extension(format!("{}.log", segment.number))
}

/// How many of these bytes are whole records that fit into `room`.
fn fitting(records: &[u8], room: u64) -> usize {
    let most = usize::try_from(room).unwrap_or(usize::MAX).min(records.len());
    records[..most].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// The length of the first record.
fn first_record(records: &[u8]) -> usize {
    records.iter().position(|byte| *byte == b'\n').map_or(records.len(), |end| end + 1)
}

/// Copies an output stream into the log until it ends.
pub async fn pump(log: Log, stream: &'static str, mut output: impl AsyncRead + Unpin, env: Env) {
    let mut pending = BytesMut::new();
    let mut records = Vec::new();
    loop {
        pending.reserve(AT_ONCE);
        let before = pending.len();
        let ended = !matches!(output.read_buf(&mut pending).await, Ok(1..));
        if !ended {
            // Nobody may be looking on.
            let _ = log.0.live.send((stream, Bytes::copy_from_slice(&pending[before..])));
        }
        // What was read at once came at one time, and is written at once: many short lines are the
        // common case, and a write to a file is dear.
        let time = format!("{:.9} {stream} ", env.now());
        while let Some((length, whole)) = next_part(&pending, ended) {
            records.extend_from_slice(time.as_bytes());
            records.extend_from_slice(if whole { b"F " } else { b"P " });
            records.extend_from_slice(&pending[..length]);
            records.push(b'\n');
            pending.advance(length + usize::from(whole));
        }
        if let Err(error) = log.append(&records).await {
            tracing::warn!(log = %log.0.stem.display(), %error, "log lines are lost");
        }
        records.clear();
        if ended {
            return;
        }
    }
}

/// The length of the next line, or of as much of it as goes into one record, and whether that is
/// its end. `None` when more has to come first.
fn next_part(pending: &[u8], ended: bool) -> Option<(usize, bool)> {
    let line = pending.iter().take(LONGEST).position(|byte| *byte == b'\n');
    match line {
        Some(length) => Some((length, true)),
        None if pending.len() >= LONGEST => Some((LONGEST, false)),
        None if ended && !pending.is_empty() => Some((pending.len(), false)),
        None => None,
    }
}
