//! How evenly Pods are spread, and which labels of a Pod itself say which others are meant.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, entries, text};
use super::{items, selector};
use crate::validate::name;

pub(super) fn constraints(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let all = items(spec, "topologySpreadConstraints");
    for (index, found) in all.iter().enumerate() {
        constraint(found, &all[index + 1..], &place.item(index), report);
    }
}

fn constraint(constraint: &Value, rest: &[Value], place: &Place<'_>, report: &mut Report) {
    let skew = at(constraint, "/maxSkew").as_i64().unwrap_or_default();
    if skew <= 0 {
        report.invalid(place.field("maxSkew"), skew, "must be greater than zero");
    }
    let key_of =
        |constraint| (text(constraint, "/topologyKey"), text(constraint, "/whenUnsatisfiable"));
    let (key, action) = key_of(constraint);
    if key.is_empty() {
        report.required(place.field("topologyKey"), "can not be empty");
    }
    let actions = ["DoNotSchedule", "ScheduleAnyway"];
    if !actions.contains(&action) {
        report.unsupported(&place.field("whenUnsatisfiable"), &action.into(), &actions);
    }
    if rest.iter().any(|other| key_of(other) == (key, action)) {
        let place = place.field("{topologyKey, whenUnsatisfiable}");
        report.duplicate(place, format!("{{{key}, {action}}}"));
    }
    if let Some(domains) = at(constraint, "/minDomains").as_i64() {
        let place = place.field("minDomains");
        if domains <= 0 {
            report.invalid(place, domains, "must be greater than zero");
        }
        if action != "DoNotSchedule" {
            let why =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            report.invalid(place, domains, why);
        }
    }
    for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if let Some(policy) = constraint.get(field) {
            report.known(&place.field(field), policy, &["Honor", "Ignore"]);
        }
    }
    label_keys(constraint, place, report);
    selector(at(constraint, "/labelSelector"), &place.field("labelSelector"), report);
}

/// `matchLabelKeys` and `mismatchLabelKeys`, which say nothing without a selector, and nothing that
/// it says already.
pub(super) fn label_keys(holder: &Value, place: &Place<'_>, report: &mut Report) {
    let selector = holder.get("labelSelector");
    let (wanted, unwanted) = (items(holder, "matchLabelKeys"), items(holder, "mismatchLabelKeys"));
    for (field, keys) in [("matchLabelKeys", wanted), ("mismatchLabelKeys", unwanted)] {
        let place = place.field(field);
        if !keys.is_empty() && selector.is_none() {
            report.forbidden(place, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in keys.iter().filter_map(Value::as_str).enumerate() {
            report.problems(&place.item(index), key, name::qualified);
        }
    }
    if wanted.is_empty() {
        return;
    }
    if let Some(selector) = selector {
        let mut seen: Vec<&str> =
            entries(selector, "/matchLabels").map(|(key, _)| key.as_str()).collect();
        for rule in items(selector, "matchExpressions") {
            let key = text(rule, "/key");
            let index = wanted.iter().rposition(|wanted| wanted == key);
            if let Some(index) = index.filter(|_| seen.contains(&key)) {
                let why = "exists in both matchLabelKeys and labelSelector";
                report.invalid(place.item(index), key, why);
            }
            seen.push(key);
        }
    }
    let place = place.field("matchLabelKeys");
    for (index, key) in wanted.iter().enumerate().filter(|(_, key)| unwanted.contains(key)) {
        let why = "exists in both matchLabelKeys and mismatchLabelKeys";
        report.invalid(place.item(index), key.clone(), why);
    }
}
