//! Reads field selectors: `field=value`, `field==value` and `field!=value` between commas, where a
//! backslash takes its meaning from a comma, an equals sign or a backslash of a value.
//!
//! Nothing is trimmed, and fields have no escapes. It is the only reader of them: what a request is
//! judged by and what it then selects are the same. Which fields a kind has is not known here.

use super::FieldRequirement;

/// In the order in which they are tried at each place.
const OPERATORS: [&str; 3] = ["!=", "==", "="];

/// The requirements in the order of their texts, which is the order they are looked at in.
pub(super) fn parse(text: &str) -> Result<Vec<FieldRequirement>, String> {
    let mut terms = terms(text);
    terms.sort_unstable();
    let mut requirements = Vec::new();
    for term in terms.into_iter().filter(|term| !term.is_empty()) {
        let Some((field, operator, value)) = split(term) else {
            return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
        };
        let value = unescaped(value)?;
        // What names neither a field nor a value asks for nothing.
        if !field.is_empty() || !value.is_empty() {
            let equal = operator != "!=";
            requirements.push(FieldRequirement { field: field.to_owned(), value, equal });
        }
    }
    Ok(requirements)
}

/// What stands between the commas that are no part of a value.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// The field, the first operator of all and what follows it.
fn split(term: &str) -> Option<(&str, &str, &str)> {
    term.char_indices().find_map(|(at, _)| {
        let operator = OPERATORS.into_iter().find(|sign| term[at..].starts_with(sign))?;
        Some((&term[..at], operator, &term[at + operator.len()..]))
    })
}

fn unescaped(value: &str) -> Result<String, String> {
    let bad = |sequence: &str| {
        Err(format!("invalid field selector: invalid escape sequence: {sequence}"))
    };
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(special @ ('\\' | ',' | '=')) => plain.push(special),
                Some(other) => return bad(&format!("\\{other}")),
                None => return bad("\\"),
            },
            ',' | '=' => {
                // kube-apiserver names it by its number.
                let number = u32::from(char);
                let what = "invalid field selector: unescaped character in value";
                return Err(format!("{what}: {number}"));
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}

/// The value as a selector has to spell it.
pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_unescaped_and_the_first_operator_counts() {
        for (text, expected) in [
            ("", vec![]),
            (",,", vec![]),
            ("=", vec![]),
            ("a=b", vec![("a", "b", true)]),
            ("b==2,a!=1", vec![("a", "1", false), ("b", "2", true)]),
            (r"a=1\,2\=3\\4", vec![("a", r"1,2=3\4", true)]),
            (" a = b ", vec![(" a ", " b ", true)]),
            ("a!b=c", vec![("a!b", "c", true)]),
            (r"a=b!\=c", vec![("a", "b!=c", true)]),
            ("a!=", vec![("a", "", false)]),
            ("=b", vec![("", "b", true)]),
        ] {
            let read = parse(text).unwrap();
            let read: Vec<_> =
                read.iter().map(|it| (it.field.as_str(), it.value.as_str(), it.equal)).collect();
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn any_name_can_be_asked_for() {
        for name in ["a", "a,metadata.name=b", r"a\", r"\,\=\\", "", "a b"] {
            let asked = format!("metadata.name={}", escaped(name));
            assert_eq!(parse(&asked).unwrap()[0].value, name, "{asked}");
        }
    }

    #[test]
    fn what_kube_apiserver_cannot_read_is_refused_in_its_words() {
        for (text, words) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            (r"a\,b", r"invalid selector: 'a\,b'; can't understand 'a\,b'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a===b", "invalid field selector: unescaped character in value: 61"),
            ("a=b!=c", "invalid field selector: unescaped character in value: 61"),
            (r"a=b\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            assert_eq!(parse(text).unwrap_err(), words, "{text}");
        }
    }
}
