//! When a container is started again: its own policy, and rules for its exit codes.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::items;

const MOST_RULES: usize = 20;
const MOST_CODES: usize = 255;

pub(super) fn policy(container: &Value, place: &Place<'_>, report: &mut Report) {
    let (policy, rules) = (at(container, "/restartPolicy"), items(container, "restartPolicyRules"));
    let place_of_policy = place.field("restartPolicy");
    if policy.is_null() && !rules.is_empty() {
        let why = "must specify restartPolicy when restart rules are used";
        report.required(place_of_policy, why);
        if !is_regular(place) {
            return;
        }
    }
    report.known(&place_of_policy, policy, &["Always", "Never", "OnFailure"]);
    let place = place.field("restartPolicyRules");
    if rules.len() > MOST_RULES {
        report.too_many(place, rules.len(), MOST_RULES);
    }
    for (index, found) in rules.iter().enumerate() {
        rule(found, &place.item(index), report);
    }
}

/// Whether the container is none of those that run first, whose rules are not looked at without a
/// policy.
fn is_regular(place: &Place<'_>) -> bool {
    matches!(place, Place::Item(Place::Field(_, "containers"), _))
}

fn rule(rule: &Value, place: &Place<'_>, report: &mut Report) {
    let action = text(rule, "/action");
    let actions = ["Restart", "RestartAllContainers"];
    if !actions.contains(&action) {
        report.unsupported(&place.field("action"), &action.into(), &actions);
    }
    let place = place.field("exitCodes");
    let Some(codes) = rule.get("exitCodes") else {
        report.required(place, "must be specified");
        return;
    };
    let operator = text(codes, "/operator");
    if !matches!(operator, "In" | "NotIn") {
        report.unsupported(&place.field("operator"), &operator.into(), &["In", "NotIn"]);
    }
    let values = items(codes, "values");
    if values.len() > MOST_CODES {
        report.too_many(place.field("values"), values.len(), MOST_CODES);
    }
}
