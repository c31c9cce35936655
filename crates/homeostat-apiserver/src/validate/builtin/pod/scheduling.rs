//! What keeps a Pod from a node, or lets it stay there: gates and tolerations.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, text};
use super::items;
use crate::validate::name;

/// What must be true before the Pod is ready, and gone before it is scheduled.
pub(super) fn gates(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let gates = place.field("readinessGates");
    for (index, gate) in items(spec, "readinessGates").iter().enumerate() {
        let place = gates.item(index);
        let condition = text(gate, "/conditionType");
        report.problems(&place.field("conditionType"), condition, name::qualified);
    }
    let (place, gates) = (place.field("schedulingGates"), items(spec, "schedulingGates"));
    for (index, gate) in gates.iter().enumerate() {
        let (place, given) = (place.item(index), text(gate, "/name"));
        report.problems(&place, given, name::qualified);
        if gates[..index].iter().any(|other| text(other, "/name") == given) {
            report.duplicate(place, given);
        }
    }
}

pub(super) fn tolerations(spec: &Value, place: &Place<'_>, report: &mut Report) {
    for (index, found) in items(spec, "tolerations").iter().enumerate() {
        toleration(found, &place.item(index), report);
    }
}

fn toleration(toleration: &Value, place: &Place<'_>, report: &mut Report) {
    let (key, operator, value, effect) = (
        text(toleration, "/key"),
        text(toleration, "/operator"),
        text(toleration, "/value"),
        text(toleration, "/effect"),
    );
    let place_of_operator = place.field("operator");
    if !key.is_empty() {
        report.problems(&place.field("key"), key, name::qualified);
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and \
                   all keys\"";
        report.invalid(place_of_operator, operator, why);
    }
    if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        report.invalid(place.field("effect"), effect, why);
    }
    match operator {
        "" | "Equal" => {
            let problems = name::label_value(value);
            if !problems.is_empty() {
                report.invalid(place_of_operator, value, problems.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            report.invalid(place_of_operator, value, why);
        }
        "Exists" => {}
        // They are known, but nobody may use them yet.
        "Lt" | "Gt" => {
            let known = ["Equal", "Exists", "Lt", "Gt"];
            report.unsupported(&place_of_operator, &operator.into(), &known);
        }
        _ => report.unsupported(&place_of_operator, &operator.into(), &["Equal", "Exists"]),
    }
    if !effect.is_empty() {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        report.one_of(&place.field("effect"), effect, &effects);
    }
}
