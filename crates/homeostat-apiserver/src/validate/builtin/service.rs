//! Services and their endpoints.

use serde_json::{Value, json};

use super::report::{Report, at, list, text};
use crate::validate::name;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const NOT_AN_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
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
    let external =
        matches!(ty, "NodePort" | "LoadBalancer") || !list(value, "/spec/externalIPs").is_empty();
    let policy = text(value, "/spec/externalTrafficPolicy");
    if !policy.is_empty() && !external {
        let detail = "may only be set for externally-accessible services";
        report.invalid("spec.externalTrafficPolicy", policy, detail);
    }
    if ty != "LoadBalancer" && !list(value, "/status/loadBalancer/ingress").is_empty() {
        let detail = "may only be used when `spec.type` is \"LoadBalancer\"";
        report.forbidden("status.loadBalancer.ingress", detail);
    }
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
                    let path = format!("{path}.{field}[{at_index}].ip");
                    report.invalid(path.as_str(), ip, NOT_AN_ADDRESS);
                    report.invalid(path, ip, "must be a valid IP address");
                }
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
            match (text(value, "/addressType"), address.parse::<std::net::IpAddr>()) {
                ("IPv4" | "IPv6", Err(_)) => {
                    report.invalid(format!("{path}[{at_index}]"), address, NOT_AN_ADDRESS);
                }
                ("IPv4", Ok(ip)) if ip.is_ipv6() => {
                    report.invalid(path, address, "must be an IPv4 address");
                }
                ("IPv6", Ok(ip)) if ip.is_ipv4() => {
                    report.invalid(path, address, "must be an IPv6 address");
                }
                _ => {}
            }
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
