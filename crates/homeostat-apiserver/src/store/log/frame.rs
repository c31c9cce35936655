//! How bytes lie in a file: a header that says what it is, then frames with checksums.
//!
//! ```text
//! header  magic:8  format:u32  start:u64  crc:u32
//! frame   length:u32  crc:u32  number:u64  payload          crc over length, number and payload
//! ```
//!
//! Numbers are little-endian. A frame of length 0 is the end: files are filled with zeros ahead of
//! what is written. Pure: bytes in, frames out.

use super::super::storage::StorageError;
use std::path::Path;

/// The format this version writes.
pub(super) const FORMAT: u32 = 1;
/// The size of a file's header.
pub(super) const HEADER: usize = 24;
/// The size of a frame before its payload.
pub(super) const FRAME: usize = 16;

/// The header of a file.
pub(super) fn header(magic: [u8; 8], start: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&magic);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[12..20].copy_from_slice(&start.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..20]);
    bytes[20..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// What `start` the header of a file names; checks everything else.
pub(super) fn read_header(magic: [u8; 8], bytes: &[u8], path: &Path) -> Result<u64, StorageError> {
    let damaged =
        |what: &str| StorageError::Damaged { path: path.to_owned(), at: 0, what: what.to_owned() };
    let header = bytes.get(..HEADER).ok_or_else(|| damaged("it ends within its header"))?;
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    if header[..8] != magic || crc32fast::hash(&header[..20]) != number(20) {
        return Err(damaged("its header is not what was written"));
    }
    if number(8) > FORMAT {
        let (found, known) = (number(8), FORMAT);
        return Err(StorageError::TooNew { path: path.to_owned(), found, known });
    }
    Ok(u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| header[12 + byte])))
}

/// Begins a frame at the end of `bytes`; [`seal`] ends it.
pub(super) fn open(bytes: &mut Vec<u8>) -> usize {
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; FRAME]);
    begin
}

/// Completes the frame that was begun at `begin` with everything after it.
pub(super) fn seal(bytes: &mut [u8], begin: usize, number: u64) {
    let frame = &mut bytes[begin..];
    // The store never gathers four gigabytes: bodies and groups are bounded far below.
    let length = u32::try_from(frame.len() - FRAME).unwrap_or(u32::MAX);
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[8..16].copy_from_slice(&number.to_le_bytes());
    let crc = checksum(frame);
    frame[4..8].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&frame[..4]);
    hasher.update(&frame[8..]);
    hasher.finalize()
}

/// What lies at a place in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A frame, and where the next one begins.
    Frame { number: u64, payload: &'a [u8], next: usize },
    /// Nothing was written here, or the file ends.
    End,
    /// Something that was not written whole, or has changed since.
    Broken(&'static str),
}

/// Looks at the frame at `at`.
pub(super) fn read(bytes: &[u8], at: usize) -> Found<'_> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return Found::End;
    }
    let Some(head) = rest.first_chunk::<FRAME>() else {
        let zeros = rest.iter().all(|byte| *byte == 0);
        return if zeros { Found::End } else { Found::Broken("a record is cut off") };
    };
    if head.iter().all(|byte| *byte == 0) {
        return Found::End;
    }
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let size = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(FRAME);
    let Some(frame) = rest.get(..size) else {
        return Found::Broken("a record is cut off or its length has changed");
    };
    if length == 0 || checksum(frame) != u32::from_le_bytes([head[4], head[5], head[6], head[7]]) {
        return Found::Broken("a record does not match its checksum");
    }
    let number = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| head[8 + byte]));
    Found::Frame { number, payload: &frame[FRAME..], next: at + size }
}

/// Whether a whole frame begins anywhere after `at`: then `at` is no torn end.
pub(super) fn any_after(bytes: &[u8], at: usize) -> bool {
    // What was filled ahead is most of it, and is passed over in blocks.
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut next = at + 1;
    while next < bytes.len() {
        if bytes[next..].starts_with(&ZEROS) {
            next += ZEROS.len();
            continue;
        }
        if bytes[next] != 0 && matches!(read(bytes, next), Found::Frame { .. }) {
            return true;
        }
        next += 1;
    }
    false
}
