//! A text that others are like, prepared for comparing them with it: the beginnings of its words are
//! looked up instead of being gathered anew for each.
//!
//! What comes of it is an LZ4 block with the pattern as its dictionary, as any decoder reads it. It
//! refers to nothing but the pattern: what a text repeats of itself is not looked for.

use std::sync::Arc;

/// How many bytes must be alike before they are worth being referred to.
const WORD: usize = 8;
/// How many places are known, by a hash of the word there.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 13;
/// In an LZ4 block the last match begins so many bytes before the end, and ends so many before it.
const LAST_BEGIN: usize = 12;
const LAST_END: usize = 5;
/// What LZ4 calls a match is so long at least.
const SHORTEST_MATCH: usize = 4;
/// From here on a length needs bytes of its own.
const LONG: usize = 15;
/// How far back LZ4 refers at most, from the text into the pattern before it.
const FARTHEST: usize = 65_535;

/// A text and where its words are.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    text: Arc<Vec<u8>>,
    /// One more than the place of a word; 0 where none is known. Of several words with one hash the
    /// last counts.
    places: Vec<u16>,
}

impl Pattern {
    /// The pattern of that text, of which the first 64 KiB count.
    pub(super) fn new(text: Vec<u8>) -> Self {
        let mut places = vec![0; PLACES];
        let words = text.windows(WORD).filter_map(<[u8]>::first_chunk);
        for (word, place) in words.zip(1..=u16::MAX) {
            places[slot(word)] = place;
        }
        Self { text: Arc::new(text), places }
    }

    pub(super) fn text(&self) -> &Arc<Vec<u8>> {
        &self.text
    }

    /// Writes `text` down as what sets it apart. `false` when it is too long, or would take more than
    /// `most` bytes: what is written then is of no use.
    pub(super) fn describe(&self, text: &[u8], most: usize, block: &mut Vec<u8>) -> bool {
        block.clear();
        if self.places.is_empty() || self.text.len() + text.len() > FARTHEST {
            return false;
        }
        // Up to where the text is written down, and how far the pattern was followed by then.
        let (mut written, mut followed) = (0, 0);
        let mut at = 0;
        while at + LAST_BEGIN < text.len() && block.len() + (at - written) <= most {
            let place =
                text[at..].first_chunk().and_then(|word| self.find(word, followed + at - written));
            let Some(place) = place else {
                at += 1;
                continue;
            };
            let length = alike(&self.text[place..], &text[at..text.len() - LAST_END]);
            let back = self.text.len() - place + at;
            put(block, &text[written..at], Some((back, length)));
            at += length;
            (written, followed) = (at, place + length);
        }
        put(block, &text[written..], None);
        block.len() <= most
    }

    /// Where that word is. Mostly a value has replaced one as long, and all goes on as `expected`.
    fn find(&self, word: &[u8; WORD], expected: usize) -> Option<usize> {
        let is_at = |place: &usize| self.text[*place..].first_chunk() == Some(word);
        let expected = Some(expected).filter(|place| *place < self.text.len()).filter(is_at);
        let known = || usize::from(self.places[slot(word)]).checked_sub(1).filter(is_at);
        expected.or_else(known)
    }
}

fn slot(word: &[u8; WORD]) -> usize {
    // The golden ratio spreads what differs in a few bits over the upper ones.
    let hash = u64::from_le_bytes(*word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> (u64::BITS - PLACE_BITS)) as usize
}

/// How many bytes both begin with.
fn alike(one: &[u8], other: &[u8]) -> usize {
    let (words, others) = (one.as_chunks::<WORD>().0, other.as_chunks::<WORD>().0);
    let whole = words.iter().zip(others).take_while(|(word, other)| word == other).count() * WORD;
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(byte, other)| byte == other).count()
}

/// Writes a sequence: what is copied as it stands and, if it is not the last one, how far back the
/// match is that follows, and how long.
fn put(block: &mut Vec<u8>, literals: &[u8], reference: Option<(usize, usize)>) {
    let more = reference.map_or(0, |(_, length)| length - SHORTEST_MATCH);
    block.push(low(literals.len().min(LONG) << 4 | more.min(LONG)));
    put_length(block, literals.len());
    block.extend_from_slice(literals);
    if let Some((back, _)) = reference {
        block.extend([low(back), low(back >> 8)]);
        put_length(block, more);
    }
}

/// The part of a length that has no room in the first byte of its sequence.
fn put_length(block: &mut Vec<u8>, length: usize) {
    let Some(rest) = length.checked_sub(LONG) else { return };
    block.extend(std::iter::repeat_n(u8::MAX, rest / 255));
    block.push(low(rest % 255));
}

/// The lowest byte.
fn low(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use lz4_flex::block::decompress_into_with_dict;
    use proptest::prelude::*;

    use super::*;

    fn described(pattern: &Pattern, text: &[u8]) -> Option<Vec<u8>> {
        let mut block = Vec::new();
        pattern.describe(text, 2 * text.len() + 16, &mut block).then_some(block)
    }

    fn read_back(pattern: &Pattern, block: &[u8], length: usize) -> Vec<u8> {
        let mut text = vec![0; length];
        let read = decompress_into_with_dict(block, &mut text, pattern.text()).unwrap();
        text.truncate(read);
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn whatever_is_described_another_decoder_reads_as_it_was(
            pattern in "[ab]{0,400}",
            parts in prop::collection::vec((0..400_usize, 0..400_usize, "[abc]{0,20}"), 0..8),
        ) {
            let of = Pattern::new(pattern.clone().into_bytes());
            let text: String = parts.iter().map(|(begin, end, new)| {
                let [begin, end] = [begin, end].map(|place| *place.min(&pattern.len()));
                format!("{}{new}", &pattern[begin.min(end)..end])
            }).collect();
            let block = described(&of, text.as_bytes()).unwrap();
            prop_assert_eq!(read_back(&of, &block, text.len()), text.as_bytes());
        }
    }

    #[test]
    fn what_differs_in_a_word_takes_a_few_bytes() {
        let words: Vec<String> = (0..500_u64).map(|n| (n * 7919).pow(2).to_string()).collect();
        let pattern = Pattern::new(words.join(" ").into_bytes());
        for (old, new) in [
            (words[250].clone(), "x".repeat(words[250].len())),
            (words[250].clone(), "longer than that".to_owned()),
        ] {
            let text = words.join(" ").replace(&old, &new);
            let block = described(&pattern, text.as_bytes()).unwrap();
            assert!(block.len() < 60, "{}", block.len());
            assert_eq!(read_back(&pattern, &block, text.len()), text.as_bytes());
        }
    }

    #[test]
    fn what_is_too_long_or_unlike_is_left_to_others() {
        let pattern = Pattern::new(b"nothing that the others have".to_vec());
        let mut block = Vec::new();
        assert!(!pattern.describe(&[b'x'; 100], 33, &mut block));
        assert!(!pattern.describe(&vec![b'x'; FARTHEST], FARTHEST, &mut block));
        assert!(!Pattern::default().describe(b"a first text", 100, &mut block));
    }
}
