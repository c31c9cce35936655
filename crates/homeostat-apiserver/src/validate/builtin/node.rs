//! Nodes: taints, ranges of addresses, what they say they have, and what stays once it is known.

use serde_json::Value;

use super::report::{Report, at, entries, list, text};
use super::resources;
use crate::field::{FieldError, Reason};
use crate::go::internal;
use crate::validate::{ip, name};

/// The longest name of a feature that a node declares.
const LONGEST_FEATURE: usize = 253;

pub(super) fn node(value: &Value, old: Option<&Value>, report: &mut Report) {
    taints(value, report);
    status(value, report);
    if old.is_none() {
        swap(value, report);
    }
    ranges(value, report);
}

fn taints(value: &Value, report: &mut Report) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in list(value, "/spec/taints").iter().enumerate() {
        let path = format!("metadata.taints[{index}]");
        let (key, effect) = (text(taint, "/key"), text(taint, "/effect"));
        for problem in name::qualified(key) {
            report.invalid(format!("{path}.key"), key, problem);
        }
        let given = text(taint, "/value");
        let problems = name::label_value(given);
        if !problems.is_empty() {
            report.invalid(format!("{path}.value"), given, problems.join(";"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        report.one_of(&format!("{path}.effect"), effect, &effects);
        if seen.contains(&(key, effect)) {
            let shown = internal::form("io.k8s.api.core.v1.Taint", taint);
            let detail = "taints must be unique by key and effect pair";
            report.errors.push(FieldError::new(path, Reason::Duplicate, shown, detail));
        }
        seen.push((key, effect));
    }
}

fn ranges(value: &Value, report: &mut Report) {
    let ranges = list(value, "/spec/podCIDRs");
    for (index, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or_default();
        if let Some(problem) = ip::range_problem(range) {
            report.invalid(format!("spec.podCIDRs[{index}]"), range, problem);
        }
    }
    let family = |range: &Value| ip::Range::generous(range.as_str()?).map(ip::Range::is_six);
    let apart = ranges.len() == 2 && family(&ranges[0]) != family(&ranges[1]);
    if ranges.len() > 1 && !apart && ranges.iter().all(|range| family(range).is_some()) {
        let detail = "may specify no more than one CIDR for each IP family";
        report.invalid("spec.podCIDRs", ranges.to_vec(), detail);
    }
}

/// What a node says it has, in what amounts, and what it can do.
fn status(value: &Value, report: &mut Report) {
    for field in ["capacity", "allocatable"] {
        for (name, amount) in entries(value, &format!("/status/{field}")) {
            resources::amount(name, amount, &format!("status.{field}.{name}"), report);
        }
    }
    let features = list(value, "/status/declaredFeatures");
    for (index, given) in features.iter().enumerate() {
        let (path, feature) =
            (format!("status.declaredFeatures[{index}]"), given.as_str().unwrap_or_default());
        if let Some(problem) = feature_problem(feature) {
            let why = format!("invalid feature name {feature:?}: {problem}");
            report.invalid(path.as_str(), feature, why);
        }
        match index.checked_sub(1).map(|before| features[before].as_str().unwrap_or_default()) {
            Some(before) if before == feature => report.duplicate(path, feature),
            Some(before) if before > feature => {
                report.invalid(path, feature, "list must be sorted alphabetically");
            }
            _ => {}
        }
    }
}

fn feature_problem(feature: &str) -> Option<String> {
    if feature.len() > LONGEST_FEATURE {
        return Some(format!("must be no more than {LONGEST_FEATURE} characters"));
    }
    let mut parts = feature.split('/');
    let is_word = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && part.chars().all(|letter| letter.is_ascii_alphanumeric())
    };
    let is_upper = |part: &str| part.starts_with(|letter: char| letter.is_ascii_uppercase());
    let begins = parts.next().is_some_and(|first| is_upper(first) && is_word(first));
    (!begins || !parts.all(is_word)).then(|| {
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., \
         MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            .to_owned()
    })
}

fn swap(value: &Value, report: &mut Report) {
    if let Some(bytes) = at(value, "/status/nodeInfo/swap/capacity").as_i64().filter(|n| *n <= 0) {
        // Told under the metadata.
        report.invalid("metadata.nodeSwapStatus.capacity", bytes, "must be greater than zero");
    }
}

/// What every update of a node must keep to, through whichever part.
pub(super) fn update(value: &Value, old: &Value, report: &mut Report) {
    status(value, report);
    let addresses = list(value, "/status/addresses");
    for (index, address) in addresses.iter().enumerate() {
        if addresses[..index].contains(address) {
            let shown = internal::form("io.k8s.api.core.v1.NodeAddress", address);
            report.duplicate(format!("status.addresses[{index}]"), shown);
        }
    }
    let (before, after) = (list(old, "/spec/podCIDRs"), list(value, "/spec/podCIDRs"));
    let changes = match before.len() {
        0 => 0,
        count if count != after.len() => 1,
        _ => before.iter().zip(after).filter(|(before, after)| before != after).count(),
    };
    for _ in 0..changes {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        report.forbidden("spec.podCIDRs", detail);
    }
    let provider = text(old, "/spec/providerID");
    if !provider.is_empty() && provider != text(value, "/spec/providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        report.forbidden("spec.providerID", detail);
    }
    taints(value, report);
    if text(old, "/spec/externalID") != text(value, "/spec/externalID") {
        report.forbidden("spec.externalID", "may not be updated");
    }
}
