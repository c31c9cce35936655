//! The JSON of cached objects, kept small: each is written down as what sets it apart from those
//! that came before it.
//!
//! Objects of one kind have the same field names and mostly the same values, so a [`Packer`] keeps
//! the text of a few of them as a pattern and describes the others by it (LZ4 with a dictionary: a
//! Pod takes a microsecond to pack and less to unpack). It never looks into the JSON, and what it
//! packed is the same text again to the last byte.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use lz4_flex::block::{
    compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size,
};
use memchr::memmem::Finder;

use super::pattern::Pattern;
use crate::error::REASONS;

/// A pattern grows no longer: what is farther back than LZ4 reaches could not be referred to.
const LONGEST_PATTERN: usize = 16 * 1024;
/// A text that takes more than such a part of its length is not like the pattern.
const UNLIKE: usize = 3;
/// So much memory a thread keeps for the next text.
const MOST_KEPT: usize = 64 * 1024;
/// Shorter texts would not get much shorter.
const SHORTEST: usize = 128;

/// The text of one object.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// What the text was packed against; `None` when it is kept as it is.
    pattern: Option<Arc<Vec<u8>>>,
    bytes: Box<[u8]>,
    length: u32,
    /// Whether the text may have a word of the runtime's: looked for once, asked after every
    /// reconcile.
    may_be_marked: bool,
}

impl Body {
    /// Kept as it is.
    pub(super) fn plain(text: &str) -> Self {
        let bytes = Box::from(text.as_bytes());
        Self { pattern: None, bytes, length: 0, may_be_marked: true }
    }

    /// Whether a condition may be in it that the runtime has written.
    pub(super) fn may_be_marked(&self) -> bool {
        self.may_be_marked
    }

    pub(super) fn text(&self) -> Cow<'_, str> {
        if self.pattern.is_none() {
            return String::from_utf8_lossy(&self.bytes);
        }
        let mut text = Vec::new();
        self.unpack(&mut text);
        Cow::Owned(String::from_utf8(text).unwrap_or_default())
    }

    /// Shows the text to somebody who does not keep it.
    pub(super) fn with_text<R>(&self, look: impl FnOnce(&str) -> R) -> R {
        thread_local! {
            /// Used again for every text: memory of that size costs more than unpacking.
            static TEXT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
        }
        if self.pattern.is_none() {
            return look(&self.text());
        }
        let mut text = TEXT.take();
        self.unpack(&mut text);
        let result = look(std::str::from_utf8(&text).unwrap_or_default());
        text.truncate(MOST_KEPT);
        text.shrink_to(MOST_KEPT);
        TEXT.set(text);
        result
    }

    fn unpack(&self, text: &mut Vec<u8>) {
        text.resize(self.length as usize, 0);
        let pattern = self.pattern.as_deref().map_or(&[][..], |pattern| pattern);
        if decompress_into_with_dict(&self.bytes, text, pattern).is_err() {
            // Only damaged memory gets here; the empty text is no object, and readers say so.
            text.clear();
        }
    }
}

/// Packs the objects of one informer.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    /// Whether the runtime's words are looked for: not where it hardly ever says any.
    seeks_marks: bool,
    pattern: Pattern,
    /// How many texts were little like the pattern.
    strangers: u64,
    packed: Vec<u8>,
}

impl Packer {
    pub(super) fn new(seeks_marks: bool) -> Self {
        Self { seeks_marks, ..Self::default() }
    }

    pub(super) fn pack(&mut self, text: &str) -> Body {
        let may_be_marked = !self.seeks_marks || is_marked(text);
        Body { may_be_marked, ..self.pack_text(text) }
    }

    fn pack_text(&mut self, text: &str) -> Body {
        let Ok(length) = u32::try_from(text.len()) else { return Body::plain(text) };
        if text.len() < SHORTEST {
            return Body::plain(text);
        }
        let (bytes, most) = (text.as_bytes(), text.len() / UNLIKE);
        let is_alike = self.pattern.describe(bytes, most, &mut self.packed);
        if !is_alike {
            // What it repeats of itself counts, too; that takes several times as long to find.
            self.packed.resize(get_maximum_output_size(text.len()), 0);
            let pattern = self.pattern.text();
            let packed = compress_into_with_dict(bytes, &mut self.packed, pattern).ok();
            self.packed.truncate(packed.unwrap_or(text.len()));
        }
        let body = if self.packed.len() < text.len() {
            let pattern = Some(Arc::clone(self.pattern.text()));
            Body { pattern, bytes: Box::from(&*self.packed), length, may_be_marked: true }
        } else {
            Body::plain(text)
        };
        if !is_alike {
            self.meet(text);
        }
        body
    }

    /// Learns from the first, second, fourth, eighth … text that is unlike the pattern: enough to
    /// follow what changes, and few patterns stay in use at once.
    fn meet(&mut self, stranger: &str) {
        self.strangers += 1;
        if !self.strangers.is_power_of_two() {
            return;
        }
        let new = &stranger.as_bytes()[..stranger.len().min(LONGEST_PATTERN)];
        let old = self.pattern.text();
        let kept = old.len().min(LONGEST_PATTERN - new.len());
        // The newest last: what is nearest is found first.
        self.pattern = Pattern::new([&old[old.len() - kept..], new].concat());
    }
}

/// Whether the text has one of the reasons that the runtime gives in conditions.
fn is_marked(text: &str) -> bool {
    static WORDS: LazyLock<[Finder<'static>; REASONS.len()]> =
        LazyLock::new(|| REASONS.map(|reason| Finder::new(&format!("\"{reason}\"")).into_owned()));
    WORDS.iter().any(|word| word.find(text.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(number: usize) -> String {
        let words = (1..100_u64).map(|n| (n * 7_919).wrapping_pow(3).to_string());
        let words = words.collect::<Vec<_>>().join(" ");
        format!(r#"{{"metadata":{{"name":"ü-{number}"}},"data":"{words}"}}"#)
    }

    #[test]
    fn every_text_comes_back_as_it_was() {
        let mut packer = Packer::default();
        let long = "x".repeat(3 * LONGEST_PATTERN) + "ü";
        let texts = (0..50).map(object).chain([String::new(), "{}".to_owned(), long]);
        let bodies: Vec<_> = texts.map(|text| (packer.pack(&text), text)).collect();
        for (body, text) in bodies {
            assert_eq!(body.text(), text);
        }
    }

    #[test]
    fn whether_the_runtime_spoke_is_known_where_it_is_looked_for() {
        let marked = r#"{"status":{"conditions":[{"type":"Ready","reason":"CannotBeDone"}]}}"#;
        let spoke = |seeks, text: &str| Packer::new(seeks).pack(text).may_be_marked();
        assert!(spoke(true, marked) && spoke(true, &format!("{marked}{}", object(1))));
        assert!(!spoke(true, &object(1)));
        assert!(spoke(false, &object(1)), "nobody knows");
    }

    #[test]
    fn objects_alike_take_a_fraction_of_their_text() {
        let mut packer = Packer::default();
        let bodies: Vec<_> = (0..100).map(|number| packer.pack(&object(number))).collect();
        let kept: usize = bodies[1..].iter().map(|body| body.bytes.len()).sum();
        assert!(kept < 99 * object(0).len() / 20, "{kept}");
        assert!(Arc::ptr_eq(bodies[1].pattern.as_ref().unwrap(), packer.pattern.text()));
    }

    #[test]
    fn patterns_stay_few_and_short_when_nothing_is_alike() {
        let mut packer = Packer::default();
        let mut patterns = Vec::new();
        for number in 0..1000_u64 {
            let words = (1..400).map(|n: u64| (n * (number + 7)).wrapping_pow(5).to_string());
            let body = packer.pack(&words.collect::<String>());
            patterns.extend(body.pattern.filter(|it| !patterns.iter().any(|p| Arc::ptr_eq(p, it))));
        }
        assert!(patterns.len() <= 11, "{}", patterns.len());
        assert!(patterns.iter().all(|pattern| pattern.len() <= LONGEST_PATTERN));
    }
}
