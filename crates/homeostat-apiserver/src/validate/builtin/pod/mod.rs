//! Pods and what they are made of, alone or as the template of a workload: the order of the rules.
//!
//! Each part has a file of its own; here is only what a Pod, a template and a spec are made of.

mod affinity;
mod change;
mod claims;
mod container;
pub(super) mod disks;
mod environment;
mod ephemeral;
mod handlers;
mod mounts;
mod names;
mod profiles;
mod projected;
mod restart;
mod scheduling;
mod security;
mod spread;
pub(super) mod status;
mod statuses;
mod system;
mod volumes;
mod windows;

use serde_json::Value;

use super::place::Place;
use super::report::{Report, at, list, text};
use super::{resources, workload};
use crate::validate::{metadata, name};

pub(super) use change::update;
pub(super) use ephemeral::change as ephemeral_change;

/// Whose annotation says that a Pod mirrors one that a node started by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What the rules of a spec need to know from outside of it.
#[derive(Debug, Clone, Copy, Default)]
struct Around<'a> {
    /// The name of the Pod; templates have none.
    name: &'a str,
    is_pod: bool,
    is_mirror: bool,
    /// Whether its host name is given by somebody else.
    is_replica: bool,
    /// Claims that somebody else will add as volumes, in front of the others.
    claims: &'a [&'a str],
}

/// What the rules of a container need to know of the spec it is in.
#[derive(Debug, Clone, Copy)]
struct Inside<'a> {
    spec: &'a Value,
    volumes: &'a [volumes::Volume<'a>],
}

pub(super) fn pod(value: &Value, old: Option<&Value>, report: &mut Report) {
    profiles::annotations(value, "metadata.annotations", report);
    let annotations = at(value, "/metadata/annotations");
    let around = Around {
        name: text(value, "/metadata/name"),
        is_pod: true,
        is_mirror: annotations.get(MIRROR).is_some(),
        ..Around::default()
    };
    let (spec, place) = (at(value, "/spec"), Place::Root("spec"));
    self::spec(spec, &place, around, report);
    if text(spec, "/serviceAccountName").is_empty() {
        volumes::without_account(spec, &place, report);
    }
    for field in ["containers", "initContainers"] {
        for (index, found) in items(spec, field).iter().enumerate() {
            container::image(found, &place.field(field).item(index), report);
        }
    }
    let Some(old) = old else {
        if !list(spec, "/ephemeralContainers").is_empty() {
            report.forbidden("spec.ephemeralContainers", "cannot be set on create");
        }
        if !text(spec, "/nodeName").is_empty() && !list(spec, "/schedulingGates").is_empty() {
            let why = "cannot be set until all schedulingGates have been cleared";
            report.forbidden("spec.nodeName", why);
        }
        profiles::agreement(value, "spec", report);
        return;
    };
    profiles::kept_annotations(value, old, report);
}

pub(super) fn pod_template(value: &Value, _: Option<&Value>, report: &mut Report) {
    template(at(value, "/template"), "template", report);
}

/// A template: labels and a spec.
pub(super) fn template(value: &Value, path: &str, report: &mut Report) {
    template_around(value, path, Around::default(), report);
}

/// A template of Pods that get volumes for the claims, and names of their own, from somebody else.
pub(super) fn replica_template(value: &Value, path: &str, claims: &[&str], report: &mut Report) {
    template_around(value, path, Around { claims, is_replica: true, ..Around::default() }, report);
}

fn template_around(value: &Value, path: &str, around: Around<'_>, report: &mut Report) {
    labels_and_annotations(value, path, report);
    let root = Place::Root(path);
    spec(at(value, "/spec"), &root.field("spec"), around, report);
    profiles::agreement(value, &format!("{path}.spec"), report);
    if !list(value, "/spec/ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        report.forbidden(root.field("spec.ephemeralContainers"), why);
    }
}

/// What a template has besides its spec.
pub(super) fn labels_and_annotations(value: &Value, path: &str, report: &mut Report) {
    report.labels(at(value, "/metadata/labels"), &format!("{path}.labels"));
    let annotations = value.get("metadata").and_then(|meta| meta.get("annotations"));
    let path = format!("{path}.annotations");
    report.errors.extend(metadata::annotations(annotations, &path));
    profiles::annotations(value, &path, report);
}

/// The tolerations of a Pod, or of what gives some to Pods; `path` leads to what has them.
pub(super) fn tolerations(spec: &Value, path: &str, report: &mut Report) {
    scheduling::tolerations(spec, &Place::Root(path).field("tolerations"), report);
}

/// The list of a field of that name.
fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// All containers with their places below the spec, those that begin first in front.
fn each_container(spec: &Value, place: &Place<'_>, mut visit: impl FnMut(&Value, &Place<'_>)) {
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let place = place.field(field);
        for (index, container) in items(spec, field).iter().enumerate() {
            visit(container, &place.item(index));
        }
    }
}

fn is_true(value: &Value, pointer: &str) -> bool {
    at(value, pointer) == &Value::Bool(true)
}

/// A spec, in the order in which its parts are looked at.
fn spec(spec: &Value, place: &Place<'_>, around: Around<'_>, report: &mut Report) {
    let volumes = volumes::volumes(spec, &place.field("volumes"), around, report);
    claims::claims(spec, &place.field("resourceClaims"), around, report);
    let inside = Inside { spec, volumes: &volumes };
    container::containers(inside, place, report);
    container::init_containers(inside, place, report);
    ephemeral::containers(inside, &place.field("ephemeralContainers"), report);
    resources::pod(spec, place, report);
    ports_of_host(spec, place, around, report);
    let policy = text(spec, "/restartPolicy");
    report.one_of(&place.field("restartPolicy"), policy, &["Always", "OnFailure", "Never"]);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    report.one_of(&place.field("dnsPolicy"), text(spec, "/dnsPolicy"), &dns);
    labels(at(spec, "/nodeSelector"), &place.field("nodeSelector"), report);
    security::pod(spec, place, report);
    affinity::affinity(at(spec, "/affinity"), &place.field("affinity"), report);
    names::resolution(spec, &place.field("dnsConfig"), report);
    scheduling::gates(spec, place, report);
    spread::constraints(spec, &place.field("topologySpreadConstraints"), report);
    windows::host_processes(spec, place, report);
    system::own_users(spec, place, report);
    names::host_name(spec, place, report);
    for (field, form) in [
        ("serviceAccountName", name::dns_subdomain as fn(&str) -> Vec<String>),
        ("nodeName", name::dns_subdomain),
    ] {
        if let Some(given) = given(spec, field) {
            report.problems(&place.field(field), given, form);
        }
    }
    if let Some(seconds) = at(spec, "/activeDeadlineSeconds").as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        report.invalid(place.field("activeDeadlineSeconds"), seconds, why);
    }
    for field in ["hostname", "subdomain"] {
        if let Some(given) = given(spec, field).filter(|_| !around.is_replica) {
            report.problems(&place.field(field), given, name::dns_label);
        }
    }
    scheduling::tolerations(spec, &place.field("tolerations"), report);
    names::aliases(spec, &place.field("hostAliases"), report);
    if let Some(given) = given(spec, "priorityClassName") {
        report.problems(&place.field("priorityClassName"), given, name::dns_subdomain);
    }
    if let Some(given) = at(spec, "/runtimeClassName").as_str() {
        report.problems(&place.field("runtimeClassName"), given, name::dns_subdomain);
    }
    if let Some(given) = at(spec, "/preemptionPolicy").as_str() {
        report.one_of(&place.field("preemptionPolicy"), given, &["PreemptLowerPriority", "Never"]);
    }
    resources::overhead(at(spec, "/overhead"), &place.field("overhead"), report);
    system::system(spec, place, report);
    environment::files(spec, place, report);
}

/// A text that is there and not empty.
fn given<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Labels, wherever they are.
fn labels(given: &Value, place: &Place<'_>, report: &mut Report) {
    if given.as_object().is_some_and(|given| !given.is_empty()) {
        report.labels(given, &place.to_string());
    }
}

/// A selector of labels, where there is one.
fn selector(given: &Value, place: &Place<'_>, report: &mut Report) {
    if given.is_object() {
        workload::selector(given, &place.to_string(), report);
    }
}

/// On the network of its node, a Pod has the ports that it says.
fn ports_of_host(spec: &Value, place: &Place<'_>, around: Around<'_>, report: &mut Report) {
    if !is_true(spec, "/hostNetwork") {
        return;
    }
    let place = place.field("containers");
    for (index, container) in items(spec, "containers").iter().enumerate() {
        let (place, number) = (place.item(index), |port: &Value, field: &str| {
            port.get(field).and_then(Value::as_i64).unwrap_or_default()
        });
        for (index, port) in items(container, "ports").iter().enumerate() {
            let (host, own) = (number(port, "hostPort"), number(port, "containerPort"));
            if (around.is_pod || host != 0) && host != own {
                let why = "must match `containerPort` when `hostNetwork` is true";
                report.invalid(place.field("ports").item(index).field("hostPort"), host, why);
            }
        }
    }
}

#[cfg(test)]
mod tests;
