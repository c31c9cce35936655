//! Where Services lead to: Endpoints and EndpointSlices.

use serde_json::Value;

use super::report::{Report, at, list, text};
use super::service::{PROTOCOLS, reachable};
use crate::validate::ip;

pub(super) fn endpoints(value: &Value, _: Option<&Value>, report: &mut Report) {
    for (index, subset) in list(value, "/subsets").iter().enumerate() {
        let path = format!("subsets[{index}]");
        if list(subset, "/addresses").is_empty() && list(subset, "/notReadyAddresses").is_empty() {
            report.required(path.as_str(), "must specify `addresses` or `notReadyAddresses`");
        }
        for field in ["addresses", "notReadyAddresses"] {
            for (at_index, address) in list(subset, &format!("/{field}")).iter().enumerate() {
                let (given, path) =
                    (text(address, "/ip"), format!("{path}.{field}[{at_index}].ip"));
                if let Some(problem) = ip::problem(given) {
                    report.invalid(path.as_str(), given, problem);
                }
                reachable(given, &path, false, report);
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
        }
    }
}

pub(super) fn endpoint_slice(value: &Value, old: Option<&Value>, report: &mut Report) {
    report.one_of("addressType", text(value, "/addressType"), &["FQDN", "IPv4", "IPv6"]);
    report.immutable(value, old, "/addressType");
    for (index, endpoint) in list(value, "/endpoints").iter().enumerate() {
        if list(endpoint, "/addresses").is_empty() {
            let detail = "must contain at least 1 address";
            report.required(format!("endpoints[{index}].addresses"), detail);
        }
        for (at_index, address) in list(endpoint, "/addresses").iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            let path = format!("endpoints[{index}].addresses");
            let place = format!("{path}[{at_index}]");
            let (problem, right) = match text(value, "/addressType") {
                "IPv4" => (ip::problem(address).map(str::to_owned), !ip::is_six(address)),
                "IPv6" => (ip::strict_problem(address), ip::is_six(address)),
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
        report.one_of(&format!("{path}.protocol"), text(port, "/protocol"), PROTOCOLS);
    }
}
