//! What is said of the containers of a running Pod.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::items;
use super::security::identity;

/// Containers, and where it is said how they are.
const ALL: [(&str, &str); 3] = [
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
];
const HEALTH: &[&str] = &["Healthy", "Unhealthy", "Unknown"];
const LONGEST_MESSAGE: usize = 1024;

/// A container that ended runs again only if it may be started again.
pub(super) fn transitions(
    status: &Value,
    before: &Value,
    spec: &Value,
    place: &Place<'_>,
    report: &mut Report,
) {
    let all_may = ["initContainers", "containers"].iter().any(|field| {
        let mut rules = items(spec, field).iter().flat_map(|one| items(one, "restartPolicyRules"));
        rules.any(|rule| text(rule, "/action") == "RestartAllContainers")
    });
    for (containers, field) in ALL {
        let is_lasting = containers != "ephemeralContainers";
        if is_lasting && all_may {
            continue;
        }
        let place = place.field(field);
        for (index, old) in items(before, field).iter().enumerate() {
            let Some(ended) = old.pointer("/state/terminated") else { continue };
            let namesake = |other: &&Value| other.get("name") == old.get("name");
            let runs = |new: &&Value| namesake(new) && new.pointer("/state/terminated").is_none();
            let container = items(spec, containers).iter().find(namesake);
            let code = at(ended, "/exitCode").as_i64().unwrap_or_default();
            let may = is_lasting && container.is_some_and(|found| may_restart(found, spec, code));
            if items(status, field).iter().any(|new| runs(&new)) && !may {
                let why = "may not be transitioned to non-terminated state";
                report.forbidden(place.item(index).field("state"), why);
            }
        }
    }
}

/// Whether a container that ended with the code is started again.
fn may_restart(container: &Value, spec: &Value, code: i64) -> bool {
    let own = at(container, "/restartPolicy").as_str();
    let matches = |rule: &&Value| {
        let codes = at(rule, "/exitCodes");
        let is_listed = items(codes, "values").iter().any(|value| value.as_i64() == Some(code));
        match text(codes, "/operator") {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    };
    if own.is_some() && items(container, "restartPolicyRules").iter().any(|rule| matches(&rule)) {
        return true;
    }
    match own.unwrap_or_else(|| text(spec, "/restartPolicy")) {
        "OnFailure" => code != 0,
        policy => policy != "Never",
    }
}

/// As whom containers run, and how the devices are that they have.
pub(super) fn contents(status: &Value, spec: &Value, place: &Place<'_>, report: &mut Report) {
    let system = at(spec, "/os/name").as_str().unwrap_or("linux");
    for (_, field) in ALL {
        let place = place.field(field);
        for (index, found) in items(status, field).iter().enumerate() {
            if let Some(user) = found.pointer("/user/linux") {
                self::user(user, system, &place.item(index).field("user.linux"), report);
            }
        }
    }
    for (containers, field) in ALL {
        let place = place.field(field);
        for (index, found) in items(status, field).iter().enumerate() {
            let place = place.item(index);
            let place = place.field("allocatedResourcesStatus");
            let devices = items(found, "allocatedResourcesStatus");
            if containers == "ephemeralContainers" {
                if !devices.is_empty() {
                    report.forbidden(place, "must not be specified in container status");
                }
                continue;
            }
            let container = items(spec, containers)
                .iter()
                .find(|container| text(container, "/name") == text(found, "/name"));
            for (index, device) in devices.iter().enumerate() {
                self::device(device, container, &place.item(index), report);
            }
        }
    }
}

fn user(user: &Value, system: &str, place: &Place<'_>, report: &mut Report) {
    if system == "windows" {
        report.forbidden(place, "cannot be set for a windows pod");
    }
    if system != "linux" {
        return;
    }
    for field in ["uid", "gid"] {
        identity(at(user, &format!("/{field}")), place.field(field), report);
    }
    let groups = place.field("supplementalGroups");
    for (index, group) in items(user, "supplementalGroups").iter().enumerate() {
        identity(group, groups.item(index), report);
    }
}

/// A device that a container has: one that it asked for, and how it is.
fn device(device: &Value, container: Option<&Value>, place: &Place<'_>, report: &mut Report) {
    let name = text(device, "/name");
    if let Some(container) = container {
        let claim = |claim: &Value| match text(claim, "/request") {
            "" => format!("claim:{}", text(claim, "/name")),
            request => format!("claim:{}/{request}", text(claim, "/name")),
        };
        let claims = items(at(container, "/resources"), "claims");
        let (is_known, why) = if name.starts_with("claim:") {
            let why = "must match one of the container's resource claims in a format \
                       'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
            (claims.iter().any(|one| claim(one) == name), why)
        } else {
            let asked = at(container, "/resources/requests").get(name);
            (asked.is_some(), "must match one of the container's resource requests")
        };
        if !is_known {
            report.invalid(place.field("name"), name, why);
        }
    }
    let (resources, place) = (items(device, "resources"), place.field("resources"));
    for (index, resource) in resources.iter().enumerate() {
        let (place, id) = (place.item(index), text(resource, "/resourceID"));
        let health = text(resource, "/health");
        if !HEALTH.contains(&health) {
            report.unsupported(&place.field("health"), &health.into(), HEALTH);
        }
        match at(resource, "/message").as_str() {
            Some("") => report.required(place.field("message"), "must be non-empty if specified"),
            Some(message) if message.len() > LONGEST_MESSAGE => {
                report.too_long(place.field("message"), LONGEST_MESSAGE);
            }
            _ => {}
        }
        if resources[..index].iter().any(|other| text(other, "/resourceID") == id) {
            report.duplicate(place.field("resourceID"), id);
        }
    }
}
