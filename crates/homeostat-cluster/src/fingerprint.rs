//! A short, stable name for a value: the suffix of ReplicaSets and ControllerRevisions.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Letters and digits that cannot spell words, as Kubernetes uses for generated names.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Ten characters that depend on `value` and on how often a collision was seen.
pub(crate) fn of(value: &impl Serialize, collisions: Option<i32>) -> String {
    // A value that cannot be encoded cannot have come from the API; an empty text is still stable.
    let text = serde_json::to_vec(value).unwrap_or_default();
    let mut hasher = Sha256::new();
    hasher.update(&text);
    if let Some(count) = collisions {
        hasher.update(count.to_le_bytes());
    }
    hasher
        .finalize()
        .iter()
        .take(10)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn the_same_value_has_the_same_name() {
        assert_eq!(of(&"a", None), of(&"a", None));
        assert_ne!(of(&"a", None), of(&"b", None));
        assert_ne!(of(&"a", None), of(&"a", Some(1)));
        assert_eq!(of(&"a", None).len(), 10);
    }
}
