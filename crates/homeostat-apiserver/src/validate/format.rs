//! Patterns and formats of strings. A format nobody knows accepts everything.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use regex::Regex;

thread_local! {
    /// Patterns come from schemas and are few; each thread compiles each of them once.
    static PATTERNS: RefCell<BTreeMap<String, Option<Regex>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether the text has the pattern somewhere in it. A pattern that does not compile matches
/// nothing; definitions with such patterns are refused.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    PATTERNS.with_borrow_mut(|patterns| {
        if !patterns.contains_key(pattern) {
            patterns.insert(pattern.to_owned(), Regex::new(pattern).ok());
        }
        patterns.get(pattern).and_then(Option::as_ref).is_some_and(|regex| regex.is_match(text))
    })
}

/// Whether the text has the named format.
pub(super) fn accepts(format: &str, text: &str) -> bool {
    use base64::Engine as _;
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "byte" => base64::prelude::BASE64_STANDARD.decode(text).is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "duration" => is_duration(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => {
            matches(r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$", text)
        }
        "hostname" => {
            text.len() <= 255
                && matches(
                    r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$",
                    text,
                )
        }
        "email" => matches(r"^[^@\s]+@[^@\s]+$", text),
        "uri" => matches(r"^([A-Za-z][A-Za-z0-9+.-]*:|/)\S*$", text),
        "mac" => matches(r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$", text),
        "hexcolor" => matches(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", text),
        "k8s-short-name" => super::dns_label(text).is_empty(),
        "k8s-long-name" => super::dns_subdomain(text).is_empty(),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u8>() else { return false };
    (address.parse::<Ipv4Addr>().is_ok() && bits <= 32)
        || (address.parse::<Ipv6Addr>().is_ok() && bits <= 128)
}

/// `1h30m`, `250ms`, `-1.5s`: numbers with units.
fn is_duration(text: &str) -> bool {
    text == "0" || matches(r"^[-+]?([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h|d|w))+$", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_what_they_name_and_unknown_ones_accept_everything() {
        for (format, good, bad) in [
            ("date-time", "2026-11-15T10:00:00Z", "tomorrow"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/40"),
            ("duration", "1h30m", "soon"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
            ("byte", "aGk=", "*"),
        ] {
            assert!(accepts(format, good), "{format} {good}");
            assert!(!accepts(format, bad), "{format} {bad}");
        }
        assert!(accepts("nobody-knows", "x"));
    }
}
