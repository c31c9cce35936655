//! Ingresses and their classes.

use serde_json::Value;

use super::devices::too_long;
use super::report::{Report, at, list, text};
use super::service::balanced_addresses;
use crate::validate::{ip, name};

const LONGEST_CONTROLLER: usize = 250;
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
    for (index, tls) in list(value, "/spec/tls").iter().enumerate() {
        let path = format!("spec.tls[{index}]");
        for (index, host) in list(tls, "/hosts").iter().enumerate() {
            let host = host.as_str().unwrap_or_default();
            dns_name(host, &format!("{path}.hosts[{index}]"), report);
        }
        let secret = text(tls, "/secretName");
        if !secret.is_empty() {
            report.name(&format!("{path}.secretName"), secret, name::dns_subdomain);
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
    dns_name(host, path, report);
}

/// A name that may have a star in place of its first part.
fn dns_name(host: &str, path: &str, report: &mut Report) {
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
    if found.get("pathType").is_none_or(Value::is_null) {
        report.required(format!("{path}.pathType"), "pathType must be specified");
        return;
    }
    let absolute = given.starts_with('/') || (ty == "ImplementationSpecific" && given.is_empty());
    if !PATH_TYPES.contains(&ty) {
        report.unsupported(&format!("{path}.pathType"), &ty.into(), PATH_TYPES);
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
        match resource {
            None => report.invalid(path, "", "resource or service backend is required"),
            Some(resource) => reference(resource, &format!("{path}.resource"), report),
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

/// An object that is named by its kind.
fn reference(to: &Value, path: &str, report: &mut Report) {
    if let Some(group) = to.get("apiGroup").and_then(Value::as_str) {
        for problem in name::dns_subdomain(group) {
            report.invalid(format!("{path}.apiGroup"), group, problem);
        }
    }
    for field in ["kind", "name"] {
        let given = text(to, &format!("/{field}"));
        report.name(&format!("{path}.{field}"), given, name::path_segment);
    }
}

pub(super) fn ingress_class(value: &Value, old: Option<&Value>, report: &mut Report) {
    report.immutable(value, old, "/spec/controller");
    controller(text(value, "/spec/controller"), "spec.controller", report);
    let Some(parameters) = value.pointer("/spec/parameters") else { return };
    let path = "spec.parameters";
    reference(parameters, path, report);
    let space = parameters.get("namespace").and_then(Value::as_str);
    let place = format!("{path}.namespace");
    match (at(parameters, "/scope").as_str(), space) {
        (None, _) => report.required(format!("{path}.scope"), ""),
        (Some("Namespace"), None) => {
            report.required(place, "`parameters.scope` is set to 'Namespace'");
        }
        (Some("Namespace"), Some(space)) => {
            for problem in name::dns_label(space) {
                report.invalid(place.as_str(), space, problem);
            }
        }
        (Some("Cluster"), None) => {}
        (Some("Cluster"), Some(_)) => {
            report.forbidden(place, "`parameters.scope` is set to 'Cluster'");
        }
        (Some(other), _) => {
            let path = format!("{path}.scope");
            report.unsupported(&path, &other.into(), &["Cluster", "Namespace"]);
        }
    }
}

/// A path below a domain.
fn controller(given: &str, path: &str, report: &mut Report) {
    if given.is_empty() {
        report.required(path, "");
        return;
    }
    if given.len() > LONGEST_CONTROLLER {
        too_long(path, LONGEST_CONTROLLER, report);
    }
    match given.split_once('/') {
        None | Some(("", _) | (_, "")) => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            report.invalid(path, given, detail);
        }
        Some((domain, rest)) => {
            for problem in name::dns_subdomain(domain) {
                report.invalid(path, domain, problem);
            }
            let plain = |letter: char| {
                letter.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(letter)
            };
            if !rest.chars().all(plain) {
                let detail = "Invalid path (regex used for validation is \
                              '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                report.invalid(path, rest, detail);
            }
        }
    }
}
