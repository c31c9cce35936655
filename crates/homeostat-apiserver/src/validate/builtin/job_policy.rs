//! What a Job makes of Pods that fail or succeed: the policies of failure, success and replacement.

use serde_json::Value;

use super::job_indexes;
use super::report::{Report, at, list, text};
use crate::field::{FieldError, Reason};
use crate::go::internal::form;
use crate::validate::name;

const SUCCESS: &str = "io.k8s.api.batch.v1.SuccessPolicy";
const MOST_RULES: usize = 20;
const MOST_EXIT_CODES: usize = 255;
const LONGEST_INDEXES: usize = 64 * 1024;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: &[&str] = &["In", "NotIn"];
const STATES: &[&str] = &["False", "True", "Unknown"];

/// `podFailurePolicy`.
pub(super) fn failure(spec: &Value, path: &str, report: &mut Report) {
    let Some(policy) = spec.get("podFailurePolicy") else { return };
    let rules = list(policy, "/rules");
    let path = format!("{path}.podFailurePolicy.rules");
    not_too_many(rules, MOST_RULES, &path, report);
    let containers: Vec<&str> = ["/template/spec/containers", "/template/spec/initContainers"]
        .iter()
        .flat_map(|pointer| list(spec, pointer))
        .map(|container| text(container, "/name"))
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let (action, place) = (text(rule, "/action"), format!("{path}.action"));
        if action == "FailIndex" && spec.get("backoffLimitPerIndex").is_none() {
            report.invalid(place, action, "requires the backoffLimitPerIndex to be set");
        } else {
            known(&place, action, ACTIONS, report);
        }
        let (codes, conditions) = (rule.get("onExitCodes"), list(rule, "/onPodConditions"));
        if let Some(codes) = codes {
            exit_codes(codes, &containers, &format!("{path}.onExitCodes"), report);
        }
        pod_conditions(conditions, &format!("{path}.onPodConditions"), report);
        let detail = match (codes.is_some(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        let detail = detail.to_owned();
        report.errors.push(FieldError { path, reason: Reason::Invalid, value: None, detail });
    }
}

/// A word of a list; the list is told in another way when there is none.
fn known(path: &str, word: &str, allowed: &[&str], report: &mut Report) {
    if word.is_empty() {
        let words: Vec<String> = allowed.iter().map(|word| format!("{word:?}")).collect();
        report.required(path, &format!("valid values: [{}]", words.join(" ")));
    } else {
        report.one_of(path, word, allowed);
    }
}

fn not_too_many(items: &[Value], most: usize, path: &str, report: &mut Report) {
    if items.len() > most {
        let detail = format!("must have at most {most} items");
        report.errors.push(FieldError::new(path, Reason::TooMany, items.len().into(), detail));
    }
}

fn exit_codes(codes: &Value, containers: &[&str], path: &str, report: &mut Report) {
    let operator = text(codes, "/operator");
    known(&format!("{path}.operator"), operator, OPERATORS, report);
    if let Some(container) = codes.get("containerName").and_then(Value::as_str)
        && !containers.contains(&container)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        report.invalid(format!("{path}.containerName"), container, detail);
    }
    let path = format!("{path}.values");
    let values = list(codes, "/values");
    if values.is_empty() {
        report.invalid(
            path.as_str(),
            at(codes, "/values").clone(),
            "at least one value is required",
        );
    }
    not_too_many(values, MOST_EXIT_CODES, &path, report);
    let numbers: Vec<i64> = values.iter().filter_map(Value::as_i64).collect();
    for (index, number) in numbers.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if operator == "In" && *number == 0 {
            report.invalid(path.as_str(), 0, "must not be 0 for the In operator");
        }
        if numbers[..index].contains(number) {
            report.duplicate(path, *number);
        }
    }
    if !numbers.is_sorted() {
        report.invalid(path, values.to_vec(), "must be ordered");
    }
}

fn pod_conditions(conditions: &[Value], path: &str, report: &mut Report) {
    not_too_many(conditions, MOST_RULES, path, report);
    for (index, condition) in conditions.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let ty = text(condition, "/type");
        for problem in name::qualified(ty) {
            report.invalid(format!("{path}.type"), ty, problem);
        }
        known(&format!("{path}.status"), text(condition, "/status"), STATES, report);
    }
}

/// `podReplacementPolicy`.
pub(super) fn replacement(spec: &Value, path: &str, report: &mut Report) {
    let Some(policy) = spec.get("podReplacementPolicy") else { return };
    let failures = spec.get("podFailurePolicy").is_some();
    let allowed: &[&str] = if failures { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    if !allowed.contains(&policy.as_str().unwrap_or_default()) {
        report.unsupported(&format!("{path}.podReplacementPolicy"), policy, allowed);
    }
}

/// `successPolicy`.
pub(super) fn success(spec: &Value, path: &str, report: &mut Report) {
    let Some(policy) = spec.get("successPolicy") else { return };
    let path = format!("{path}.successPolicy");
    if text(spec, "/completionMode") != "Indexed" {
        report.invalid(path, form(SUCCESS, policy), "requires indexed completion mode");
        return;
    }
    let rules = list(policy, "/rules");
    let path = format!("{path}.rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        report.required(path.as_str(), detail);
    }
    not_too_many(rules, MOST_RULES, &path, report);
    // A Job of indexes without their number is refused already.
    let Some(completions) = at(spec, "/completions").as_i64() else { return };
    for (index, rule) in rules.iter().enumerate() {
        success_rule(rule, completions, &format!("{path}[{index}]"), report);
    }
}

fn success_rule(rule: &Value, completions: i64, path: &str, report: &mut Report) {
    let indexes = rule.get("succeededIndexes").and_then(Value::as_str);
    let count = at(rule, "/succeededCount").as_i64();
    if indexes.is_none() && count.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        report.required(path, detail);
    }
    let mut total = 0;
    if let Some(indexes) = indexes {
        let path = format!("{path}.succeededIndexes");
        if indexes.len() > LONGEST_INDEXES {
            report.too_long(path.as_str(), LONGEST_INDEXES);
        }
        match job_indexes::count(indexes, completions) {
            Ok(found) => total = found,
            Err(why) => {
                let detail = format!("error parsing succeededIndexes: {why}");
                report.invalid(path, indexes, detail);
            }
        }
    }
    let Some(count) = count else { return };
    let path = format!("{path}.succeededCount");
    if count < 0 {
        report.invalid(path.as_str(), count, "must be greater than or equal to 0");
    }
    if count > completions {
        let detail = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        report.invalid(path.as_str(), count, detail);
    }
    if indexes.is_some() && count > total {
        let detail = format!(
            "must be less than or equal to {total} (the number of indexes in the specified \
             succeededIndexes field)"
        );
        report.invalid(path, count, detail);
    }
}
