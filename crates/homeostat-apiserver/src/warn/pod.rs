//! Pods and their templates.

use std::collections::BTreeMap;

use serde_json::Value;

use super::addresses::of_addresses;
use super::storage::{OLD_PLUGINS, is_of, of_claim_spec};
use super::volumes;
use super::{has_annotation, keys, list, of_fraction, of_node_term, old_label, text};
use crate::registry::profile_of;
use crate::validate::ip;

const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
const USE_SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

pub(super) fn of_pod(pod: &Value, warnings: &mut Vec<String>) {
    of_any(pod, "", warnings);
}

pub(super) fn of_template(template: &Value, path: &str, warnings: &mut Vec<String>) {
    of_any(template, &format!("{path}."), warnings);
}

/// `path` ends with a dot, or is empty for a Pod itself.
fn of_any(pod: &Value, path: &str, warnings: &mut Vec<String>) {
    let spec = &pod["spec"];
    of_nodes(spec, path, warnings);
    for (key, why) in OLD_ANNOTATIONS {
        if has_annotation(pod, key) {
            warnings.push(format!("{path}metadata.annotations[{key}]: {why}"));
        }
    }
    of_volumes(spec, path, warnings);
    volumes::of_overlaps(spec, warnings);
    of_repeated(spec, path, warnings);
    for name in ["memory", "ephemeral-storage"] {
        of_fraction(&spec["overhead"], name, &format!("{path}spec.overhead"), warnings);
    }
    let key = "seccomp.security.alpha.kubernetes.io/pod";
    if spec.pointer("/securityContext/seccompProfile").is_none() && has_annotation(pod, key) {
        warnings.push(format!("{path}metadata.annotations[{key}]: {USE_SECCOMP}"));
    }
    let containers = containers(spec, path);
    for (path_of_it, container) in &containers {
        of_profiles(pod, container, path, warnings);
        for name in ["memory", "ephemeral-storage"] {
            for field in ["limits", "requests"] {
                let place = format!("{path_of_it}.resources.{field}");
                of_fraction(&container["resources"][field], name, &place, warnings);
            }
        }
        of_environment(container, path_of_it, warnings);
    }
    of_ports(&containers, warnings);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{path}spec.terminationGracePeriodSeconds: {why}"));
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        for (when, below) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", ".podAffinityTerm"),
        ] {
            for (index, term) in list(spec, &format!("/affinity/{field}/{when}")).iter().enumerate()
            {
                let selector = format!("{}/labelSelector", below.replace('.', "/"));
                if term.pointer(&selector).is_none() {
                    let place = format!("{path}spec.affinity.{field}.{when}[{index}]{below}");
                    warnings.push(format!("{place}.labelSelector: {NO_SELECTOR}"));
                }
            }
        }
    }
    let servers = list(spec, "/dnsConfig/nameservers");
    of_addresses(servers, &format!("{path}spec.dnsConfig.nameservers"), warnings);
    for (index, alias) in list(spec, "/hostAliases").iter().enumerate() {
        let place = format!("{path}spec.hostAliases[{index}].ip");
        warnings.extend(ip::warning(&place, text(alias, "/ip")));
    }
}

fn containers<'a>(spec: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|field| {
            let found = list(spec, &format!("/{field}")).iter().enumerate();
            found.map(move |(index, found)| (format!("{path}spec.{field}[{index}]"), found))
        })
        .collect()
}

fn of_nodes(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    for key in keys(&spec["nodeSelector"]) {
        if let Some(why) = old_label(key) {
            warnings.push(format!("{path}spec.nodeSelector[{key}]: {why}"));
        }
    }
    let nodes = format!("{path}spec.affinity.nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = format!("/affinity/nodeAffinity/{required}/nodeSelectorTerms");
    for (index, term) in list(spec, &terms).iter().enumerate() {
        let place = format!("{nodes}.{required}.nodeSelectorTerms[{index}]");
        of_node_term(term, false, &place, warnings);
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let terms = list(spec, &format!("/affinity/nodeAffinity/{preferred}"));
    for (index, term) in terms.iter().enumerate() {
        let place = format!("{nodes}.{preferred}[{index}].preference");
        of_node_term(&term["preference"], true, &place, warnings);
    }
    for (index, spread) in list(spec, "/topologySpreadConstraints").iter().enumerate() {
        let place = format!("{path}spec.topologySpreadConstraints[{index}]");
        let key = text(spread, "/topologyKey");
        if let Some(why) = old_label(key) {
            warnings.push(format!("{place}.topologyKey: {key} is {why}"));
        }
        if spread.get("labelSelector").is_none() {
            warnings.push(format!("{place}.labelSelector: {NO_SELECTOR}"));
        }
    }
}

fn of_volumes(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    for (index, volume) in list(spec, "/volumes").iter().enumerate() {
        let path = format!("{path}spec.volumes[{index}]");
        for (plugin, why) in OLD_PLUGINS.iter().filter(|(plugin, _)| is_of(volume, plugin)) {
            warnings.push(format!("{path}.{plugin}: {why}"));
        }
        if let Some(claim) = volume.pointer("/ephemeral/volumeClaimTemplate/spec") {
            let path = format!("{path}.ephemeral.volumeClaimTemplate.spec");
            of_claim_spec(claim, &path, warnings);
        }
    }
}

fn of_repeated(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    for (field, name) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen: Vec<&str> = Vec::new();
        for (index, item) in list(spec, &format!("/{field}")).iter().enumerate() {
            let value = text(item, &format!("/{name}"));
            if seen.contains(&value) {
                warnings.push(format!(
                    "{path}spec.{field}[{index}].{name}: duplicate {name} {value:?}"
                ));
            }
            seen.push(value);
        }
    }
    for (index, secret) in list(spec, "/imagePullSecrets").iter().enumerate() {
        if text(secret, "/name").is_empty() {
            let place = format!("{path}spec.imagePullSecrets[{index}].name");
            warnings.push(format!("{place}: invalid empty name \"\""));
        }
    }
}

/// Annotations that were fields before there were fields.
fn of_profiles(pod: &Value, container: &Value, path: &str, warnings: &mut Vec<String>) {
    let name = text(container, "/name");
    let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
    if container.pointer("/securityContext/seccompProfile").is_none() && has_annotation(pod, &key) {
        warnings.push(format!("{path}metadata.annotations[{key}]: {USE_SECCOMP}"));
    }
    if !path.is_empty() && container.pointer(APP_ARMOR).is_none() {
        of_old_profile(pod, name, path, warnings);
    }
}

const APP_ARMOR: &str = "/securityContext/appArmorProfile";

/// The annotation for a container, unless it asks for what the Pod has.
fn of_old_profile(pod: &Value, container: &str, path: &str, warnings: &mut Vec<String>) {
    let key = format!("container.apparmor.security.beta.kubernetes.io/{container}");
    let annotation = pod["metadata"]["annotations"].get(&key).and_then(Value::as_str);
    let Some(profile) = annotation.map(profile_of) else { return };
    if profile.is_none() || profile.as_ref() != pod["spec"].pointer(APP_ARMOR) {
        let why = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        warnings.push(format!("{path}metadata.annotations[{key}]: {why}"));
    }
}

/// Annotations of a new Pod, before they become fields.
pub(super) fn of_old_profiles(pod: &Value, warnings: &mut Vec<String>) {
    if text(pod, "/spec/os/name") == "windows" {
        return;
    }
    for (_, container) in containers(&pod["spec"], "") {
        if container.pointer(APP_ARMOR).is_none() {
            let name = text(container, "/name");
            of_old_profile(pod, name, "", warnings);
        }
    }
}

fn of_environment(container: &Value, path: &str, warnings: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, variable) in list(container, "/env").iter().enumerate() {
        let (name, value) = (text(variable, "/name"), text(variable, "/value"));
        let reference = format!("$({name})");
        // One that builds on the former is meant.
        let extends = value.contains(&reference) && value != reference;
        if seen.contains(&name) && (variable.get("valueFrom").is_some() || !extends) {
            warnings.push(format!(
                "{path}.env[{index}]: hides previous definition of {name:?}, which may be dropped \
                 when using apply"
            ));
        }
        seen.push(name);
    }
}

fn of_ports(containers: &[(String, &Value)], warnings: &mut Vec<String>) {
    let mut ports: BTreeMap<(i64, &str), Vec<(String, &Value)>> = BTreeMap::new();
    let host = |port: &Value| port["hostPort"].as_i64().unwrap_or(0);
    for (path, container) in containers {
        for (index, port) in list(container, "/ports").iter().enumerate() {
            let path = format!("{path}.ports[{index}]");
            let ip = text(port, "/hostIP");
            let (number, protocol) =
                (port["containerPort"].as_i64().unwrap_or(0), text(port, "/protocol"));
            if !ip.is_empty() && host(port) == 0 {
                let name = text(port, "/name");
                warnings.push(format!(
                    "{path}: hostIP set without hostPort: {{Name:{name} HostPort:0 \
                     ContainerPort:{number} Protocol:{protocol} HostIP:{ip}}}"
                ));
            }
            let others = ports.entry((number, protocol)).or_default();
            for (place, other) in others.iter() {
                let other_ip = text(other, "/hostIP");
                let what = if ip == other_ip && host(port) == host(other) {
                    "duplicate"
                } else if host(port) == 0 || host(other) == 0 {
                    "overlapping"
                } else if host(port) == host(other) && (ip.is_empty() != other_ip.is_empty()) {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                warnings.push(format!("{path}: {what} port definition with {place}"));
            }
            others.push((path, port));
        }
    }
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for (path, container) in containers {
        for (index, port) in list(container, "/ports").iter().enumerate() {
            let (path, name) = (format!("{path}.ports[{index}]"), text(port, "/name"));
            if name.is_empty() {
                continue;
            }
            match names.get(name) {
                Some(other) => warnings.push(format!(
                    "{path}: duplicate port name {name:?} with {other}, services and probes that \
                     select ports by name will use {other}"
                )),
                None => drop(names.insert(name, path)),
            }
        }
    }
}
