//! The names of events: they begin with the name of what they are about, so that people find them,
//! unless the API would refuse such a name. Pure.

use k8s_openapi::api::core::v1::ObjectReference;

/// The API allows no longer names.
const LONGEST: usize = 253;
/// Nor longer names of field managers.
const LONGEST_MANAGER: usize = 128;
/// Nor longer qualified names, without their domain.
const LONGEST_WORD: usize = 63;

/// A name for an event about `regarding`, told apart from others by `number`. An object whose name
/// is none for an event (roles may have colons, long names leave no room) lends it its uid.
pub(super) fn of(regarding: &ObjectReference, number: &str) -> String {
    let stems = [&regarding.name, &regarding.uid];
    let fits = |stem: &&str| is_subdomain(stem) && stem.len() + 1 + number.len() <= LONGEST;
    let stem = stems.into_iter().flatten().map(String::as_str).find(fits);
    format!("{}.{number}", stem.unwrap_or("unknown"))
}

/// Whether events may name it as who reports them: a qualified name, as keys of labels are; and short
/// enough for a field manager.
pub(crate) fn is_reporter(name: &str) -> bool {
    let (domain, word) = match name.split_once('/') {
        Some((domain, word)) => (Some(domain), word),
        None => (None, name),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let outer = [word.bytes().next(), word.bytes().last()];
    name.len() <= LONGEST_MANAGER
        && word.len() <= LONGEST_WORD
        && word.bytes().all(plain)
        && outer.iter().all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && domain.is_none_or(is_subdomain)
}

/// Whether it is a DNS subdomain, as names of most kinds have to be.
fn is_subdomain(name: &str) -> bool {
    name.split('.').all(|label| {
        let plain = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        !label.is_empty()
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, uid: Option<&str>) -> String {
        let (name, uid) = (Some(name.to_owned()), uid.map(str::to_owned));
        of(&ObjectReference { name, uid, ..ObjectReference::default() }, "17")
    }

    #[test]
    fn a_name_that_an_event_cannot_have_gives_way_to_the_uid() {
        let (uid, long) = ("6c1e-0a", "x".repeat(251));
        assert_eq!(named("web-0.example", Some(uid)), "web-0.example.17");
        for odd in ["system:node", "Web", "-web", "web.", "web..a", "we_b", "", &long] {
            assert_eq!(named(odd, Some(uid)), "6c1e-0a.17", "{odd}");
        }
        assert_eq!(named(&long[1..], Some(uid)).len(), LONGEST);
        assert_eq!(named("system:node", None), "unknown.17");
        assert_eq!(named("system:node", Some("of:mine")), "unknown.17");
    }
}
