//! Containers: what all of them must have, and what only some of them may have.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::super::resources;
use super::{Inside, environment, handlers, items, mounts, restart, security};
use crate::validate::name;

const ONLY_FOR_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";

/// The containers that are the Pod.
pub(super) fn containers(inside: Inside<'_>, place: &Place<'_>, report: &mut Report) {
    let place = place.field("containers");
    let containers = items(inside.spec, "containers");
    if containers.is_empty() {
        report.required(place, "");
        return;
    }
    for (index, found) in containers.iter().enumerate() {
        let place = place.item(index);
        container(found, inside, &place, report);
        let name = text(found, "/name");
        if containers[..index].iter().any(|other| text(other, "/name") == name) {
            report.duplicate(place.field("name"), name);
        }
        handlers::handlers(found, inside, &place, report);
        restart::policy(found, &place, report);
    }
    host_ports(containers, &place, report);
}

/// The containers that run before them, or beside them as helpers.
pub(super) fn init_containers(inside: Inside<'_>, place: &Place<'_>, report: &mut Report) {
    let whole = place.field("initContainers");
    let containers = items(inside.spec, "initContainers");
    for (index, found) in containers.iter().enumerate() {
        let place = whole.item(index);
        container(found, inside, &place, report);
        restart::policy(found, &place, report);
        let name = text(found, "/name");
        let others = items(inside.spec, "containers");
        let namesake = |other: &Value| text(other, "/name") == name;
        if others.iter().any(namesake)
            || (!name.is_empty() && containers[..index].iter().any(namesake))
        {
            report.duplicate(place.field("name"), name);
        }
        host_ports(std::slice::from_ref(found), &whole, report);
        let is_sidecar = text(found, "/restartPolicy") == "Always";
        if is_sidecar {
            handlers::handlers(found, inside, &place, report);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if found.get(field).is_some() {
                report.forbidden(place.field(field), ONLY_FOR_SIDECARS);
            }
        }
        let place = place.field("resizePolicy");
        for (index, policy) in items(found, "resizePolicy").iter().enumerate() {
            if text(policy, "/restartPolicy") == "RestartContainer" {
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                let place = place.item(index);
                report.invalid(place.field("restartPolicy"), "RestartContainer", why);
            }
        }
    }
}

/// What all containers share.
pub(super) fn container(
    container: &Value,
    inside: Inside<'_>,
    place: &Place<'_>,
    report: &mut Report,
) {
    report.dns_label(&place.field("name"), text(container, "/name"));
    if text(container, "/image").is_empty() {
        report.required(place.field("image"), "");
    }
    let message = text(container, "/terminationMessagePolicy");
    let sources = ["File", "FallbackToLogsOnError"];
    report.one_of(&place.field("terminationMessagePolicy"), message, &sources);
    ports(container, &place.field("ports"), report);
    environment::environment(container, place, report);
    mounts::mounts(container, inside.volumes, place, report);
    let policy = text(container, "/imagePullPolicy");
    pull_policy(policy, &place.field("imagePullPolicy"), report);
    resources::container(container, inside.spec, place, report);
    resize_policies(container, inside.spec, &place.field("resizePolicy"), report);
    let shares_users = !is_false(inside.spec, "hostUsers");
    security::container(container, shares_users, &place.field("securityContext"), report);
}

pub(super) fn is_false(value: &Value, field: &str) -> bool {
    value.get(field) == Some(&Value::Bool(false))
}

/// The image of a Pod that is to run has no spaces around it.
pub(super) fn image(container: &Value, place: &Place<'_>, report: &mut Report) {
    let image = text(container, "/image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        report.invalid(place.field("image"), image, why);
    }
}

pub(super) fn pull_policy(policy: &str, place: &Place<'_>, report: &mut Report) {
    report.one_of(place, policy, &["Always", "IfNotPresent", "Never"]);
}

fn ports(container: &Value, place: &Place<'_>, report: &mut Report) {
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in items(container, "ports").iter().enumerate() {
        let place = place.item(index);
        let name = text(port, "/name");
        if !name.is_empty() {
            let before = report.errors.len();
            report.problems(&place.field("name"), name, name::port_name);
            if names.contains(&name) {
                report.duplicate(place.field("name"), name);
            } else if report.errors.len() == before {
                names.push(name);
            }
        }
        match at(port, "/containerPort").as_i64() {
            None | Some(0) => report.required(place.field("containerPort"), ""),
            Some(number) => report.port(place.field("containerPort"), number),
        }
        if let Some(number) = at(port, "/hostPort").as_i64().filter(|number| *number != 0) {
            report.port(place.field("hostPort"), number);
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        report.one_of(&place.field("protocol"), text(port, "/protocol"), &protocols);
    }
}

/// No two ports of these containers are the same one of the node.
fn host_ports(containers: &[Value], place: &Place<'_>, report: &mut Report) {
    let mut seen: Vec<(&str, &str, i64)> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let place = place.item(index);
        let place = place.field("ports");
        for (index, port) in items(container, "ports").iter().enumerate() {
            let number = at(port, "/hostPort").as_i64().unwrap_or_default();
            if number == 0 {
                continue;
            }
            let key = (text(port, "/protocol"), text(port, "/hostIP"), number);
            if seen.contains(&key) {
                let shown = format!("{}/{}/{number}", key.0, key.1);
                report.duplicate(place.item(index).field("hostPort"), shown);
            }
            seen.push(key);
        }
    }
}

/// What a container does when its size changes.
fn resize_policies(container: &Value, spec: &Value, place: &Place<'_>, report: &mut Report) {
    let policies = items(container, "resizePolicy");
    for (index, policy) in policies.iter().enumerate() {
        let (name, restart) = (text(policy, "/resourceName"), text(policy, "/restartPolicy"));
        if policies[..index].iter().any(|other| text(other, "/resourceName") == name) {
            report.duplicate(place.item(index), name);
        }
        report.one_of(place, name, &["cpu", "memory"]);
        report.one_of(place, restart, &["NotRequired", "RestartContainer"]);
        if text(spec, "/restartPolicy") == "Never" && restart != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            report.invalid(place, restart, why);
        }
    }
}
