//! Where a Pod would like to run: near nodes and other Pods, or far from them.

use serde_json::Value;

use super::super::node_selector;
use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::spread::label_keys;
use super::{items, selector};
use crate::validate::name;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn affinity(affinity: &Value, place: &Place<'_>, report: &mut Report) {
    if let Some(nodes) = affinity.get("nodeAffinity") {
        let place = place.field("nodeAffinity");
        if let Some(required) = nodes.get(REQUIRED) {
            let path = place.field(REQUIRED).to_string();
            node_selector::node_selector(required, &path, report);
        }
        let place = place.field(PREFERRED);
        for (index, term) in items(nodes, PREFERRED).iter().enumerate() {
            let place = place.item(index);
            weight(term, &place, report);
            let path = place.field("preference").to_string();
            node_selector::preference(at(term, "/preference"), &path, report);
        }
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.get(field) else { continue };
        let place = place.field(field);
        let terms = place.field(REQUIRED);
        for (index, found) in items(pods, REQUIRED).iter().enumerate() {
            term(found, &terms.item(index), report);
        }
        let terms = place.field(PREFERRED);
        for (index, found) in items(pods, PREFERRED).iter().enumerate() {
            let place = terms.item(index);
            weight(found, &place, report);
            term(at(found, "/podAffinityTerm"), &place.field("podAffinityTerm"), report);
        }
    }
}

fn weight(term: &Value, place: &Place<'_>, report: &mut Report) {
    let weight = at(term, "/weight").as_i64().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        report.invalid(place.field("weight"), weight, "must be in the range 1-100");
    }
}

fn term(term: &Value, place: &Place<'_>, report: &mut Report) {
    for field in ["labelSelector", "namespaceSelector"] {
        if let Some(found) = term.get(field) {
            selector(found, &place.field(field), report);
        }
    }
    for namespace in items(term, "namespaces").iter().filter_map(Value::as_str) {
        report.problems(&place.field("namespace"), namespace, name::dns_label);
    }
    label_keys(term, place, report);
    let key = text(term, "/topologyKey");
    if key.is_empty() {
        report.required(place.field("topologyKey"), "can not be empty");
    }
    report.problems(&place.field("topologyKey"), key, name::qualified);
}
