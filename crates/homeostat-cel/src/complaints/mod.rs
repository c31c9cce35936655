//! What libraries say of arguments that they cannot use, in the words of Go's.
//!
//! The functions themselves are `kube-cel`'s; it has words of its own for what is wrong. Arguments
//! are looked at before a call; whatever is not complained of here is left to the function.

mod address;
mod pattern;
mod template;
mod url;
mod version;

use kube_cel::cel::Value;

use super::operators::NO_OVERLOAD;

/// Whether a text is no regular expression.
pub(super) fn is_no_pattern(text: &str) -> bool {
    pattern::of(text).is_some()
}

/// What is wrong with the arguments of a call.
pub(super) fn about(name: &str, given: &[Value]) -> Option<String> {
    match (name, given) {
        ("ip" | "ip.isCanonical", [Value::String(text)]) => address::of_ip(text),
        ("cidr", [Value::String(text)]) | ("containsCIDR", [_, Value::String(text)]) => {
            address::of_cidr(text)
        }
        ("containsIP", [_, Value::String(text)]) => {
            address::of_ip(text).map(|_| NO_OVERLOAD.to_owned())
        }
        ("url", [Value::String(text)]) => url::of(text).map(|why| {
            format!("URL parse error during conversion from string: parse {text:?}: {why}")
        }),
        ("semver", [Value::String(text)]) => version::of(text),
        ("matches", [Value::String(_), Value::String(pattern)]) => pattern::of(pattern),
        ("find" | "findAll", [Value::String(_), Value::String(pattern), ..]) => {
            pattern::of(pattern).map(|why| format!("Illegal regex: {why}"))
        }
        ("format", [Value::String(text), Value::List(arguments)]) => template::of(text, arguments),
        ("min" | "max", [Value::List(items)]) if items.is_empty() => {
            Some(format!("{name} called on empty list"))
        }
        ("indexOf" | "lastIndexOf", [_, _, Value::Int(at)]) if *at < 0 => {
            Some(format!("index out of range: {at}"))
        }
        ("charAt" | "substring", [Value::String(text), Value::Int(at)]) => {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            (*at < 0 || *at > length).then(|| format!("index out of range: {at}"))
        }
        ("substring", [Value::String(text), Value::Int(from), Value::Int(to)]) => {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            if from > to {
                return Some(format!("invalid substring range. start: {from}, end: {to}"));
            }
            let outside = [from, to].into_iter().find(|at| **at < 0 || **at > length);
            outside.map(|at| format!("index out of range: {at}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kube_cel::cel::Value;

    use super::about;
    use crate::values::string;

    /// As kube-apiserver 1.36.4 answered.
    #[test]
    fn libraries_complain_in_the_words_of_go() {
        let parse = "URL parse error during conversion from string: parse";
        let range = "network address parse error during conversion from string";
        let cases = [
            ("ip", "1.2.3.4", None),
            ("ip", "::1", None),
            ("ip", "1::2:3", None),
            (
                "ip",
                "1.2.3",
                Some(
                    "IP Address \"1.2.3\" parse error during conversion from string: \
                                  ParseAddr(\"1.2.3\"): IPv4 address too short"
                        .to_owned(),
                ),
            ),
            (
                "ip",
                "fe80::1%eth0",
                Some("IP address \"fe80::1%eth0\" with zone value is not allowed".to_owned()),
            ),
            (
                "cidr",
                "10.0.0.0/08",
                Some(format!(
                    "{range}: {range}: netip.ParsePrefix(\"10.0.0.0/08\"): bad bits after slash: \"08\""
                )),
            ),
            ("url", "http://a:80/b?c#d", None),
            ("url", "mailto:x", None),
            ("url", "x", Some(format!("{parse} \"x\": invalid URI for request"))),
            ("url", "http://[::1", Some(format!("{parse} \"http://[::1\": missing ']' in host"))),
            ("semver", "1.2.3-a.1+b", None),
            (
                "semver",
                "01.2.3",
                Some("Major number must not contain leading zeroes \"01\"".to_owned()),
            ),
        ];
        for (name, text, expected) in cases {
            assert_eq!(about(name, &[string(text)]), expected, "{name}({text})");
        }
        let regex = [
            ("a*?b+", None),
            ("[]a]", None),
            ("(", Some("error parsing regexp: missing closing ): `(`")),
            ("a**", Some("error parsing regexp: invalid nested repetition operator: `**`")),
            ("[z-a]", Some("error parsing regexp: invalid character class range: `z-a`")),
        ];
        for (pattern, expected) in regex {
            let found = about("matches", &[string("a"), string(pattern)]);
            assert_eq!(found.as_deref(), expected, "{pattern}");
        }
        let list = |items: Vec<Value>| Value::List(items.into());
        let format = |text: &str, items| about("format", &[string(text), list(items)]);
        assert_eq!(format("%d%%", vec![Value::Int(1)]), None);
        assert_eq!(format("%s %s", vec![string("a")]).as_deref(), Some("index 1 out of range"));
    }
}
