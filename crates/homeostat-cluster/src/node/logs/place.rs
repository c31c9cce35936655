//! Finds where in a log to begin, from its end backwards: a tail of a long log costs no more than
//! the tail.

use std::io::Result;

use jiff::Timestamp;

use super::record::Record;
use super::write::Log;

/// How much is read at once; longer than any record.
const BLOCK: u64 = 64 * 1024;

/// Where the last `lines` lines before `end` begin, or those written at `since` or later, whichever
/// is later. An unfinished last line counts as a line.
pub(super) async fn beginning(
    log: &Log,
    end: u64,
    lines: Option<usize>,
    since: Option<Timestamp>,
) -> Result<u64> {
    let segments = log.segments();
    let oldest = segments.first().map_or(0, |segment| segment.start);
    match (lines, since) {
        (Some(0), _) => return Ok(end),
        (None, None) => return Ok(oldest),
        _ => {}
    }
    let mut left = lines.unwrap_or(usize::MAX);
    let mut at_the_end = true;
    let mut at = end;
    while at > oldest {
        let of_file = segments.iter().rfind(|segment| segment.start < at);
        let file = of_file.map_or(oldest, |segment| segment.start);
        let begin = file.max(at.saturating_sub(BLOCK));
        let (found, raw) = log.bytes_at(begin, at - begin).await?;
        if found != begin || raw.len() as u64 != at - begin {
            // Rotated away in this moment: what is left begins here.
            return Ok(at);
        }
        // The first record has lost its beginning, unless the file begins with it.
        let lost = raw.iter().position(|byte| *byte == b'\n').map_or(raw.len(), |end| end + 1);
        let whole = if begin == file { &raw[..] } else { &raw[lost..] };
        if whole.is_empty() {
            return Ok(at);
        }
        for line in whole.split_inclusive(|byte| *byte == b'\n').rev() {
            if let Some(record) = Record::parse(line.strip_suffix(b"\n").unwrap_or(line)) {
                // The end of the line before the ones seen so far.
                left -= usize::from(record.ends_line && !at_the_end);
                if left == 0 || since.is_some_and(|since| record.at() < since) {
                    return Ok(at);
                }
                at_the_end = false;
            }
            at -= line.len() as u64;
        }
    }
    Ok(at)
}
