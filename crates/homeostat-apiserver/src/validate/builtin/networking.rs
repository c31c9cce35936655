//! Ingresses and their classes.

use serde_json::Value;

use super::report::{Report, at, list, text};
use super::service::balanced_addresses;
use crate::validate::{ip, name};

const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];

pub(super) fn ingress(value: &Value, old: Option<&Value>, report: &mut Report) {
    balanced_addresses(value, old, report);
    let rules = list(value, "/spec/rules");
    let default = value.pointer("/spec/defaultBackend");
    if rules.is_empty() && default.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        report.invalid("spec", Value::Null, detail);
    }
    if let Some(default) = default {
        backend(default, "spec.defaultBackend", report);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("spec.rules[{index}]");
        host(text(rule, "/host"), &format!("{path}.host"), report);
        let paths = list(rule, "/http/paths");
        if rule.get("http").is_some() && paths.is_empty() {
            report.required(format!("{path}.http.paths"), "");
        }
        for (index, found) in paths.iter().enumerate() {
            http_path(found, &format!("{path}.http.paths[{index}]"), report);
        }
    }
    let class = text(value, "/spec/ingressClassName");
    if value.pointer("/spec/ingressClassName").is_some() {
        for problem in name::dns_subdomain(class) {
            report.invalid("spec.ingressClassName", class, problem);
        }
    }
}

fn host(host: &str, path: &str, report: &mut Report) {
    if host.is_empty() {
        return;
    }
    if ip::generous(host).is_some() {
        report.invalid(path, host, "must be a DNS name, not an IP address");
    }
    let plain = host.strip_prefix("*.").unwrap_or(host);
    if plain.contains('*') {
        let detail = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
                      subdomain, which must consist of lower case alphanumeric characters, '-' or \
                      '.' and end with an alphanumeric character (e.g. '*.example.com', regex used \
                      for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        report.invalid(path, host, detail);
        return;
    }
    for problem in name::dns_subdomain(plain) {
        report.invalid(path, host, problem);
    }
}

fn http_path(found: &Value, path: &str, report: &mut Report) {
    let (ty, given) = (text(found, "/pathType"), text(found, "/path"));
    if ty.is_empty() {
        report.required(format!("{path}.pathType"), "pathType must be specified");
        return;
    }
    let absolute = given.starts_with('/') || (ty == "ImplementationSpecific" && given.is_empty());
    if !PATH_TYPES.contains(&ty) {
        report.one_of(&format!("{path}.pathType"), ty, PATH_TYPES);
    } else if !absolute {
        report.invalid(format!("{path}.path"), given, "must be an absolute path");
    }
    if matches!(ty, "Exact" | "Prefix") {
        for sequence in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|s| given.contains(**s)) {
            let detail = format!("must not contain '{sequence}'");
            report.invalid(format!("{path}.path"), given, detail);
        }
        for end in ["/..", "/."].iter().filter(|end| given.ends_with(**end)) {
            report.invalid(format!("{path}.path"), given, format!("cannot end with '{end}'"));
        }
    }
    backend(at(found, "/backend"), &format!("{path}.backend"), report);
}

fn backend(backend: &Value, path: &str, report: &mut Report) {
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    let Some(service) = service else {
        if resource.is_none() {
            report.invalid(path, "", "resource or service backend is required");
        }
        return;
    };
    if resource.is_some() {
        report.invalid(path, "", "cannot set both resource and service backends");
        return;
    }
    report.dns_label(&format!("{path}.service.name"), text(service, "/name"));
    let (port, number) = (text(service, "/port/name"), at(service, "/port/number").as_i64());
    match (port, number.filter(|number| *number != 0)) {
        ("", None) => report.required(path, "port name or number is required"),
        ("", Some(number)) => report.port(format!("{path}.service.port.number"), number),
        (_, Some(_)) => report.invalid(path, "", "cannot set both port name & port number"),
        (name, None) => {
            for problem in name::port_name(name) {
                report.invalid(format!("{path}.service.port.name"), name, problem);
            }
        }
    }
}

pub(super) fn ingress_class(value: &Value, old: Option<&Value>, report: &mut Report) {
    report.immutable(value, old, "/spec/controller");
    let controller = text(value, "/spec/controller");
    if controller.is_empty() {
        report.required("spec.controller", "");
        return;
    }
    match controller.split_once('/') {
        None | Some((_, "")) => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            report.invalid("spec.controller", controller, detail);
        }
        Some((domain, _)) => {
            for problem in name::dns_subdomain(domain) {
                report.invalid("spec.controller", domain, problem);
            }
        }
    }
}
