//! Locations, as a request line has them: with a scheme, or a path from the root.

/// What is wrong with the text.
pub(super) fn of(text: &str) -> Option<String> {
    parse(text).err()
}

fn parse(text: &str) -> Result<(), String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() {
        return Err("empty url".to_owned());
    }
    if text == "*" {
        return Ok(());
    }
    let (scheme, rest) = scheme(text)?;
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return if scheme.is_empty() { Err("invalid URI for request".to_owned()) } else { Ok(()) };
    }
    let mut path = rest;
    if let Some(after) = rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        let end = after.find('/').unwrap_or(after.len());
        authority(scheme, &after[..end])?;
        path = &after[end..];
    }
    escapes(path, false)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn authority(scheme: &str, text: &str) -> Result<(), String> {
    let Some((user, host)) = text.rsplit_once('@') else { return self::host(scheme, text) };
    self::host(scheme, host)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    user.splitn(2, ':').try_for_each(|part| escapes(part, false))
}

fn host(scheme: &str, host: &str) -> Result<(), String> {
    let port = match host.rfind('[') {
        Some(0) => {
            let end = host.rfind(']').ok_or("missing ']' in host")?;
            &host[end + 1..]
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        // Only schemes that have no such ports may have more colons than one.
        None if matches!(scheme.to_lowercase().as_str(), "http" | "https") => {
            host.find(':').map_or("", |at| &host[at..])
        }
        None => host.rfind(':').map_or("", |at| &host[at..]),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if !port.is_empty() && (digits == port || !digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(format!("invalid port {port:?} after host"));
    }
    escapes(host, true)
}

/// Characters by their numbers, which a host has for few.
fn escapes(text: &str, host: bool) -> Result<(), String> {
    let bytes = text.as_bytes();
    for (index, character) in text.char_indices() {
        if character == '%' {
            let digits = bytes.get(index + 1..index + 3);
            let good = digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
            let plain = digits.is_some_and(|digits| (b'0'..b'8').contains(&digits[0]));
            if !good || (host && plain && digits != Some(b"25")) {
                let shown: String = text[index..].chars().take(3).collect();
                return Err(format!("invalid URL escape {shown:?}"));
            }
        } else if host
            && character.is_ascii()
            && !character.is_ascii_alphanumeric()
            && !"-_.~!$&'()*+,;=:[]<>\"".contains(character)
        {
            let shown = character.to_string();
            return Err(format!("invalid character {shown:?} in host name"));
        }
    }
    Ok(())
}
