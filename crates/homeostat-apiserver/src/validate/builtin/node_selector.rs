//! Which nodes something is for: the terms of a node selector.

use serde_json::Value;

use super::report::{Report, list, text};
use crate::validate::name;

const NO_OPERATOR: &str = "not a valid selector operator";

/// A `NodeSelector`.
pub(super) fn node_selector(selector: &Value, path: &str, report: &mut Report) {
    let path = format!("{path}.nodeSelectorTerms");
    let terms = list(selector, "/nodeSelectorTerms");
    if terms.is_empty() {
        report.required(path.as_str(), "must have at least one node selector term");
    }
    for (index, found) in terms.iter().enumerate() {
        term(found, &format!("{path}[{index}]"), true, report);
    }
}

/// A term that only says what is liked; labels may have any value there.
pub(super) fn preference(preference: &Value, path: &str, report: &mut Report) {
    term(preference, path, false, report);
}

fn term(term: &Value, path: &str, is_strict: bool, report: &mut Report) {
    for (index, requirement) in list(term, "/matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        label(requirement, &path, report);
        for (index, value) in list(requirement, "/values").iter().enumerate() {
            let value = value.as_str().filter(|_| is_strict).unwrap_or_default();
            report.problems(&format!("{path}.values[{index}]"), value, name::label_value);
        }
    }
    for (index, requirement) in list(term, "/matchFields").iter().enumerate() {
        by_field(requirement, &format!("{path}.matchFields[{index}]"), report);
    }
}

/// A requirement on the labels of a node.
fn label(requirement: &Value, path: &str, report: &mut Report) {
    let (key, values) = (text(requirement, "/key"), list(requirement, "/values"));
    let place = format!("{path}.values");
    match text(requirement, "/operator") {
        "In" | "NotIn" if values.is_empty() => {
            report.required(place.as_str(), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            report.forbidden(place.as_str(), why);
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            report.required(place.as_str(), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => report.invalid(format!("{path}.operator"), other, NO_OPERATOR),
    }
    for problem in name::qualified(key) {
        report.invalid(format!("{path}.key"), key, problem);
    }
}

/// A requirement on a field of a node, of which only the name can be asked for.
fn by_field(requirement: &Value, path: &str, report: &mut Report) {
    let (key, values) = (text(requirement, "/key"), list(requirement, "/values"));
    match text(requirement, "/operator") {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field \
                       selector";
            report.required(format!("{path}.values"), why);
        }
        other => report.invalid(format!("{path}.operator"), other, NO_OPERATOR),
    }
    if key != "metadata.name" {
        report.invalid(format!("{path}.key"), key, "not a valid field selector key");
        return;
    }
    for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
        for problem in name::dns_subdomain(value) {
            report.invalid(format!("{path}.values[{index}]"), value, problem);
        }
    }
}
