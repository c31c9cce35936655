//! Reads logs back, with the options of `kubectl logs`.

use std::io::Result;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use super::place::beginning;
use super::record::Record;
use super::write::Log;

/// How much is read at once; longer than any record.
const CHUNK: u64 = 256 * 1024;

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
/// When a file cannot be read.
pub async fn read(log: &Log, options: &Options) -> Result<Vec<u8>> {
    let pieces = stream(log.clone(), options.clone());
    pieces.try_fold(Vec::new(), |all, piece| async move { Ok([all, piece.into()].concat()) }).await
}

/// The log as it is now, piece by piece.
pub fn stream(log: Log, options: Options) -> impl Stream<Item = Result<Bytes>> {
    pieces(log, options, false)
}

/// The log as it is now and everything that is written later, until it is complete.
pub fn follow(log: Log, options: Options) -> impl Stream<Item = Result<Bytes>> {
    pieces(log, options, true)
}

struct Reader {
    log: Log,
    progress: watch::Receiver<(u64, bool)>,
    view: View,
    /// Where it is; found out when it begins.
    at: Option<u64>,
    /// Where it ends, unless it goes on with the log.
    until: Option<u64>,
    options: Options,
}

fn pieces(log: Log, options: Options, follows: bool) -> impl Stream<Item = Result<Bytes>> {
    let progress = log.progress();
    let until = (!follows).then(|| progress.borrow().0);
    let view = View { begins_line: true, left: options.limit };
    let reader = Reader { log, progress, view, at: None, until, options };
    futures::stream::try_unfold(reader, |mut reader| async move {
        let piece = reader.next().await?;
        Ok(piece.map(|piece| (piece, reader)))
    })
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        while self.view.left != Some(0) {
            let (written, closed) = *self.progress.borrow_and_update();
            let end = self.until.unwrap_or(written);
            let at = match self.at {
                Some(at) => at,
                None => beginning(&self.log, end, self.options.tail, self.options.since).await?,
            };
            self.at = Some(at);
            if at < end {
                let (found, mut raw) = self.log.bytes_at(at, CHUNK.min(end - at)).await?;
                // Only whole records.
                let whole = raw.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                raw.truncate(whole);
                if raw.is_empty() {
                    return Ok(None);
                }
                self.at = Some(found + raw.len() as u64);
                return Ok(Some(self.view.render(&raw, &self.options).into()));
            }
            if self.until.is_some() || closed || self.progress.changed().await.is_err() {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

/// How far the text has come.
struct View {
    begins_line: bool,
    /// Bytes that may still be shown.
    left: Option<usize>,
}

impl View {
    fn render(&mut self, raw: &[u8], options: &Options) -> Vec<u8> {
        let mut text = Vec::new();
        for record in raw.split(|byte| *byte == b'\n').filter_map(Record::parse) {
            if options.since.is_some_and(|since| record.at() < since) {
                continue;
            }
            if options.timestamps && self.begins_line {
                text.extend_from_slice(record.time.as_bytes());
                text.push(b' ');
            }
            text.extend_from_slice(record.text);
            if record.ends_line {
                text.push(b'\n');
            }
            self.begins_line = record.ends_line;
        }
        if let Some(left) = &mut self.left {
            text.truncate(*left);
            *left -= text.len();
        }
        text
    }
}

#[cfg(test)]
mod tests;
