//! What is said of a running Pod: its conditions, addresses and claims, and what it never takes back.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, list, text};
use super::{items, statuses};
use crate::go::internal::form;
use crate::validate::{ip, name};

/// Conditions that need no domain, whatever they say.
const OF_THE_SYSTEM: &[&str] = &["PodScheduled", "Ready", "Initialized"];
const NOT_NEGATIVE: &str = "must be a non-negative integer";

/// A write of the status, in the order in which its parts are looked at.
pub(in super::super) fn update(value: &Value, old: &Value, report: &mut Report) {
    let (spec, root) = (at(value, "/spec"), Place::Root("status"));
    let (status, before) = (at(value, "/status"), at(old, "/status"));
    conditions(status, &root.field("conditions"), report);
    nominated(status, old, &root.field("nominatedNodeName"), report);
    generation(status, &root, report);
    let class = text(status, "/qosClass");
    if class != text(before, "/qosClass") {
        report.invalid(root.field("qosClass"), class, "field is immutable");
    }
    statuses::transitions(status, before, at(old, "/spec"), &root, report);
    claims(status, spec, &root.field("resourceClaimStatuses"), report);
    extended(status, spec, &root.field("extendedResourceClaimStatus"), report);
    addresses(status, before, &root, report);
    statuses::contents(status, spec, &root, report);
}

fn generation(holder: &Value, place: &Place<'_>, report: &mut Report) {
    let observed = at(holder, "/observedGeneration").as_i64().unwrap_or_default();
    if observed < 0 {
        report.invalid(place.field("observedGeneration"), observed, NOT_NEGATIVE);
    }
}

fn conditions(status: &Value, place: &Place<'_>, report: &mut Report) {
    for (index, condition) in items(status, "conditions").iter().enumerate() {
        let (place, ty) = (place.item(index), text(condition, "/type"));
        generation(condition, &place, report);
        if !OF_THE_SYSTEM.contains(&ty) {
            report.problems(&place.field("Type"), ty, name::qualified);
        }
    }
}

/// The node that a Pod may get once others are gone, as long as it has none.
fn nominated(status: &Value, old: &Value, place: &Place<'_>, report: &mut Report) {
    let node = text(status, "/nominatedNodeName");
    if node.is_empty() || node == text(old, "/status/nominatedNodeName") {
        return;
    }
    report.problems(place, node, name::dns_subdomain);
    if !text(old, "/spec/nodeName").is_empty() {
        report.forbidden(place, "may not be set on pods that are already bound to a node");
    }
}

/// The claims that were made for the Pod, by the names that it has for them.
fn claims(status: &Value, spec: &Value, place: &Place<'_>, report: &mut Report) {
    let claims = items(status, "resourceClaimStatuses");
    let known = items(spec, "resourceClaims");
    for (index, claim) in claims.iter().enumerate() {
        let (place, own) = (place.item(index), text(claim, "/name"));
        let namesake = |other: &Value| text(other, "/name") == own;
        if !known.iter().any(namesake) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            report.invalid(place.field("name"), own, why);
        }
        if claims[..index].iter().any(namesake) {
            report.duplicate(place.field("name"), own);
        }
        if let Some(given) = at(claim, "/resourceClaimName").as_str() {
            report.problems(&place.field("resourceClaimName"), given, name::dns_subdomain);
        }
    }
}

/// The claim for what containers ask for under names that devices have, too.
fn extended(status: &Value, spec: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(claim) = status.get("extendedResourceClaimStatus") else { return };
    let (mappings, whole) = (items(claim, "requestMappings"), place.field("requestMappings"));
    if mappings.is_empty() {
        report.required(whole, "at least one request mapping is required");
    }
    let key = |mapping| {
        ["/containerName", "/resourceName", "/requestName"].map(|field| text(mapping, field))
    };
    for (index, mapping) in mappings.iter().enumerate() {
        let (within, [container, resource, request]) = (whole.item(index), key(mapping));
        let named = |found: &&Value| text(found, "/name") == container;
        let all = ["initContainers", "containers"].map(|field| items(spec, field)).concat();
        match all.iter().rfind(named) {
            None => {
                let why = "must match the name of an entry in spec.initContainers.name or \
                           spec.containers.name";
                report.invalid(within.field("containerName"), container, why);
            }
            Some(found) if at(found, "/resources/requests").get(resource).is_none() => {
                let why = "must match the extended resource name of an entry in \
                           spec.initContainers.resources.requests or \
                           spec.containers.resources.requests";
                report.invalid(within.field("resourceName"), resource, why);
            }
            Some(_) => {}
        }
        // The mapping is not named there.
        report.problems(&place.field("requestName"), request, name::dns_label);
        if mappings[..index].iter().any(|other| key(other) == key(mapping)) {
            report.duplicate(within.field("containerName"), container);
            report.duplicate(within.field("resourceName"), resource);
            report.duplicate(within.field("requestName"), request);
        }
    }
    report.name(
        &place.field("resourceClaimName"),
        text(claim, "/resourceClaimName"),
        name::dns_subdomain,
    );
}

/// The addresses of the Pod and of its node, one of each family; those of before may stay.
fn addresses(status: &Value, before: &Value, place: &Place<'_>, report: &mut Report) {
    for (field, ty) in [("podIPs", "PodIP"), ("hostIPs", "HostIP")] {
        let all = |status| list(status, &format!("/{field}")).iter().map(|one| text(one, "/ip"));
        let (new, known): (Vec<&str>, Vec<&str>) = (all(status).collect(), all(before).collect());
        let place = place.field(field);
        if let Some(first) = new.first().filter(|_| field == "hostIPs")
            && *first != text(status, "/hostIP")
        {
            report.invalid(place.item(0).field("ip"), *first, "must be equal to `hostIP`");
        }
        for (index, address) in new.iter().enumerate() {
            if let Some(problem) = ip::problem(address).filter(|_| !known.contains(address)) {
                report.invalid(place.item(index), *address, problem);
            }
        }
        let sixes = new.iter().filter(|address| ip::is_six(address)).count();
        if new.len() > 1 && (new.len() > 2 || sixes != 1) {
            let shown =
                form(&format!("[]io.k8s.api.core.v1.{ty}"), at(status, &format!("/{field}")));
            report.invalid(place, shown, "may specify no more than one IP for each IP family");
        }
    }
}
