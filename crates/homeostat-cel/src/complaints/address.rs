//! Addresses and ranges of addresses.

/// What is wrong with an address as an argument.
pub(super) fn of_ip(text: &str) -> Option<String> {
    if let Err(why) = read(text) {
        return Some(format!(
            "IP Address {text:?} parse error during conversion from string: {why}"
        ));
    }
    if text.contains('%') {
        return Some(format!("IP address {text:?} with zone value is not allowed"));
    }
    is_mapped(text).then(|| format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
}

/// What is wrong with a range as an argument.
pub(super) fn of_cidr(text: &str) -> Option<String> {
    const BEGIN: &str = "network address parse error during conversion from string";
    if let Err(why) = read_range(text) {
        return Some(format!("{BEGIN}: {BEGIN}: netip.ParsePrefix({text:?}): {why}"));
    }
    let address = text.rsplit_once('/').map_or(text, |(address, _)| address);
    is_mapped(address).then(|| format!("{BEGIN}: IPv4-mapped IPv6 address {text:?} is not allowed"))
}

fn is_mapped(text: &str) -> bool {
    text.parse::<std::net::Ipv6Addr>().is_ok_and(|six| six.to_ipv4_mapped().is_some())
}

/// Reads an address; a zone may follow it.
fn read(text: &str) -> Result<(), String> {
    let found = match text.find(['.', ':', '%']).map(|at| &text[at..=at]) {
        Some(".") => four(text),
        Some(":") => six(text),
        Some(_) => Err("missing IPv6 address".to_owned()),
        None => Err("unable to parse IP".to_owned()),
    };
    found.map_err(|why| format!("ParseAddr({text:?}): {why}"))
}

fn read_range(text: &str) -> Result<(), String> {
    let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    read(address)?;
    if address.contains('%') {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let plain = bits.bytes().all(|byte| byte.is_ascii_digit())
        && (bits.len() == 1 || bits.starts_with(|first| ('1'..='9').contains(&first)));
    let most = if address.contains(':') { 128 } else { 32 };
    match bits.parse::<u64>().ok().filter(|_| plain) {
        None => Err(format!("bad bits after slash: {bits:?}")),
        Some(bits) if bits > most => Err("prefix length out of range".to_owned()),
        Some(_) => Ok(()),
    }
}

/// Words with the place they are about.
fn at(why: &str, rest: &str) -> String {
    format!("{why} (at {rest:?})")
}

fn four(text: &str) -> Result<(), String> {
    let (mut value, mut digits, mut dots) = (0_u32, 0, 0);
    for (index, character) in text.char_indices() {
        match character.to_digit(10) {
            Some(_) if digits == 1 && value == 0 => {
                return Err("IPv4 field has octet with leading zero".to_owned());
            }
            Some(digit) => {
                value = value * 10 + digit;
                digits += 1;
                if value > 255 {
                    return Err("IPv4 field has value >255".to_owned());
                }
            }
            None if character != '.' => return Err(at("unexpected character", &text[index..])),
            None if digits == 0 || index + 1 == text.len() => {
                return Err(at("IPv4 field must have at least one digit", &text[index..]));
            }
            None if dots == 3 => return Err("IPv4 address too long".to_owned()),
            None => (value, digits, dots) = (0, 0, dots + 1),
        }
    }
    if dots < 3 { Err("IPv4 address too short".to_owned()) } else { Ok(()) }
}

/// Reads groups of hexadecimal digits, of which one row of zeros may be left out.
fn six(text: &str) -> Result<(), String> {
    let mut rest = match text.split_once('%') {
        Some((_, "")) => return Err("zone must be a non-empty string".to_owned()),
        Some((address, _)) => address,
        None => text,
    };
    let mut gap = false;
    if let Some(after) = rest.strip_prefix("::") {
        (gap, rest) = (true, after);
        if rest.is_empty() {
            return Ok(());
        }
    }
    let mut groups = 0;
    while groups < 8 {
        let digits = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        if digits > 4 {
            return Err(at("each group must have 4 or less digits", rest));
        }
        if digits == 0 {
            return Err(at("each colon-separated field must have at least one digit", rest));
        }
        if rest[digits..].starts_with('.') {
            if !gap && groups != 6 {
                let why = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err(at(why, rest));
            }
            if groups > 6 {
                let why = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err(at(why, rest));
            }
            four(rest)?;
            (rest, groups) = ("", groups + 2);
            break;
        }
        groups += 1;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(at("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(at("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap {
                return Err(at("multiple :: in address", rest));
            }
            (gap, rest) = (true, after);
            if rest.is_empty() {
                break;
            }
        }
    }
    match (rest, groups < 8, gap) {
        ("", true, false) => Err("address string too short".to_owned()),
        ("", false, true) => Err("the :: must expand to at least one field of zeros".to_owned()),
        ("", ..) => Ok(()),
        (rest, ..) => Err(at("trailing garbage after address", rest)),
    }
}
