//! Events, in both forms they are written in. The older group judges what it always did; the newer
//! one wants more, and keeps what was said.

use jiff::Timestamp;
use serde_json::Value;

use super::report::{Report, at, text};
use crate::go::internal;
use crate::validate::name;

const LONGEST_WORD: usize = 128;
const LONGEST_NOTE: usize = 1024;

/// What stays: the name that errors have for the field, and its name in the newer group.
const FIXED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("reason", "reason"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

/// An Event of the core group.
pub(super) fn old_form(value: &Value, _: Option<&Value>, report: &mut Report) {
    sensible(value, "/involvedObject/namespace", "/message", "reportingComponent", report);
}

/// An Event of `events.k8s.io`.
pub(super) fn new_form(value: &Value, old: Option<&Value>, report: &mut Report) {
    sensible(value, "/regarding/namespace", "/note", "reportingController", report);
    match old {
        None => created(value, report),
        Some(old) => kept(value, old, report),
    }
}

fn time(value: &Value, field: &str) -> Option<Timestamp> {
    value.get(field)?.as_str()?.parse().ok()
}

/// What holds for both forms.
fn sensible(value: &Value, about: &str, note: &str, reporter: &str, report: &mut Report) {
    let (namespace, involved) = (text(value, "/metadata/namespace"), text(value, about));
    let is_new = time(value, "eventTime").is_some();
    let fits = match involved {
        "" => namespace == "default" || (is_new && namespace == "kube-system"),
        involved => is_new || namespace == involved,
    };
    if !fits {
        report.invalid("involvedObject.namespace", involved, "does not match event.namespace");
    }
    if !is_new {
        return;
    }
    let given = text(value, &format!("/{reporter}"));
    if given.is_empty() {
        report.required(reporter, "");
    }
    for problem in name::qualified(given) {
        report.invalid(reporter, given, problem);
    }
    for field in ["reportingInstance", "action", "reason"] {
        let given = text(value, &format!("/{field}"));
        if given.is_empty() {
            report.required(field, "");
        }
        short(field, given, LONGEST_WORD, report);
    }
    short("message", text(value, note), LONGEST_NOTE, report);
}

fn short(path: &str, given: &str, most: usize, report: &mut Report) {
    if given.len() > most {
        report.invalid(path, "", format!("can have at most {most} characters"));
    }
}

fn series(value: &Value, report: &mut Report) {
    let Some(series) = value.get("series").filter(|series| series.is_object()) else { return };
    if at(series, "/count").as_i64().unwrap_or_default() < 2 {
        report.invalid("series.count", "", "should be at least 2");
    }
    if time(series, "lastObservedTime").is_none() {
        report.required("series.lastObservedTime", "");
    }
}

fn created(value: &Value, report: &mut Report) {
    series(value, report);
    if time(value, "eventTime").is_none() {
        report.required("eventTime", "");
    }
    let ty = text(value, "/type");
    if !matches!(ty, "Normal" | "Warning") {
        report.invalid("type", "", format!("has invalid value: {ty}"));
    }
    let source = ["component", "host"]
        .iter()
        .any(|field| !text(value, &format!("/deprecatedSource/{field}")).is_empty());
    let given = [
        ("firstTimestamp", time(value, "deprecatedFirstTimestamp").is_some()),
        ("lastTimestamp", time(value, "deprecatedLastTimestamp").is_some()),
        ("count", at(value, "/deprecatedCount").as_i64().unwrap_or_default() != 0),
        ("source", source),
    ];
    for (path, _) in given.iter().filter(|(_, given)| *given) {
        report.invalid(*path, "", "needs to be unset");
    }
}

fn kept(value: &Value, old: &Value, report: &mut Report) {
    if at(value, "/series") != at(old, "/series") {
        series(value, report);
    }
    for (path, field) in FIXED {
        let pointer = format!("/{field}");
        let (now, before) = (at(value, &pointer), at(old, &pointer));
        // Clients may know times less exactly.
        let same = match (time(value, field), time(old, field)) {
            (Some(now), Some(before)) => now.as_microsecond() == before.as_microsecond(),
            // One that is empty is one.
            _ if *path == "related" => now == before,
            _ => is_empty(now) && is_empty(before) || now == before,
        };
        if !same {
            report.invalid(*path, shown(path, now), "field is immutable");
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

/// The value under the names that kube-apiserver has for its fields itself.
fn shown(path: &str, value: &Value) -> Value {
    match path {
        "involvedObject" => internal::form("io.k8s.api.core.v1.ObjectReference", value),
        "related" => internal::form("*io.k8s.api.core.v1.ObjectReference", value),
        "source" => internal::form("io.k8s.api.core.v1.EventSource", value),
        "count" => value.as_i64().unwrap_or_default().into(),
        "reason" | "message" | "type" | "action" | "reportingController" | "reportingInstance" => {
            value.as_str().unwrap_or_default().into()
        }
        _ => value.clone(),
    }
}
