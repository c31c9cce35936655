//! What is done to find out how a container is, and when it begins and ends.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::{Inside, items};
use crate::validate::name;

const NUMBERS: &[&str] = &[
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];
const ONLY_ONE: &str = "may not specify more than 1 handler type";

/// The probes of a container, and what it does at its begin and end.
pub(super) fn handlers(
    container: &Value,
    inside: Inside<'_>,
    place: &Place<'_>,
    report: &mut Report,
) {
    let grace = at(inside.spec, "/terminationGracePeriodSeconds").as_i64();
    if let Some(lifecycle) = container.get("lifecycle") {
        let place = place.field("lifecycle");
        for moment in ["postStart", "preStop"] {
            if let Some(found) = lifecycle.get(moment) {
                let ways = ["exec", "httpGet", "tcpSocket", "sleep"];
                handler(found, &ways, grace, &place.field(moment), report);
            }
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = container.get(name) {
            probe(found, name == "readinessProbe", grace, &place.field(name), report);
        }
    }
}

fn probe(
    probe: &Value,
    is_readiness: bool,
    grace: Option<i64>,
    place: &Place<'_>,
    report: &mut Report,
) {
    handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], grace, place, report);
    for field in NUMBERS {
        let number = probe.get(field).and_then(Value::as_i64);
        if let Some(number) = number.filter(|number| *number < 0) {
            report.invalid(place.field(field), number, "must be greater than or equal to 0");
        }
    }
    let own_grace = at(probe, "/terminationGracePeriodSeconds").as_i64();
    let place_of_grace = place.field("terminationGracePeriodSeconds");
    if let Some(seconds) = own_grace.filter(|seconds| *seconds <= 0) {
        report.invalid(place_of_grace, seconds, "must be greater than 0");
    }
    if let Some(seconds) = own_grace.filter(|_| is_readiness) {
        report.invalid(place_of_grace, seconds, "must not be set for readinessProbes");
    }
    let successes = at(probe, "/successThreshold").as_i64().unwrap_or_default();
    if !is_readiness && successes != 1 {
        report.invalid(place.field("successThreshold"), successes, "must be 1");
    }
}

fn handler(
    handler: &Value,
    ways: &[&str],
    grace: Option<i64>,
    place: &Place<'_>,
    report: &mut Report,
) {
    let mut count = 0;
    for way in ways {
        let Some(found) = handler.get(way) else { continue };
        let place = place.field(way);
        count += 1;
        if count > 1 {
            report.forbidden(place, ONLY_ONE);
            continue;
        }
        match *way {
            "exec" if items(found, "command").is_empty() => {
                report.required(place.field("command"), "");
            }
            "httpGet" => get(found, &place, report),
            "tcpSocket" => port(at(found, "/port"), &place.field("port"), report),
            "grpc" => number(at(found, "/port"), &place.field("port"), report),
            "sleep" => sleep(found, grace, &place, report),
            _ => {}
        }
    }
    if count == 0 {
        report.required(place, "must specify a handler type");
    }
}

fn sleep(action: &Value, grace: Option<i64>, place: &Place<'_>, report: &mut Report) {
    let seconds = at(action, "/seconds").as_i64().unwrap_or_default();
    if let Some(grace) = grace.filter(|grace| seconds < 0 || seconds > *grace) {
        let why =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        report.invalid(place, seconds, why);
    }
}

fn get(action: &Value, place: &Place<'_>, report: &mut Report) {
    if text(action, "/path").is_empty() {
        report.required(place.field("path"), "");
    }
    port(at(action, "/port"), &place.field("port"), report);
    let scheme = text(action, "/scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        report.unsupported(&place.field("scheme"), &scheme.into(), &["HTTP", "HTTPS"]);
    }
    for header in items(action, "httpHeaders") {
        let name = text(header, "/name");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
                       'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            report.invalid(place.field("httpHeaders"), name, why);
        }
    }
}

/// A number, or the name that a container gave to it.
fn port(port: &Value, place: &Place<'_>, report: &mut Report) {
    match port.as_str() {
        Some(given) => report.problems(place, given, name::port_name),
        None => number(port, place, report),
    }
}

fn number(port: &Value, place: &Place<'_>, report: &mut Report) {
    report.port(place, port.as_i64().unwrap_or_default());
}
