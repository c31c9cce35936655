//! PersistentVolumeClaims: what is asked for, and from which data.

use serde_json::Value;

use super::report::{Report, at, text};
use super::volume::{access_modes, class_name, volume_mode};
use super::volume_claim_change;
use super::workload::selector;
use crate::decode::Quantity;
use crate::validate::name;

pub(super) fn claim(value: &Value, old: Option<&Value>, report: &mut Report) {
    spec(at(value, "/spec"), "spec", report);
    if let Some(old) = old {
        volume_claim_change::check(value, old, report);
    }
}

/// The spec of a claim, wherever it is.
pub(super) fn spec(spec: &Value, path: &str, report: &mut Report) {
    access_modes(spec, path, "at least 1 access mode is required", report);
    if let Some(given) = spec.get("selector") {
        selector(given, &format!("{path}.selector"), report);
    }
    let size = text(spec, "/resources/requests/storage");
    match size.parse::<Quantity>() {
        Err(_) => report.required(format!("{path}.resources[storage]"), ""),
        Ok(amount) if amount.is_negative() || amount.is_zero() => {
            let path = format!("{path}.resources[storage]");
            report.invalid(path, size, "must be greater than zero");
        }
        Ok(_) => {}
    }
    class_name(spec, "storageClassName", path, report);
    volume_mode(spec, path, report);
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    if let Some(source) = source {
        data(source, &format!("{path}.dataSource"), report);
    }
    if let Some(reference) = reference {
        let path = format!("{path}.dataSourceRef");
        data(reference, &path, report);
        let space = text(reference, "/namespace");
        if !space.is_empty() {
            report.dns_label(&format!("{path}.namespace"), space);
        }
    }
    if let (Some(source), Some(reference)) = (source, reference) {
        let same = ["apiGroup", "kind", "name"]
            .iter()
            .all(|field| at(source, &format!("/{field}")) == at(reference, &format!("/{field}")));
        // What is shown there is an empty path in place of the value.
        if !text(reference, "/namespace").is_empty() {
            let why = "may not be specified when dataSourceRef.namespace is specified";
            report.invalid(path, Value::Object(serde_json::Map::new()), why);
        } else if !same {
            report.invalid(path, Value::Object(serde_json::Map::new()), "must match dataSourceRef");
        }
    }
    class_name(spec, "volumeAttributesClassName", path, report);
}

/// What a volume is filled with.
fn data(source: &Value, path: &str, report: &mut Report) {
    for field in ["name", "kind"] {
        if text(source, &format!("/{field}")).is_empty() {
            report.required(format!("{path}.{field}"), "");
        }
    }
    let (group, kind) = (text(source, "/apiGroup"), text(source, "/kind"));
    if !group.is_empty() {
        report.name(&format!("{path}.apiGroup"), group, name::dns_subdomain);
    } else if kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        report.invalid(path, kind, why);
    }
}
