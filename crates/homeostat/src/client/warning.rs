//! What the API warns of: a field it does not know and drops, a version that will go. The answer is
//! a good one all the same, so nobody would hear of it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use http::HeaderMap;

/// How many texts are remembered; then all is told anew.
const REMEMBERED: usize = 1000;

/// Tells of each warning once.
#[derive(Debug)]
pub(crate) struct Warnings {
    told: Mutex<BTreeSet<String>>,
    heeded: bool,
}

impl Warnings {
    /// Warnings for somebody who heeds them; for others they are a detail.
    pub(crate) fn new(heeded: bool) -> Self {
        Self { told: Mutex::default(), heeded }
    }

    /// Writes the warnings of an answer to the log, in the span of whoever asked.
    pub(super) fn tell(&self, headers: &HeaderMap) {
        for text in headers.get_all(http::header::WARNING).iter().filter_map(|v| v.to_str().ok()) {
            let Some(text) = text_of(text) else { continue };
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() >= REMEMBERED {
                told.clear();
            }
            match told.insert(text.clone()) {
                true if self.heeded => tracing::warn!(warning = text, "the API warns"),
                true => tracing::debug!(warning = text, "the API warns"),
                false => {}
            }
        }
    }
}

/// The text of `299 agent "text"`; other codes are not for users.
fn text_of(header: &str) -> Option<String> {
    let (_, quoted) = header.strip_prefix("299 ")?.split_once(' ')?;
    let quoted = quoted.strip_prefix('"')?;
    let (mut text, mut escaped) = (String::new(), false);
    for symbol in quoted.chars() {
        match symbol {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return Some(text),
            other => {
                text.push(other);
                escaped = false;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_warning_is_what_its_quotes_hold() {
        assert_eq!(text_of(r#"299 - "a \"b\" \\ c" "date""#).as_deref(), Some(r#"a "b" \ c"#));
        for other in [r#"199 - "a""#, "299 -", r#"299 - "open"#, "nonsense"] {
            assert_eq!(text_of(other), None, "{other}");
        }
    }
}
