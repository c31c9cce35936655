//! Comparing resource versions: decimal numbers of any length, as Kubernetes has them since 1.35.

use std::cmp::Ordering;

/// Which of two resource versions is later; `None` when one of them is no decimal number.
#[must_use]
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    if !is_number(a) || !is_number(b) {
        return None;
    }
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

/// Whether `a` is known to be earlier than `b`.
#[must_use]
pub fn is_earlier(a: &str, b: &str) -> bool {
    compare(a, b) == Some(Ordering::Less)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_compare_as_numbers_of_any_length() {
        assert_eq!(compare("9", "10"), Some(Ordering::Less));
        assert_eq!(compare("10", "010"), Some(Ordering::Equal));
        assert_eq!(
            compare("340282366920938463463374607431768211456", "9"),
            Some(Ordering::Greater)
        );
        assert_eq!(compare("", "9"), None);
        assert_eq!(compare("a1", "9"), None);
    }
}
