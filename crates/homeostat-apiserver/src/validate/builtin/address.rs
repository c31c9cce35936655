//! IPAddresses and ServiceCIDRs.

use serde_json::{Value, json};

use super::report::{Report, at, list, text};
use crate::validate::{ip, name};

pub(super) fn ip_address(value: &Value, old: Option<&Value>, report: &mut Report) {
    let parent = at(value, "/spec/parentRef");
    report.immutable(value, old, "/spec/parentRef");
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
        _ => report.invalid("spec.cidrs", at(value, "/spec/cidrs").clone(), "field is immutable"),
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
        if let Some(problem) = ip::strict_range_problem(range) {
            report.invalid(format!("spec.cidrs[{index}]"), range, problem);
        }
    }
    let family = |range: &Value| ip::Range::generous(range.as_str()?).map(ip::Range::is_six);
    if let [one, two] = ranges
        && family(one).is_some()
        && family(one) == family(two)
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                      2001:db8::/64";
        report.invalid("spec.cidrs", ranges.to_vec(), detail);
    }
}
