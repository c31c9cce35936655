//! A container's log: one line per record, as container runtimes write it, in files that rotate.
//!
//! ```text
//! 2026-11-15T10:00:00.123456789Z stdout F the line
//! ```
//!
//! `F` ends a line, `P` is a part of one that goes on in the next record. The files of a log are
//! numbered and never renamed; a place in the log is a number of bytes since its beginning, so it
//! means the same whatever has been rotated away.

mod place;
mod read;
mod record;
mod runs;
mod write;

pub use read::{Options, follow, read, stream};
pub(crate) use runs::{keep_last, runs};
pub use write::{Limits, Log, pump};
