//! Reads log files back, with the options of `kubectl logs`.

use std::io::Result;
use std::path::Path;

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncSeekExt, BufReader};

use super::write::Log;

/// What to leave out and how to show the rest; everything, plain, by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Only the last so many lines.
    pub tail: Option<usize>,
    /// Only what was written at this time or later.
    pub since: Option<Timestamp>,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// Stop after this many bytes.
    pub limit: Option<usize>,
}

/// The log as it is now.
///
/// # Errors
/// When the file cannot be read.
pub async fn read(path: &Path, options: &Options) -> Result<Vec<u8>> {
    Ok(render(&tokio::fs::read(path).await?, options))
}

/// The log as it is now and everything that is written later, until it is complete.
pub fn follow(log: Log, options: Options) -> impl Stream<Item = Result<Bytes>> {
    let state = Some((0_u64, options, log.progress()));
    futures::stream::try_unfold(state, move |state| {
        let log = log.clone();
        async move {
            let Some((from, mut options, mut progress)) = state else { return Ok(None) };
            let (bytes, closed) = *progress.borrow_and_update();
            if bytes > from {
                let raw = between(log.path(), from, bytes).await?;
                let text = render(&raw, &options);
                options.tail = None;
                let left = options.limit.map(|limit| limit.saturating_sub(text.len()));
                options.limit = left;
                let next = (left != Some(0)).then_some((bytes, options, progress));
                return Ok(Some((Bytes::from(text), next)));
            }
            if closed || progress.changed().await.is_err() {
                return Ok(None);
            }
            Ok(Some((Bytes::new(), Some((from, options, progress)))))
        }
    })
}

/// Whole records between two places of the file; both are ends of records.
async fn between(path: &Path, from: u64, to: u64) -> Result<Vec<u8>> {
    use tokio::io::AsyncReadExt;
    let mut file = tokio::fs::File::open(path).await?;
    file.seek(std::io::SeekFrom::Start(from)).await?;
    let mut raw = Vec::new();
    let mut records = BufReader::new(file).take(to - from);
    while records.read_until(b'\n', &mut raw).await? > 0 {}
    Ok(raw)
}

fn render(raw: &[u8], options: &Options) -> Vec<u8> {
    let records: Vec<Record<'_>> = raw
        .split(|byte| *byte == b'\n')
        .filter_map(Record::parse)
        .filter(|record| options.since.is_none_or(|since| record.at() >= since))
        .collect();
    let mut from = 0;
    if let Some(tail) = options.tail {
        let mut ends = records.iter().enumerate().rev().filter(|(_, record)| record.ends_line);
        from = if tail == 0 {
            records.len()
        } else {
            // An unfinished last line counts as a line.
            let open = usize::from(records.last().is_some_and(|record| !record.ends_line));
            ends.nth(tail - open.min(tail)).map_or(0, |(index, _)| index + 1)
        };
    }
    let mut text = Vec::new();
    let mut begins_line = true;
    for record in &records[from..] {
        if options.timestamps && begins_line {
            text.extend_from_slice(record.time.as_bytes());
            text.push(b' ');
        }
        text.extend_from_slice(record.text);
        if record.ends_line {
            text.push(b'\n');
        }
        begins_line = record.ends_line;
    }
    if let Some(limit) = options.limit {
        text.truncate(limit);
    }
    text
}

struct Record<'a> {
    time: &'a str,
    ends_line: bool,
    text: &'a [u8],
}

impl<'a> Record<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let time = std::str::from_utf8(parts.next()?).ok()?;
        let _stream = parts.next()?;
        let ends_line = parts.next()? == b"F";
        Some(Self { time, ends_line, text: parts.next()? })
    }

    fn at(&self) -> Timestamp {
        self.time.parse().unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &[u8] = b"2026-01-01T00:00:00.000000001Z stdout F one\n\
        2026-01-01T00:00:01.000000000Z stdout P two \n\
        2026-01-01T00:00:01.500000000Z stdout F halves\n\
        2026-01-01T00:00:02.000000000Z stderr F three\n";

    fn rendered(options: &Options) -> String {
        String::from_utf8(render(RAW, options)).unwrap()
    }

    #[test]
    fn parts_are_joined_and_lines_counted_from_the_end() {
        assert_eq!(rendered(&Options::default()), "one\ntwo halves\nthree\n");
        let tail = |n| rendered(&Options { tail: Some(n), ..Options::default() });
        assert_eq!(tail(0), "");
        assert_eq!(tail(1), "three\n");
        assert_eq!(tail(2), "two halves\nthree\n");
        assert_eq!(tail(9), "one\ntwo halves\nthree\n");
    }

    #[test]
    fn time_and_length_limit_what_is_shown() {
        let since = Some("2026-01-01T00:00:02Z".parse().unwrap());
        assert_eq!(rendered(&Options { since, ..Options::default() }), "three\n");
        assert_eq!(rendered(&Options { limit: Some(5), ..Options::default() }), "one\nt");
        let stamped = rendered(&Options { tail: Some(1), timestamps: true, ..Options::default() });
        assert_eq!(stamped, "2026-01-01T00:00:02.000000000Z three\n");
    }
}
