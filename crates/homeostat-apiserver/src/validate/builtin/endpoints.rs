//! Where Services lead to: Endpoints and EndpointSlices.

use serde_json::Value;

use super::devices::few;
use super::report::{Report, at, list, text};
use super::service::{PROTOCOLS, reachable};
use crate::validate::{ip, name};

/// The most addresses of an endpoint.
const MOST_ADDRESSES: usize = 100;
/// The most zones or nodes that an endpoint is meant for.
const MOST_HINTS: usize = 8;

pub(super) fn endpoints(value: &Value, _: Option<&Value>, report: &mut Report) {
    for (index, subset) in list(value, "/subsets").iter().enumerate() {
        let path = format!("subsets[{index}]");
        if list(subset, "/addresses").is_empty() && list(subset, "/notReadyAddresses").is_empty() {
            report.required(path.as_str(), "must specify `addresses` or `notReadyAddresses`");
        }
        for field in ["addresses", "notReadyAddresses"] {
            for (at_index, address) in list(subset, &format!("/{field}")).iter().enumerate() {
                let path = format!("{path}.{field}[{at_index}]");
                let given = text(address, "/ip");
                let place = format!("{path}.ip");
                if let Some(problem) = ip::problem(given) {
                    report.invalid(place.as_str(), given, problem);
                }
                reachable(given, &place, false, report);
                let host = text(address, "/hostname");
                if !host.is_empty() {
                    report.dns_label(&format!("{path}.hostname"), host);
                }
                node(address, &path, report);
            }
        }
        for (at_index, port) in list(subset, "/ports").iter().enumerate() {
            let path = format!("{path}.ports[{at_index}]");
            let name = text(port, "/name");
            if !name.is_empty() || list(subset, "/ports").len() > 1 {
                report.dns_label(&format!("{path}.name"), name);
            }
            let number = at(port, "/port").as_i64().unwrap_or_default();
            report.port(format!("{path}.port"), number);
            report.one_of(&format!("{path}.protocol"), text(port, "/protocol"), PROTOCOLS);
            app_protocol(port, &path, report);
        }
    }
}

/// The name of a node, if there is one.
fn node(holder: &Value, path: &str, report: &mut Report) {
    if let Some(node) = holder.get("nodeName").and_then(Value::as_str) {
        for problem in name::dns_subdomain(node) {
            report.invalid(format!("{path}.nodeName"), node, problem);
        }
    }
}

/// What is spoken at a port, if that is said.
pub(super) fn app_protocol(port: &Value, path: &str, report: &mut Report) {
    if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
        for problem in name::qualified(protocol) {
            report.invalid(format!("{path}.appProtocol"), protocol, problem);
        }
    }
}

/// For whom an endpoint is meant.
fn hints(hints: &Value, path: &str, report: &mut Report) {
    for (field, form) in [
        ("forZones", name::label_value as fn(&str) -> Vec<String>),
        ("forNodes", name::dns_subdomain),
    ] {
        let all = list(hints, &format!("/{field}"));
        if !few(all, MOST_HINTS, &format!("{path}.{field}"), report) {
            return;
        }
        for (index, hint) in all.iter().enumerate() {
            let (path, name) = (format!("{path}.{field}[{index}].name"), text(hint, "/name"));
            if all[..index].iter().any(|other| text(other, "/name") == name) {
                report.duplicate(path.as_str(), name);
            }
            for problem in form(name) {
                report.invalid(path.as_str(), name, problem);
            }
        }
    }
}

/// A name with a domain, which may end with a dot.
fn domain(given: &str, place: &str, report: &mut Report) {
    let name = given.strip_suffix('.').unwrap_or(given);
    if given.is_empty() {
        report.required(place, "");
        return;
    }
    let problems = name::dns_subdomain(name);
    if !problems.is_empty() {
        report.invalid(place, name, problems.join(","));
    } else if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        report.invalid(place, name, why);
    } else if let Some(label) = name.split('.').find(|label| !name::dns_label(label).is_empty()) {
        report.invalid(place, label, name::dns_label(label).join(","));
    }
}

pub(super) fn endpoint_slice(value: &Value, old: Option<&Value>, report: &mut Report) {
    report.one_of("addressType", text(value, "/addressType"), &["FQDN", "IPv4", "IPv6"]);
    report.immutable(value, old, "/addressType");
    let known = report.errors.len();
    for (index, endpoint) in list(value, "/endpoints").iter().enumerate() {
        if list(endpoint, "/addresses").is_empty() {
            let detail = "must contain at least 1 address";
            report.required(format!("endpoints[{index}].addresses"), detail);
        }
        few(
            list(endpoint, "/addresses"),
            MOST_ADDRESSES,
            &format!("endpoints[{index}].addresses"),
            report,
        );
        for (at_index, address) in list(endpoint, "/addresses").iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            let path = format!("endpoints[{index}].addresses");
            let place = format!("{path}[{at_index}]");
            let (problem, right) = match text(value, "/addressType") {
                "IPv4" => (ip::problem(address).map(str::to_owned), !ip::is_six(address)),
                "IPv6" => (ip::strict_problem(address), ip::is_six(address)),
                "FQDN" => {
                    domain(address, &place, report);
                    continue;
                }
                _ => continue,
            };
            if let Some(problem) = problem {
                report.invalid(place, address, problem);
                continue;
            }
            if !right {
                let why = format!("must be an {} address", text(value, "/addressType"));
                report.invalid(path, address, why);
            }
            reachable(address, &place, false, report);
        }
        let path = format!("endpoints[{index}]");
        node(endpoint, &path, report);
        if let Some(host) = endpoint.get("hostname").and_then(Value::as_str) {
            for problem in name::dns_label(host) {
                report.invalid(format!("{path}.hostname"), host, problem);
            }
        }
        if let Some(given) = endpoint.get("hints") {
            hints(given, &format!("{path}.hints"), report);
        }
    }
    if old.is_some_and(|old| list(old, "/endpoints") == list(value, "/endpoints")) {
        // They were right once.
        report.errors.truncate(known);
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in list(value, "/ports").iter().enumerate() {
        let path = format!("ports[{index}]");
        let name = text(port, "/name");
        if !name.is_empty() {
            report.dns_label(&format!("{path}.name"), name);
        }
        if names.contains(&name) {
            report.duplicate(format!("{path}.name"), name);
        }
        names.push(name);
        let protocol = at(port, "/protocol");
        if protocol.as_str().is_some_and(|protocol| !PROTOCOLS.contains(&protocol)) {
            report.unsupported(&format!("{path}.protocol"), protocol, PROTOCOLS);
        }
        app_protocol(port, &path, report);
    }
}
