//! The marks of a JSON text: the brackets, commas and colons of its outer objects and lists.
//!
//! Found sixty-four bytes at a time, so that what lies deeper, which is most of an object, costs
//! next to nothing. Only strings and brackets are understood: that a number is none shows when
//! somebody decodes it.

use wide::u8x16;

/// How many bytes are looked at together.
const BLOCK: usize = 64;

/// Makes a small bracket of a square one, and moves no other byte onto one of the two.
const SMALL: u8 = 0x20;

/// Where the marks are that lie in at most `deepest` objects and lists, in order; `None` when a
/// string or a bracket has no end, or when a mark is before or after the one object or list.
pub(super) fn find(text: &str, deepest: usize) -> Option<Vec<usize>> {
    let mut found = Vec::with_capacity(2 * BLOCK);
    let mut strings = Strings::default();
    let (mut depth, mut is_over) = (0, false);
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    for (number, bytes) in blocks.iter().chain([&last]).enumerate() {
        let block = Block::of(bytes);
        let outside = !strings.cover(&block);
        let (opening, closing) = block.brackets();
        let (opening, closing) = (opening & outside, closing & outside);
        let (opened, closed) = (count(opening), count(closing));
        // However its brackets lie, none of this block is far enough out.
        if depth > closed + deepest {
            depth = depth + opened - closed;
            continue;
        }
        let apart = (block.places_of(b',') | block.places_of(b':')) & outside;
        let mut all = opening | closing | apart;
        while all != 0 {
            let place = all & all.wrapping_neg();
            all ^= place;
            if opening & place != 0 {
                if is_over {
                    return None;
                }
                depth += 1;
            } else if depth == 0 {
                return None;
            }
            if depth <= deepest {
                found.push(number * BLOCK + place.trailing_zeros() as usize);
            }
            if closing & place != 0 {
                depth -= 1;
                is_over = depth == 0;
            }
        }
    }
    (is_over && !strings.is_open()).then_some(found)
}

/// A block of text; a set of its places is a number with a bit for each.
///
/// Its four parts are named: what goes over them as an array is a function call in builds whose
/// linker does not inline, and costs as much as all the rest.
struct Block(u8x16, u8x16, u8x16, u8x16);

impl Block {
    #[inline]
    fn of(bytes: &[u8; BLOCK]) -> Self {
        let (parts, _) = bytes.as_chunks::<16>();
        let part = |number: usize| u8x16::new(parts[number]);
        Self(part(0), part(1), part(2), part(3))
    }

    /// Where that byte is.
    #[inline]
    fn places_of(&self, byte: u8) -> u64 {
        let byte = u8x16::splat(byte);
        let each = |part: u8x16| u64::from(part.simd_eq(byte).to_bitmask());
        each(self.0) | each(self.1) << 16 | each(self.2) << 32 | each(self.3) << 48
    }

    /// Where backslashes are; next to no block has any, and that is told at once.
    #[inline]
    fn backslashes(&self) -> u64 {
        let byte = u8x16::splat(b'\\');
        let is = |part: u8x16| part.simd_eq(byte);
        let any = (is(self.0) | is(self.1)) | (is(self.2) | is(self.3));
        if any.to_bitmask() == 0 { 0 } else { self.places_of(b'\\') }
    }

    /// Where brackets of either form open, and where they close.
    #[inline]
    fn brackets(&self) -> (u64, u64) {
        let small = u8x16::splat(SMALL);
        let small = Self(self.0 | small, self.1 | small, self.2 | small, self.3 | small);
        (small.places_of(b'{'), small.places_of(b'}'))
    }
}

/// What is within strings, from block to block.
#[derive(Default)]
struct Strings {
    /// All bits if the last block ended within a string, none if not.
    open: u64,
    /// Whether the next byte is escaped.
    escapes: bool,
}

impl Strings {
    /// Which places of the next block are within strings, their first quotes included.
    #[inline]
    fn cover(&mut self, block: &Block) -> u64 {
        let backslashes = block.backslashes();
        let mut quotes = block.places_of(b'"');
        if backslashes != 0 || self.escapes {
            quotes &= !self.escaped(backslashes);
        }
        // Each place gets the parity of the quotes up to it.
        let mut covered = quotes;
        for distance in [1, 2, 4, 8, 16, 32] {
            covered ^= covered << distance;
        }
        covered ^= self.open;
        self.open = if covered >> (BLOCK - 1) == 0 { 0 } else { u64::MAX };
        covered
    }

    /// Which places are escaped by the backslash before them.
    fn escaped(&mut self, mut backslashes: u64) -> u64 {
        let mut escaped = u64::from(std::mem::take(&mut self.escapes));
        backslashes &= !escaped;
        while backslashes != 0 {
            let backslash = backslashes & backslashes.wrapping_neg();
            let next = backslash << 1;
            self.escapes = next == 0;
            escaped |= next;
            backslashes &= !(backslash | next);
        }
        escaped
    }

    fn is_open(&self) -> bool {
        self.open != 0
    }
}

fn count(places: u64) -> usize {
    places.count_ones() as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// The same, a byte at a time.
    fn one_by_one(text: &str, deepest: usize) -> Vec<usize> {
        let (mut found, mut depth) = (Vec::new(), 0);
        let (mut is_in_string, mut is_escaped) = (false, false);
        for (place, byte) in text.bytes().enumerate() {
            match (is_in_string, byte) {
                _ if is_escaped => is_escaped = false,
                (true, b'\\') => is_escaped = true,
                (_, b'"') => is_in_string = !is_in_string,
                (false, b'{' | b'[' | b'}' | b']' | b',' | b':') => {
                    depth += usize::from(matches!(byte, b'{' | b'['));
                    if depth <= deepest {
                        found.push(place);
                    }
                    depth -= usize::from(matches!(byte, b'}' | b']'));
                }
                _ => {}
            }
        }
        found
    }

    fn json() -> impl Strategy<Value = Value> {
        let word = prop_oneof![r#"[\\"{}\[\],: a]{0,80}"#, "[a-zé😀]{0,9}"];
        let leaf = prop_oneof![Just(Value::Null), word.prop_map(Value::from)];
        leaf.prop_recursive(6, 60, 6, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from);
            let fields = prop::collection::btree_map(r#"[a\\"{:]{0,9}"#, inner, 0..6);
            prop_oneof![list, fields.prop_map(|it| Value::Object(it.into_iter().collect()))]
        })
    }

    proptest! {
        #[test]
        fn marks_are_where_a_look_at_every_byte_finds_them(value in json(), deepest in 0..5_usize) {
            let text = Value::Array(vec![value]).to_string();
            prop_assert_eq!(find(&text, deepest), Some(one_by_one(&text, deepest)));
            // Cut off anywhere, something has no end.
            let cut = text.len() / 2;
            let beginning = text.get(..cut).unwrap_or("[");
            prop_assert_eq!(find(beginning, deepest), None);
        }
    }

    #[test]
    fn what_has_no_end_or_no_beginning_has_no_marks() {
        for text in [
            "",
            "5",
            "{",
            "}",
            "[]]",
            "{}{}",
            "{},",
            "{}:",
            ",{}",
            ":{}",
            "{} ,}",
            r#"{"a}"#,
            r#"{"a\"}"#,
            "{} []",
        ] {
            assert_eq!(find(text, 3), None, "{text}");
        }
    }
}
