//! IPAddresses and ServiceCIDRs.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::report::{Report, at, list, text};
use crate::validate::name;

pub(super) fn ip_address(value: &Value, old: Option<&Value>, report: &mut Report) {
    let parent = at(value, "/spec/parentRef");
    if let Some(old) = old {
        if at(old, "/spec/parentRef") != parent {
            let shown = json!({
                "Group": text(parent, "/group"),
                "Resource": text(parent, "/resource"),
                "Namespace": text(parent, "/namespace"),
                "Name": text(parent, "/name"),
            });
            report.invalid("spec.parentRef", shown, "field is immutable");
        }
        return;
    }
    if parent.is_null() {
        report.required("spec.parentRef", "");
        return;
    }
    let group = text(parent, "/group");
    if !group.is_empty() {
        report.name("spec.parentRef.group", group, name::dns_subdomain);
    }
    report.name("spec.parentRef.resource", text(parent, "/resource"), name::path_segment);
    report.name("spec.parentRef.name", text(parent, "/name"), name::path_segment);
    let namespace = text(parent, "/namespace");
    for problem in name::path_segment(namespace) {
        report.invalid("spec.parentRef.namespace", namespace, problem);
    }
}

pub(super) fn service_cidr(value: &Value, old: Option<&Value>, report: &mut Report) {
    let ranges = list(value, "/spec/cidrs");
    let Some(old) = old.map(|old| list(old, "/spec/cidrs")) else {
        cidrs(ranges, report);
        return;
    };
    match (old, ranges) {
        (old, new) if old.len() == new.len() => {
            for (index, (before, after)) in old.iter().zip(new).enumerate() {
                if before != after {
                    let path = format!("spec.cidrs[{index}]");
                    report.invalid(path, after.clone(), "field is immutable");
                }
            }
        }
        // One of the other family may be added.
        ([before], [first, _]) => {
            if before != first {
                report.invalid("spec.cidrs[0]", first.clone(), "field is immutable");
            }
            cidrs(ranges, report);
        }
        _ => report.invalid("spec.cidrs", ranges.to_vec(), "field is immutable"),
    }
}

fn cidrs(ranges: &[Value], report: &mut Report) {
    if ranges.is_empty() {
        report.required("spec.cidrs", "at least one CIDR required");
        return;
    }
    if ranges.len() > 2 {
        report.invalid("spec.cidrs", json!({"CIDRs": ranges}), "may only hold up to 2 values");
        return;
    }
    for (index, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or_default();
        if let Some(problem) = cidr(range) {
            report.invalid(format!("spec.cidrs[{index}]"), range, problem);
        }
    }
    let family = |range: &Value| {
        let (address, _) = range.as_str()?.split_once('/')?;
        Some(address.parse::<IpAddr>().ok()?.is_ipv4())
    };
    if let [one, two] = ranges
        && family(one).is_some()
        && family(one) == family(two)
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                      2001:db8::/64";
        report.invalid("spec.cidrs", ranges.to_vec(), detail);
    }
}

/// What is wrong with a range, if anything.
fn cidr(text: &str) -> Option<String> {
    const MALFORMED: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    // What only has too many zeros is told so.
    let plain = without_zeros(address);
    let (Ok(parsed), Ok(bits)) = (plain.parse::<IpAddr>(), length.parse::<u32>()) else {
        return Some(MALFORMED.to_owned());
    };
    let (number, width) = match parsed {
        IpAddr::V4(four) => (u128::from(u32::from(four)), 32),
        IpAddr::V6(six) => (u128::from(six), 128),
    };
    if bits > width {
        return Some(MALFORMED.to_owned());
    }
    if let IpAddr::V6(six) = parsed
        && six.to_ipv4_mapped().is_some()
    {
        return Some("must not have an IPv4-mapped IPv6 address".to_owned());
    }
    if plain != address || length != bits.to_string() {
        return Some("must not have leading 0s in IP or prefix length".to_owned());
    }
    let beyond = if bits == width { 0 } else { u128::MAX >> (128 - (width - bits)) };
    if number & beyond != 0 {
        return Some("must not have bits set beyond the prefix length".to_owned());
    }
    let canonical = format!("{parsed}/{bits}");
    (canonical != text).then(|| format!("must be in canonical form ({canonical:?})"))
}

/// An IPv4 address with the zeros that its numbers begin with taken away.
fn without_zeros(address: &str) -> String {
    if address.contains(':') {
        return address.to_owned();
    }
    let part = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    address.split('.').map(part).collect::<Vec<_>>().join(".")
}
