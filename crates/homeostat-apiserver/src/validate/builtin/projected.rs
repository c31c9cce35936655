//! Volumes that put files of several sources into one place.

use serde_json::Value;

use super::profiles::descending;
use super::report::{Report, at, list, text};

/// The shortest and the longest life of a token, in seconds.
const LIFE_OF_TOKENS: [i64; 2] = [600, 1 << 32];

/// Keys of a map or secret, each with the file it becomes.
pub(super) fn items(source: &Value, path: &str, report: &mut Report) {
    for (index, item) in list(source, "/items").iter().enumerate() {
        let path = format!("{path}.items[{index}]");
        if text(item, "/key").is_empty() {
            report.required(format!("{path}.key"), "");
        }
        file(text(item, "/path"), &format!("{path}.path"), report);
        if let Some(mode) = at(item, "/mode").as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
            let why = "must be a number between 0 and 0777 (octal), both inclusive";
            report.invalid(format!("{path}.mode"), mode, why);
        }
    }
}

/// A path below the volume that is not one of its own.
fn file(given: &str, path: &str, report: &mut Report) {
    if given.is_empty() {
        report.required(path, "");
    }
    descending(given, path, report);
    if given.starts_with("..") && !given.starts_with("../") {
        report.invalid(path, given, "must not start with '..'");
    }
}

/// All sources of a volume.
pub(super) fn sources(volume: &Value, path: &str, report: &mut Report) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, source) in list(volume, "/sources").iter().enumerate() {
        let place = format!("{path}.sources[{index}]");
        for field in ["secret", "configMap"] {
            let Some(found) = source.get(field) else { continue };
            let (name, place) = (text(found, "/name"), format!("{place}.{field}"));
            if name.is_empty() {
                report.required(format!("{place}.name"), "");
            }
            items(found, &place, report);
            for item in list(found, "/items") {
                once(text(item, "/path"), name, &mut seen, path, report);
            }
        }
        for item in list(source, "/downwardAPI/items") {
            let given = text(item, "/path");
            file(given, &format!("{place}.downwardAPI.path"), report);
            once(given, given, &mut seen, path, report);
        }
        if let Some(found) = source.get("serviceAccountToken") {
            token(found, &format!("{place}.serviceAccountToken"), path, report);
        }
    }
}

/// No two files have one path; `shown` is what is said to be wrong.
fn once<'a>(given: &'a str, shown: &str, seen: &mut Vec<&'a str>, path: &str, report: &mut Report) {
    if seen.contains(&given) {
        report.invalid(path, shown, "conflicting duplicate paths");
    } else if !given.is_empty() {
        seen.push(given);
    }
}

fn token(token: &Value, place: &str, path: &str, report: &mut Report) {
    let place = format!("{place}.expirationSeconds");
    match at(token, "/expirationSeconds").as_i64() {
        Some(seconds) if seconds < LIFE_OF_TOKENS[0] => {
            report.invalid(place, seconds, "may not specify a duration less than 10 minutes");
        }
        Some(seconds) if seconds > LIFE_OF_TOKENS[1] => {
            report.invalid(place, seconds, "may not specify a duration larger than 2^32 seconds");
        }
        _ => {}
    }
    // The path is said to be that of the volume.
    file(text(token, "/path"), &format!("{path}.path"), report);
}
