//! Volumes that are files: keys of maps and secrets, fields of the Pod itself, tokens, and several
//! of these in one place.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::environment::{field_of_pod, resource_of_container};
use super::items;
use super::profiles::relative;

/// The shortest and the longest life of a token, in seconds.
const LIFE_OF_TOKENS: [i64; 2] = [600, 1 << 32];
/// The fields of a Pod that can be files, besides single labels and annotations.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const CONFLICT: &str = "conflicting duplicate paths";

fn mode(source: &Value, field: &str, place: &Place<'_>, report: &mut Report) {
    let mode = source.get(field).and_then(Value::as_i64);
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        report.invalid(place.field(field), mode, why);
    }
}

/// A map or a secret, by the field that names it.
pub(super) fn keys(source: &Value, name: &str, place: &Place<'_>, report: &mut Report) {
    if source.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
        report.required(place.field(name), "");
    }
    mode(source, "defaultMode", place, report);
    let place = place.field("items");
    for (index, item) in items(source, "items").iter().enumerate() {
        key(item, &place.item(index), report);
    }
}

/// A key, with the file it becomes.
fn key(item: &Value, place: &Place<'_>, report: &mut Report) {
    if text(item, "/key").is_empty() {
        report.required(place.field("key"), "");
    }
    file(text(item, "/path"), &place.field("path"), report);
    mode(item, "mode", place, report);
}

/// A path below the volume that is not one of its own.
fn file(given: &str, place: &Place<'_>, report: &mut Report) {
    if given.is_empty() {
        report.required(place, "");
    }
    below(given, place, report);
}

fn below(given: &str, place: &Place<'_>, report: &mut Report) {
    relative(given, place, report);
    if given.starts_with("..") && !given.starts_with("../") {
        report.invalid(place, given, "must not start with '..'");
    }
}

/// Files with what the API says of the Pod.
pub(super) fn of_pod(source: &Value, place: &Place<'_>, report: &mut Report) {
    mode(source, "defaultMode", place, report);
    for item in items(source, "items") {
        fact(item, place, report);
    }
}

/// One such file; its errors are said to be those of the whole source.
fn fact(item: &Value, place: &Place<'_>, report: &mut Report) {
    file(text(item, "/path"), &place.field("path"), report);
    match (item.get("fieldRef"), item.get("resourceFieldRef")) {
        (Some(field), resource) => {
            field_of_pod(field, FIELDS, &place.field("fieldRef"), report);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                report.invalid(place, "resource", why);
            }
        }
        (None, Some(resource)) => {
            resource_of_container(resource, true, &place.field("resourceFieldRef"), report);
        }
        (None, None) => report.required(place, "one of fieldRef and resourceFieldRef is required"),
    }
    mode(item, "mode", place, report);
}

/// Several sources in one volume.
pub(super) fn projected(volume: &Value, place: &Place<'_>, report: &mut Report) {
    mode(volume, "defaultMode", place, report);
    let mut seen: Vec<&str> = Vec::new();
    let sources = place.field("sources");
    for (index, source) in items(volume, "sources").iter().enumerate() {
        let within = sources.item(index);
        let mut count = 0;
        for field in ["secret", "configMap"] {
            let Some(found) = source.get(field) else { continue };
            count += 1;
            let (name, within) = (text(found, "/name"), within.field(field));
            if name.is_empty() {
                report.required(within.field("name"), "");
            }
            let within = within.field("items");
            for (index, item) in items(found, "items").iter().enumerate() {
                key(item, &within.item(index), report);
                once(text(item, "/path"), name, &mut seen, place, report);
            }
        }
        if let Some(found) = source.get("downwardAPI") {
            count += 1;
            for item in items(found, "items") {
                fact(item, &within.field("downwardAPI"), report);
                let given = text(item, "/path");
                once(given, given, &mut seen, place, report);
            }
        }
        if let Some(found) = source.get("serviceAccountToken") {
            count += 1;
            token(found, &within.field("serviceAccountToken"), place, report);
        }
        if count > 1 {
            report.forbidden(within, "may not specify more than 1 volume type per source");
        }
    }
}

/// No two files have one path; `shown` is what is said to be wrong.
fn once<'a>(
    given: &'a str,
    shown: &str,
    seen: &mut Vec<&'a str>,
    place: &Place<'_>,
    report: &mut Report,
) {
    if seen.contains(&given) {
        report.invalid(place, shown, CONFLICT);
    } else if !given.is_empty() {
        seen.push(given);
    }
}

fn token(token: &Value, place: &Place<'_>, volume: &Place<'_>, report: &mut Report) {
    let seconds = at(token, "/expirationSeconds").as_i64().unwrap_or_default();
    let place = place.field("expirationSeconds");
    if seconds < LIFE_OF_TOKENS[0] {
        report.invalid(place, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds > LIFE_OF_TOKENS[1] {
        report.invalid(place, seconds, "may not specify a duration larger than 2^32 seconds");
    }
    // The path is said to be that of the volume.
    match text(token, "/path") {
        "" => report.required(volume.field("path"), ""),
        given => below(given, &volume.field("path"), report),
    }
}
