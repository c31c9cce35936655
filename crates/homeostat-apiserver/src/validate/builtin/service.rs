//! Services, their endpoints, and Ingresses.

use serde_json::{Value, json};

use super::report::{Report, at, list, text};
use crate::validate::name;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

pub(super) fn service(value: &Value, old: Option<&Value>, report: &mut Report) {
    let ty = text(value, "/spec/type");
    report.one_of("spec.type", ty, TYPES);
    let headless = text(value, "/spec/clusterIP") == "None";
    let ports = list(value, "/spec/ports");
    if ports.is_empty() && ty != "ExternalName" && !headless {
        report.required("spec.ports", "");
    }
    if ty == "ExternalName" {
        report.name("spec.externalName", text(value, "/spec/externalName"), name::dns_subdomain);
    }
    if ty == "LoadBalancer" && headless {
        report.invalid(
            "spec.clusterIPs[0]",
            "None",
            "may not be set to 'None' for LoadBalancer services",
        );
    }
    report.one_of(
        "spec.sessionAffinity",
        text(value, "/spec/sessionAffinity"),
        &["ClientIP", "None"],
    );
    report.labels(at(value, "/spec/selector"), "spec.selector");
    service_ports(ports, report);
    if let Some(old) = old {
        let (before, after) = (text(old, "/spec/clusterIP"), text(value, "/spec/clusterIP"));
        let both_have_addresses = ty != "ExternalName" && text(old, "/spec/type") != "ExternalName";
        if both_have_addresses && !before.is_empty() && before != after {
            let shown = json!([after]);
            report.invalid("spec.clusterIPs[0]", shown, "may not change once set");
        }
    }
}

fn service_ports(ports: &[Value], report: &mut Report) {
    let mut names: Vec<&str> = Vec::new();
    let mut seen: Vec<(&str, i64)> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = text(port, "/name");
        if name.is_empty() {
            if ports.len() > 1 {
                report.required(format!("{path}.name"), "");
            }
        } else {
            report.dns_label(&format!("{path}.name"), name);
            if names.contains(&name) {
                report.duplicate(format!("{path}.name"), name);
            }
            names.push(name);
        }
        let number = at(port, "/port").as_i64().unwrap_or_default();
        report.port(format!("{path}.port"), number);
        let protocol = text(port, "/protocol");
        report.one_of(&format!("{path}.protocol"), protocol, PROTOCOLS);
        match at(port, "/targetPort") {
            Value::Number(target) => {
                report.port(format!("{path}.targetPort"), target.as_i64().unwrap_or_default());
            }
            Value::String(target) => {
                for problem in name::port_name(target) {
                    report.invalid(format!("{path}.targetPort"), target.as_str(), problem);
                }
            }
            _ => {}
        }
        if seen.contains(&(protocol, number)) {
            // the API shows its own names for the fields here
            let shown = json!({
                "Name": "",
                "Protocol": protocol,
                "AppProtocol": null,
                "Port": number,
                "TargetPort": 0,
                "NodePort": 0,
            });
            report.duplicate(path, shown);
        }
        seen.push((protocol, number));
    }
}

pub(super) fn endpoints(value: &Value, _: Option<&Value>, report: &mut Report) {
    for (index, subset) in list(value, "/subsets").iter().enumerate() {
        let path = format!("subsets[{index}]");
        if list(subset, "/addresses").is_empty() && list(subset, "/notReadyAddresses").is_empty() {
            report.required(path.as_str(), "must specify `addresses` or `notReadyAddresses`");
        }
        for field in ["addresses", "notReadyAddresses"] {
            for (at_index, address) in list(subset, &format!("/{field}")).iter().enumerate() {
                let ip = text(address, "/ip");
                if ip.parse::<std::net::IpAddr>().is_err() {
                    let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                    report.invalid(format!("{path}.{field}[{at_index}].ip"), ip, detail);
                }
            }
        }
        for (at_index, port) in list(subset, "/ports").iter().enumerate() {
            let number = at(port, "/port").as_i64().unwrap_or_default();
            report.port(format!("{path}.ports[{at_index}].port"), number);
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
    }
}

pub(super) fn ingress(value: &Value, _: Option<&Value>, report: &mut Report) {
    if list(value, "/spec/rules").is_empty() && value.pointer("/spec/defaultBackend").is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        report.invalid("spec", Value::Null, detail);
    }
    for (index, rule) in list(value, "/spec/rules").iter().enumerate() {
        for (at_index, found) in list(rule, "/http/paths").iter().enumerate() {
            let path = format!("spec.rules[{index}].http.paths[{at_index}]");
            let ty = text(found, "/pathType");
            if ty.is_empty() {
                report.required(format!("{path}.pathType"), "pathType must be specified");
            } else {
                let types = ["Exact", "ImplementationSpecific", "Prefix"];
                report.one_of(&format!("{path}.pathType"), ty, &types);
            }
            let given = text(found, "/path");
            if matches!(ty, "Exact" | "Prefix") && !given.starts_with('/') {
                report.invalid(format!("{path}.path"), given, "must be an absolute path");
            }
        }
    }
}
