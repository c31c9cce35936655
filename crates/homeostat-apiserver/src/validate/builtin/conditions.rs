//! Conditions as the API's own types have them: a type, a status, a reason, and since when.

use serde_json::Value;

use super::devices::too_long;
use super::report::{Report, at, text};
use crate::validate::name;

const STATUSES: &[&str] = &["False", "True", "Unknown"];
const LONGEST_REASON: usize = 1024;
const LONGEST_MESSAGE: usize = 32 * 1024;

/// A list of conditions, each of a type of its own.
pub(super) fn conditions(all: &[Value], path: &str, report: &mut Report) {
    once_each(all, path, report);
    for (index, one) in all.iter().enumerate() {
        condition(one, &format!("{path}[{index}]"), report);
    }
}

/// No two are of one type.
pub(super) fn once_each(all: &[Value], path: &str, report: &mut Report) {
    for (index, one) in all.iter().enumerate() {
        let kind = text(one, "/type");
        if all[..index].iter().any(|other| text(other, "/type") == kind) {
            report.duplicate(format!("{path}[{index}].type"), kind);
        }
    }
}

fn condition(condition: &Value, path: &str, report: &mut Report) {
    let kind = text(condition, "/type");
    for problem in name::qualified(kind) {
        report.invalid(format!("{path}.type"), kind, problem);
    }
    let status = text(condition, "/status");
    if !STATUSES.contains(&status) {
        report.unsupported(&format!("{path}.status"), &status.into(), STATUSES);
    }
    if let Some(number) = at(condition, "/observedGeneration").as_i64().filter(|n| *n < 0) {
        let why = "must be greater than or equal to zero";
        report.invalid(format!("{path}.observedGeneration"), number, why);
    }
    if text(condition, "/lastTransitionTime").is_empty() {
        report.required(format!("{path}.lastTransitionTime"), "");
    }
    let place = format!("{path}.reason");
    match text(condition, "/reason") {
        "" => report.required(place, ""),
        given => {
            if !is_reason(given) {
                let why = "a condition reason must start with alphabetic character, optionally \
                           followed by a string of alphanumeric characters or '_,:', and must end \
                           with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  \
                           or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used \
                           for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
                report.invalid(place.as_str(), given, why);
            }
            if given.len() > LONGEST_REASON {
                too_long(place, LONGEST_REASON, report);
            }
        }
    }
    if text(condition, "/message").len() > LONGEST_MESSAGE {
        too_long(format!("{path}.message"), LONGEST_MESSAGE, report);
    }
}

fn is_reason(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(word)
        && text.chars().all(|c| word(c) || matches!(c, ',' | ':'))
}
