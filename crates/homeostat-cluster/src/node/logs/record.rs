//! One record of a log file.

use jiff::Timestamp;

/// A line, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) time: &'a str,
    pub(super) ends_line: bool,
    pub(super) text: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads a record without its line end; `None` when it is none.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let time = std::str::from_utf8(parts.next()?).ok()?;
        let _stream = parts.next()?;
        let ends_line = parts.next()? == b"F";
        Some(Self { time, ends_line, text: parts.next()? })
    }

    pub(super) fn at(&self) -> Timestamp {
        self.time.parse().unwrap_or(Timestamp::MAX)
    }
}
