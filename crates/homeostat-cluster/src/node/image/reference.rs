//! Whether a text can name an image, by the grammar that container runtimes share:
//! `[registry[:port]/]path[/path…][:tag][@digest]`. Pure; whether there is such an image is for the
//! catalogue to say.

/// The longest name, without tag and digest.
const LONGEST_NAME: usize = 255;
const LONGEST_TAG: usize = 128;
/// Of the digits of a digest.
const SHORTEST_DIGEST: usize = 32;

/// Why a text names no image; `None` when it may.
pub(super) fn fault(reference: &str) -> Option<String> {
    let (rest, digest) = match reference.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (reference, None),
    };
    if let Some(digest) = digest.filter(|digest| !is_digest(digest)) {
        return Some(format!("{digest:?} is no digest"));
    }
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
        return Some(format!("{tag:?} is no tag"));
    }
    let (registry, path) = match name.split_once('/') {
        Some((first, path)) if is_meant_as_registry(first) => (Some(first), path),
        _ => (None, name),
    };
    if let Some(registry) = registry.filter(|registry| !is_registry(registry)) {
        return Some(format!("{registry:?} is no registry"));
    }
    if path.chars().any(|c| c.is_ascii_uppercase()) {
        return Some(format!("{path:?} must be lowercase"));
    }
    if name.len() > LONGEST_NAME {
        return Some(format!("it is longer than {LONGEST_NAME} characters"));
    }
    let wrong = path.split('/').find(|part| !is_path(part))?;
    Some(if wrong.is_empty() {
        "a part of it is empty".to_owned()
    } else {
        format!("{wrong:?} is no part of a name")
    })
}

fn is_meant_as_registry(first: &str) -> bool {
    first == "localhost"
        || first.contains(['.', ':'])
        || first.chars().any(|c| c.is_ascii_uppercase())
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_number = |port: &str| !port.is_empty() && port.chars().all(|c| c.is_ascii_digit());
    let inner = |label: &str| label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let ends = |label: &str| {
        let is_end = |c: char| c.is_ascii_alphanumeric();
        label.starts_with(is_end) && label.ends_with(is_end)
    };
    let is_v6 = |host: &str| {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        address.is_some_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
    };
    let is_host = is_v6(host) || host.split('.').all(|label| inner(label) && ends(label));
    is_host && port.is_none_or(is_number)
}

/// Lowercase letters and digits, with `.`, `_`, `__` or dashes between them.
fn is_path(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut between = part.split(is_word);
    let (first, last) = (between.next(), between.next_back());
    let is_separator =
        |text: &str| matches!(text, "" | "." | "_" | "__") || text.chars().all(|c| c == '-');
    // Without a word there is one piece, the whole.
    first == Some("") && last == Some("") && between.all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.starts_with(is_word)
        && tag.len() <= LONGEST_TAG
        && tag.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

/// `sha256:` and at least 32 hexadecimal digits.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, digits)) = digest.split_once(':') else { return false };
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.chars().all(|c| c.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_name)
        && digits.len() >= SHORTEST_DIGEST
        && digits.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn every_usual_way_to_name_an_image_is_one() {
        let digest = format!("app@sha256:{}", "0".repeat(64));
        let digests = [digest.as_str(), &digest.replace("app", "app:1")];
        for name in [
            "busybox",
            "busybox:1.36",
            "docker.io/library/busybox",
            "localhost/x",
            "localhost:5000/thing",
            "Registry.example:443/a/b-c__d.e:V1_2.3-rc",
            "[::1]:5000/x",
            "homeostat.dev/hello:404",
            "a--b/c",
        ]
        .into_iter()
        .chain(digests)
        {
            assert_eq!(fault(name), None, "{name}");
        }
    }

    #[test]
    fn what_names_no_image_is_told_by_its_part() {
        for (name, part) in [
            ("BusyBox", "lowercase"),
            ("docker.io/Team/app", "lowercase"),
            ("busybox:", "tag"),
            ("busybox:-1", "tag"),
            ("busybox:1.36:2", "no part of a name"),
            ("busybox@sha256:abc", "digest"),
            ("reg_istry.example/app", "registry"),
            ("a//b", "empty"),
            ("", "empty"),
            ("bad image", "no part of a name"),
            ("http://example.com/app", "registry"),
            ("a___b", "no part of a name"),
            ("-a", "no part of a name"),
        ] {
            let why = fault(name).unwrap_or_default();
            assert!(why.contains(part), "{name}: {why:?}");
        }
    }
}
