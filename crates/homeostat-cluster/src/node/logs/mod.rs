//! A container's log: one file per run, one line per record, as container runtimes write it.
//!
//! ```text
//! 2026-11-15T10:00:00.123456789Z stdout F the line
//! ```
//!
//! `F` ends a line, `P` is a part of one that goes on in the next record.

mod read;
mod write;

pub use read::{Options, follow, read};
pub use write::{Log, pump};
