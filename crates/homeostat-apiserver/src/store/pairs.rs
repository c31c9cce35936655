//! A few names with their values in one allocation: labels and selectable fields of an object.
//!
//! A map of strings costs more than the object it describes; there is one of these per version of
//! every object, and it is read only when a selector asks.

use std::fmt;

/// Names with values, in the order they were given.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs(
    /// Length and bytes of each name and value, one after the other.
    Box<[u8]>,
);

impl Pairs {
    /// The value under that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || Some((text(&mut rest)?, text(&mut rest)?)))
    }

    /// As they are kept; [`Pairs::from_bytes`] reads it.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What [`Pairs::as_bytes`] gave; `None` for anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            text(&mut rest)?;
            text(&mut rest)?;
        }
        Some(Self(bytes.into()))
    }
}

/// Takes one text off the front.
fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (length, after) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (bytes, after) = after.split_at_checked(length)?;
    *rest = after;
    std::str::from_utf8(bytes).ok()
}

impl<A: AsRef<str>, B: AsRef<str>> FromIterator<(A, B)> for Pairs {
    fn from_iter<T: IntoIterator<Item = (A, B)>>(pairs: T) -> Self {
        let mut bytes = Vec::new();
        let mut put = |text: &str| {
            // The limit on bodies is far below what a length can say.
            bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        };
        for (name, value) in pairs {
            put(name.as_ref());
            put(value.as_ref());
        }
        Self(bytes.into())
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Pairs;

    #[test]
    fn what_is_put_in_comes_out_again_also_through_bytes() {
        let pairs: Pairs = [("app", "web"), ("", ""), ("tier", "a\0b")].into_iter().collect();
        assert_eq!(pairs.get("tier"), Some("a\0b"));
        assert_eq!(pairs.get("none"), None);
        assert_eq!(Pairs::from_bytes(pairs.as_bytes()), Some(pairs.clone()));
        assert_eq!(Pairs::from_bytes(&pairs.as_bytes()[..5]), None);
        assert_eq!(Pairs::default().get("app"), None);
    }
}
