//! Services: ports, addresses from outside, policies for traffic, and the status of load balancers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::endpoints::app_protocol;
use super::report::{Report, at, list, text};
use crate::go::internal;
use crate::validate::{ip, name};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
/// An annotation that was a field later.
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
/// A day, in seconds.
const LONGEST_AFFINITY: i64 = 86_400;
pub(super) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

pub(super) fn service(value: &Value, old: Option<&Value>, report: &mut Report) {
    let ty = text(value, "/spec/type");
    report.one_of("spec.type", ty, TYPES);
    hints(value, report);
    let headless = text(value, "/spec/clusterIP") == "None";
    let ports = list(value, "/spec/ports");
    if ports.is_empty() && ty != "ExternalName" && !headless {
        report.required("spec.ports", "");
    }
    if ty == "ExternalName" {
        let name = text(value, "/spec/externalName");
        let name = name.strip_suffix('.').unwrap_or(name);
        report.name("spec.externalName", name, name::dns_subdomain);
        for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if value["spec"].get(field).is_some() {
                let why = "may not be set for ExternalName services";
                report.forbidden(format!("spec.{field}"), why);
            }
        }
    }
    if matches!(ty, "LoadBalancer" | "NodePort") && headless {
        let why = format!("may not be set to 'None' for {ty} services");
        report.invalid("spec.clusterIPs[0]", "None", why);
    }
    report.one_of(
        "spec.sessionAffinity",
        text(value, "/spec/sessionAffinity"),
        &["ClientIP", "None"],
    );
    report.labels(at(value, "/spec/selector"), "spec.selector");
    service_ports(ports, report);
    node_ports(ty, ports, report);
    affinity(value, report);
    outside(value, old, report);
    let external = matches!(ty, "NodePort" | "LoadBalancer")
        || (ty == "ClusterIP" && !list(value, "/spec/externalIPs").is_empty());
    let policy = text(value, "/spec/externalTrafficPolicy");
    if !policy.is_empty() && !external {
        let detail = "may only be set for externally-accessible services";
        report.invalid("spec.externalTrafficPolicy", policy, detail);
    }
    if external && !policy.is_empty() {
        report.one_of("spec.externalTrafficPolicy", policy, &["Cluster", "Local"]);
    }
    let checked = at(value, "/spec/healthCheckNodePort").as_i64().unwrap_or_default();
    let has_checks = has_health_checks(value);
    let before = old.filter(|old| has_checks && has_health_checks(old));
    let before = before.map(|old| at(old, "/spec/healthCheckNodePort").as_i64());
    if before.is_some_and(|before| before.unwrap_or_default() != checked) {
        report.forbidden("spec.healthCheckNodePort", "field is immutable");
    }
    if has_checks && checked != 0 {
        report.port("spec.healthCheckNodePort", checked);
    } else if checked != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                      'Local'";
        report.invalid("spec.healthCheckNodePort", checked, detail);
    }
    balancer(value, old, report);
    for (field, allowed) in [
        ("internalTrafficPolicy", &["Cluster", "Local"][..]),
        ("trafficDistribution", &["PreferClose", "PreferSameZone", "PreferSameNode"]),
    ] {
        let given = at(value, &format!("/spec/{field}"));
        if given.as_str().is_some_and(|given| !allowed.contains(&given)) {
            report.unsupported(&format!("spec.{field}"), given, allowed);
        }
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

/// The annotation has an old name, too.
fn hints(value: &Value, report: &mut Report) {
    let old = "service.kubernetes.io/topology-aware-hints";
    let new = "service.kubernetes.io/topology-mode";
    let annotation = |key: &str| at(value, "/metadata/annotations").get(key);
    if let (Some(before), Some(now)) = (annotation(old), annotation(new))
        && before != now
    {
        let why = format!("must match annotations[{old}] when both are specified");
        report.invalid(format!("metadata.annotations[{new}]"), now.clone(), why);
    }
}

/// How long the requests of one client go to the same place.
fn affinity(value: &Value, report: &mut Report) {
    let (path, config) = ("spec.sessionAffinityConfig", at(value, "/spec/sessionAffinityConfig"));
    match text(value, "/spec/sessionAffinity") {
        "None" if !config.is_null() => {
            report.forbidden(path, "must not be set when session affinity is None");
        }
        "ClientIP" => {
            let why = "when session affinity type is ClientIP";
            let seconds = at(config, "/clientIP/timeoutSeconds").as_i64();
            match (config.get("clientIP"), seconds) {
                (None, _) if config.is_null() => report.required(path, why),
                (None, _) => report.required(format!("{path}.clientIP"), why),
                (_, None) => report.required(format!("{path}.clientIP.timeoutSeconds"), why),
                (_, Some(seconds)) if !(1..=LONGEST_AFFINITY).contains(&seconds) => {
                    let why = format!("must be greater than 0 and less than {LONGEST_AFFINITY}");
                    report.invalid(format!("{path}.clientIP.timeoutSeconds"), seconds, why);
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// Addresses that others route here, and those that may use a load balancer.
fn outside(value: &Value, old: Option<&Value>, report: &mut Report) {
    let before = |pointer: &str| old.map(|old| list(old, pointer)).unwrap_or_default();
    let known = before("/spec/externalIPs");
    for (index, given) in list(value, "/spec/externalIPs").iter().enumerate() {
        let path = format!("spec.externalIPs[{index}]");
        let address = given.as_str().unwrap_or_default();
        match ip::problem(address).filter(|_| !known.contains(given)) {
            Some(problem) => report.invalid(path, address, problem),
            None => reachable(address, &path, true, report),
        }
    }
    let balanced = text(value, "/spec/type") == "LoadBalancer";
    let only_there = "may only be used when `type` is 'LoadBalancer'";
    let ranges = list(value, "/spec/loadBalancerSourceRanges");
    let annotation = value.pointer("/metadata/annotations").and_then(|all| all.get(SOURCE_RANGES));
    // Space around a range is of no account.
    let trimmed = |range: &Value| range.as_str().unwrap_or_default().trim().to_owned();
    if !ranges.is_empty() {
        let path = "spec.LoadBalancerSourceRanges";
        if !balanced {
            report.forbidden(path, only_there);
        }
        let known: Vec<String> =
            before("/spec/loadBalancerSourceRanges").iter().map(trimmed).collect();
        for (index, range) in ranges.iter().map(trimmed).enumerate() {
            if let Some(problem) = ip::range_problem(&range).filter(|_| !known.contains(&range)) {
                report.invalid(format!("{path}[{index}]"), range, problem);
            }
        }
    } else if let Some(given) = annotation.and_then(Value::as_str) {
        let path = format!("metadata.annotations[{SOURCE_RANGES}]");
        if !balanced {
            report.forbidden(path.as_str(), only_there);
        }
        let same = old
            .and_then(|old| old.pointer("/metadata/annotations")?.get(SOURCE_RANGES))
            .is_some_and(|old| old == given);
        for range in given.split(',').map(str::trim).filter(|_| !same && !given.trim().is_empty()) {
            if let Some(problem) = ip::range_problem(range) {
                report.invalid(path.as_str(), range, problem);
            }
        }
    }
}

/// What only a load balancer has.
fn balancer(value: &Value, old: Option<&Value>, report: &mut Report) {
    let (balanced, class) =
        (text(value, "/spec/type") == "LoadBalancer", at(value, "/spec/loadBalancerClass"));
    let only_there = "may only be used when `type` is 'LoadBalancer'";
    if let Some(old) = old.filter(|old| balanced && text(old, "/spec/type") == "LoadBalancer")
        && at(old, "/spec/loadBalancerClass") != class
    {
        report.invalid("spec.loadBalancerClass", class.clone(), "may not change once set");
    }
    if !balanced {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if !at(value, &format!("/spec/{field}")).is_null() {
                report.forbidden(format!("spec.{field}"), only_there);
            }
        }
    } else if let Some(class) = class.as_str() {
        for problem in name::qualified(class) {
            report.invalid("spec.loadBalancerClass", class, problem);
        }
    }
    let ingress = list(value, "/status/loadBalancer/ingress");
    if !balanced && !ingress.is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        report.forbidden("status.loadBalancer.ingress", detail);
        return;
    }
    balanced_addresses(value, old, report);
    for (index, ingress) in ingress.iter().enumerate() {
        let path = format!("status.loadBalancer.ingress[{index}].ipMode");
        let mode = at(ingress, "/ipMode");
        match (mode.is_null(), text(ingress, "/ip").is_empty()) {
            (true, false) => report.required(path, "must be specified when `ip` is set"),
            (false, true) => report.forbidden(path, "may not be specified when `ip` is not set"),
            (false, false) => report.known(&path, mode, &["Proxy", "VIP"]),
            (true, true) => {}
        }
    }
}

/// Where a load balancer is reached, in the status of a Service or of an Ingress.
pub(super) fn balanced_addresses(value: &Value, old: Option<&Value>, report: &mut Report) {
    let pointer = "/status/loadBalancer/ingress";
    let known: Vec<&str> = old
        .map(|old| list(old, pointer))
        .unwrap_or_default()
        .iter()
        .map(|i| text(i, "/ip"))
        .collect();
    for (index, ingress) in list(value, pointer).iter().enumerate() {
        let path = format!("status.loadBalancer.ingress[{index}]");
        let (address, host) = (text(ingress, "/ip"), text(ingress, "/hostname"));
        if let Some(problem) =
            ip::problem(address).filter(|_| !address.is_empty() && !known.contains(&address))
        {
            report.invalid(format!("{path}.ip"), address, problem);
        }
        if host.is_empty() {
            continue;
        }
        for problem in name::dns_subdomain(host) {
            report.invalid(format!("{path}.hostname"), host, problem);
        }
        if ip::generous(host).is_some() {
            let why = "must be a DNS name, not an IP address";
            report.invalid(format!("{path}.hostname"), host, why);
        }
    }
}

/// An address that other machines can reach. Pods of the node agent are on the loopback.
pub(super) fn reachable(address: &str, path: &str, other_machine: bool, report: &mut Report) {
    let Some(found) = ip::generous(address) else {
        report.invalid(path, address, "must be a valid IP address");
        return;
    };
    let (local, multicast) = match found {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (six.is_unicast_link_local(), six.segments()[0] & 0xff0f == 0xff02),
    };
    if found.is_unspecified() {
        report.invalid(path, address, format!("may not be unspecified ({address})"));
    }
    if found.is_loopback() && other_machine {
        let why = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        report.invalid(path, address, why);
    }
    if local {
        let why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        report.invalid(path, address, why);
    }
    if multicast {
        let why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        report.invalid(path, address, why);
    }
}

fn has_health_checks(service: &Value) -> bool {
    text(service, "/spec/type") == "LoadBalancer"
        && text(service, "/spec/externalTrafficPolicy") == "Local"
}

/// The ports of nodes: not where nothing listens, and none twice for one protocol.
fn node_ports(ty: &str, ports: &[Value], report: &mut Report) {
    let mut seen: BTreeSet<(&str, i64)> = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}].nodePort");
        let number = at(port, "/nodePort").as_i64().unwrap_or_default();
        if number == 0 {
            continue;
        }
        if ty == "ClusterIP" {
            report.forbidden(path.as_str(), "may not be used when `type` is 'ClusterIP'");
        }
        if !seen.insert((text(port, "/protocol"), number)) {
            report.duplicate(path, number);
        }
    }
}

fn service_ports(ports: &[Value], report: &mut Report) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut seen: BTreeSet<(&str, i64)> = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = text(port, "/name");
        if name.is_empty() {
            if ports.len() > 1 {
                report.required(format!("{path}.name"), "");
            }
        } else {
            report.dns_label(&format!("{path}.name"), name);
            if !names.insert(name) {
                report.duplicate(format!("{path}.name"), name);
            }
        }
        let number = at(port, "/port").as_i64().unwrap_or_default();
        report.port(format!("{path}.port"), number);
        let protocol = text(port, "/protocol");
        report.one_of(&format!("{path}.protocol"), protocol, PROTOCOLS);
        app_protocol(port, &path, report);
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
        if !seen.insert((protocol, number)) {
            let key = json!({"protocol": protocol, "port": number});
            report.duplicate(path, internal::form("io.k8s.api.core.v1.ServicePort", &key));
        }
    }
}
