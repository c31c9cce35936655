//! The forms of names: each function says what is wrong with a text, or nothing.
//!
//! What is too long is counted in bytes everywhere; only keys and values of labels, and the names
//! of a few kinds, say so, and the others speak of characters.

/// DNS-1123 label: up to 63 lower case letters, digits and dashes.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut errors = too_long(text, 63, CHARACTERS);
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !is_label(text, lower) && text.split('.').all(|part| is_label(part, lower)) {
        errors.push("must not contain dots".to_owned());
    } else if !is_label(text, lower) {
        errors.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
             regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// DNS-1035 label: as [`dns_label`], starting with a letter.
pub(crate) fn dns_label_1035(text: &str) -> Vec<String> {
    let mut errors = too_long(text, 63, CHARACTERS);
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !is_label(text, lower) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        errors.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
             an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
             'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// DNS-1123 subdomain: labels joined by dots, up to 253 characters.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain(text, CHARACTERS)
}

/// The same, for the kinds and keys whose length is given in bytes.
pub(super) fn long_name(text: &str) -> Vec<String> {
    subdomain(text, BYTES)
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut errors = too_long(text, 253, unit);
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !text.split('.').all(|label| is_label(label, lower)) {
        errors.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
             or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
             regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    errors
}

/// A DNS name whose labels may have underscores, except at their end.
pub(super) fn dns_subdomain_or_underscore(text: &str) -> Vec<String> {
    let mut errors = too_long(text, 253, CHARACTERS);
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_good = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        label.starts_with(inner)
            && label.ends_with(inner)
            && label.chars().all(|c| inner(c) || c == '-' || c == '_')
    };
    if !text.split('.').all(is_good) {
        errors.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    errors
}

/// A name that can stand as one segment of a URL path.
pub(super) fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_prefix(text)
}

/// The beginning of a part of a path: more follows.
pub(super) fn path_prefix(text: &str) -> Vec<String> {
    ['/', '%']
        .into_iter()
        .filter(|c| text.contains(*c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

/// Why nobody can be asked for an object of that name, if so.
pub(crate) fn unaskable(name: &str) -> Option<String> {
    let problems = path_segment(name).join(" ");
    match (name.is_empty(), problems.is_empty()) {
        (true, _) => Some("resource name may not be empty".to_owned()),
        (false, true) => None,
        (false, false) => Some(format!("invalid resource name {name:?}: [{problems}]")),
    }
}

/// An IP address in the one form that names it.
pub(super) fn ip_address(text: &str) -> Vec<String> {
    super::ip::strict_problem(text).into_iter().collect()
}

/// `name` or `prefix/name`: label and annotation keys, finalizers.
pub(crate) fn qualified(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            return vec![format!(
                "a valid label key {WORD} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    let mut errors = Vec::new();
    match prefix {
        Some("") => errors.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            errors.extend(long_name(prefix).into_iter().map(|e| format!("prefix part {e}")));
        }
        None => {}
    }
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_word(name) {
        errors.push(format!("name part {WORD}"));
    }
    errors
}

/// What labels may hold: nothing, or up to 63 characters.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut errors = too_long(text, 63, BYTES);
    if !text.is_empty() && !is_word(text) {
        errors.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// Names of ports, as IANA service names are formed.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut errors = too_long(text, 15, CHARACTERS);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    for (broken, words) in [
        (
            text.is_empty() || !text.chars().all(plain),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!text.chars().any(|c| c.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (text.contains("--"), "must not contain consecutive hyphens"),
        (text.starts_with('-') || text.ends_with('-'), "must not begin or end with a hyphen"),
    ] {
        if broken {
            errors.push(words.to_owned());
        }
    }
    errors
}

/// Keys of ConfigMaps and Secrets.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let mut errors = too_long(text, 253, CHARACTERS);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || !text.chars().all(plain) {
        errors.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match text {
        "." | ".." => errors.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

const WORD: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
     with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
     validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const BYTES: &str = "bytes";
const CHARACTERS: &str = "characters";

fn too_long(text: &str, most: usize, unit: &str) -> Vec<String> {
    if text.len() > most { vec![format!("must be no more than {most} {unit}")] } else { Vec::new() }
}

fn is_label(text: &str, inner: impl Fn(char) -> bool) -> bool {
    text.starts_with(&inner) && text.ends_with(&inner) && text.chars().all(|c| c == '-' || inner(c))
}

fn is_word(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_dns_accepts_are_accepted_and_others_are_not() {
        assert!(dns_label("a-1").is_empty());
        assert!(dns_subdomain("a.b-c.1").is_empty());
        assert!(dns_label_1035("1a").len() == 1);
        for bad in ["", "-a", "a-", "A", "a_b", "a.b"] {
            assert_eq!(dns_label(bad).len(), 1, "{bad:?}");
        }
        assert_eq!(dns_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(dns_subdomain("a..b").len(), 1);
    }

    #[test]
    fn keys_may_have_one_dns_prefix() {
        assert!(qualified("app.kubernetes.io/name").is_empty());
        assert!(qualified("Name_1.x").is_empty());
        assert_eq!(qualified("a/b/c").len(), 1);
        assert_eq!(qualified("/b"), ["prefix part must be non-empty"]);
        assert_eq!(qualified("a/").len(), 2);
    }
}
