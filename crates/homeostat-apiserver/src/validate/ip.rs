//! Addresses and ranges of addresses as users write them.
//!
//! Fields that are older than the rules were read generously: numbers of an IPv4 address may begin
//! with zeros, an IPv4 address may be written as an IPv6 one, a range may name an address in it.
//! Those are read here, too, so that it can be said what is wrong with them. Nothing is resolved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Said of what is no address at all.
const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An address in any form that was ever accepted.
pub(crate) fn generous(text: &str) -> Option<IpAddr> {
    if !text.contains(':') {
        return four(text).map(IpAddr::V4);
    }
    let (head, tail) = match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => (format!("{head}:"), four(tail)?.to_string()),
        _ => (text.to_owned(), String::new()),
    };
    let groups: Vec<&str> = head.split(':').map(without_zeros).collect();
    format!("{}{tail}", groups.join(":")).parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

fn four(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').map(without_zeros).collect();
    parts.join(".").parse().ok()
}

/// A number without the zeros it begins with.
fn without_zeros(number: &str) -> &str {
    match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0",
        rest => rest,
    }
}

/// The IPv4 address that is written as an IPv6 one.
fn mapped(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(six) => six.to_ipv4_mapped(),
    }
}

/// The address in its shortest form, the family that it belongs to in fact.
fn canonical(address: IpAddr) -> IpAddr {
    mapped(address).map_or(address, IpAddr::V4)
}

/// Whether it is an IPv6 address, and not an IPv4 one in disguise.
pub(crate) fn is_six(text: &str) -> bool {
    generous(text).is_some_and(|address| canonical(address).is_ipv6())
}

/// What is wrong with an address in a field that is older than the rules.
pub(crate) fn problem(text: &str) -> Option<&'static str> {
    match (generous(text), text.parse::<IpAddr>()) {
        (None, _) => Some(NO_ADDRESS),
        (_, Err(_)) => Some("must not have leading 0s"),
        (_, Ok(address)) => mapped(address).map(|_| "must not be an IPv4-mapped IPv6 address"),
    }
}

/// What is wrong with an address in a field that is as old as the rules.
pub(crate) fn strict_problem(text: &str) -> Option<String> {
    let shown = generous(text).map(|address| address.to_string());
    match (problem(text), shown) {
        (Some(problem), _) => Some(problem.to_owned()),
        (None, Some(shown)) if shown != text => {
            Some(format!("must be in canonical form ({shown:?})"))
        }
        _ => None,
    }
}

/// What a client is told about an address that is accepted.
pub(crate) fn warning(path: &str, text: &str) -> Option<String> {
    let address = generous(text)?;
    let shown = canonical(address).to_string();
    if problem(text).is_some() {
        return Some(format!("{path}: non-standard IP address {text:?} is invalid: use {shown:?}"));
    }
    (shown != text).then(|| {
        format!("{path}: IPv6 address {text:?} should be in RFC 5952 canonical format ({shown:?})")
    })
}

/// Addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    /// The address that is named, which may lie in the middle.
    address: IpAddr,
    length: u32,
}

impl Range {
    /// A range in any form that was ever accepted.
    pub(crate) fn generous(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address = generous(address)?;
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = digits.then(|| without_zeros(length).parse().ok()).flatten()?;
        (length <= width(address)).then_some(Self { address, length })
    }

    /// Whether it is written as ranges are to be.
    fn is_standard(text: &str) -> bool {
        let (address, length) = text.split_once('/').unwrap_or((text, ""));
        address.parse::<IpAddr>().is_ok() && without_zeros(length) == length
    }

    /// The same range by its first address.
    fn whole(self) -> Self {
        Self { address: first(self.address, self.length), ..self }
    }

    /// Whether it is of IPv6.
    pub(crate) fn is_six(self) -> bool {
        canonical(self.address).is_ipv6()
    }

    /// Whether all of `part` is in here, and not all of this in `part`.
    pub(crate) fn holds(self, part: Self) -> bool {
        width(self.address) == width(part.address)
            && self.whole().address == first(part.address, self.length)
            && self.length < part.length
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match mapped(self.address) {
            Some(four) if self.length >= 96 => write!(f, "{four}/{}", self.length - 96),
            _ => write!(f, "{}/{}", self.address, self.length),
        }
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first address of the range of this length that the address is in.
fn first(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(four) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Ipv4Addr::from_bits(four.to_bits() & mask).into()
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            Ipv6Addr::from_bits(six.to_bits() & mask).into()
        }
    }
}

/// What is wrong with a range in a field that is older than the rules.
pub(crate) fn range_problem(text: &str) -> Option<&'static str> {
    let Some(range) = Range::generous(text) else { return Some(NO_RANGE) };
    if !Range::is_standard(text) {
        return Some("must not have leading 0s in IP or prefix length");
    }
    if mapped(range.address).is_some() {
        return Some("must not have an IPv4-mapped IPv6 address");
    }
    (range != range.whole()).then_some("must not have bits set beyond the prefix length")
}

/// What is wrong with a range in a field that is as old as the rules.
pub(crate) fn strict_range_problem(text: &str) -> Option<String> {
    if let Some(problem) = range_problem(text) {
        return Some(problem.to_owned());
    }
    let shown = Range::generous(text).map(|range| range.to_string()).filter(|shown| shown != text);
    shown.map(|shown| format!("must be in canonical form ({shown:?})"))
}

/// What is wrong with an address of an interface, which says how long its network's prefix is.
pub(crate) fn interface_problem(text: &str) -> Option<String> {
    let Some(range) = Range::generous(text) else {
        let words = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return Some(words.to_owned());
    };
    let shown = range.to_string();
    (shown != text).then(|| format!("must be in canonical form ({shown:?})"))
}

/// What a client is told about a range that is accepted.
pub(crate) fn range_warnings(path: &str, text: &str) -> Vec<String> {
    let Some(range) = Range::generous(text) else { return Vec::new() };
    let mut warnings = Vec::new();
    let shown = range.whole().to_string();
    if range != range.whole() {
        let single = format!("{}/{}", canonical(range.address), width(range.address));
        warnings.push(format!(
            "{path}: CIDR value {text:?} is ambiguous in this context (should be {shown:?} or \
             {single:?}?)"
        ));
    }
    if !Range::is_standard(text) || mapped(range.address).is_some() {
        warnings
            .push(format!("{path}: non-standard CIDR value {text:?} is invalid: use {shown:?}"));
    }
    if warnings.is_empty() && shown != text {
        warnings.push(format!(
            "{path}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({shown:?})"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::{problem, range_problem, range_warnings, warning};

    #[test]
    fn addresses_are_judged_by_their_form() {
        for (text, expected) in [
            ("10.0.0.1", None),
            ("::1", None),
            ("FE80:0:0::1", None),
            ("010.0.0.1", Some("must not have leading 0s")),
            ("::ffff:1.2.3.4", Some("must not be an IPv4-mapped IPv6 address")),
            ("1.2.3", Some(super::NO_ADDRESS)),
            ("fe80::1%eth0", Some(super::NO_ADDRESS)),
            ("1.2.3.256", Some(super::NO_ADDRESS)),
            ("", Some(super::NO_ADDRESS)),
        ] {
            assert_eq!(problem(text), expected, "{text}");
        }
        assert_eq!(
            warning("a", "::ffff:1.2.3.4").unwrap(),
            "a: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\""
        );
        assert!(warning("a", "FE80:0:0::1").unwrap().ends_with("format (\"fe80::1\")"));
    }

    #[test]
    fn ranges_are_judged_by_their_form() {
        for (text, expected) in [
            ("10.0.0.0/8", None),
            ("0.0.0.0/0", None),
            ("10.0.0.1/8", Some("must not have bits set beyond the prefix length")),
            ("10.0.0.0/08", Some("must not have leading 0s in IP or prefix length")),
            ("::ffff:1.2.3.0/120", Some("must not have an IPv4-mapped IPv6 address")),
            ("10.0.0.0/33", Some(super::NO_RANGE)),
            ("10.0.0.0/+8", Some(super::NO_RANGE)),
        ] {
            assert_eq!(range_problem(text), expected, "{text}");
        }
        assert_eq!(
            range_warnings("a", "010.1.1.1/8"),
            [
                "a: CIDR value \"010.1.1.1/8\" is ambiguous in this context (should be \
                 \"10.0.0.0/8\" or \"10.1.1.1/32\"?)",
                "a: non-standard CIDR value \"010.1.1.1/8\" is invalid: use \"10.0.0.0/8\"",
            ]
        );
        assert!(range_warnings("a", "::ffff:1.2.3.0/120")[0].ends_with("use \"1.2.3.0/24\""));
    }
}
