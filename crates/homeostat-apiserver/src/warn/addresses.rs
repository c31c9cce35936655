//! Addresses and ranges that are understood, but not written as they should be.

use serde_json::Value;

use super::{list, text};
use crate::validate::ip;

pub(super) fn of_addresses(addresses: &[Value], path: &str, warnings: &mut Vec<String>) {
    for (index, address) in addresses.iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        warnings.extend(ip::warning(&format!("{path}[{index}]"), address));
    }
}

pub(super) fn of_ranges(ranges: &[Value], path: &str, warnings: &mut Vec<String>) {
    for (index, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or_default();
        warnings.extend(ip::range_warnings(&format!("{path}[{index}]"), range));
    }
}

/// Objects with an address each; `below` is where the path ends.
fn of_each(objects: &[Value], path: &str, below: &str, warnings: &mut Vec<String>) {
    for (index, object) in objects.iter().enumerate() {
        let path = format!("{path}[{index}]{below}");
        warnings.extend(ip::warning(&path, text(object, "/ip")));
    }
}

/// Controllers write addresses that are right already.
fn is_kept_by(object: &Value, label: &str, controllers: &[&str]) -> bool {
    let keeper = object["metadata"]["labels"].get(label).and_then(Value::as_str);
    keeper.is_some_and(|keeper| controllers.contains(&keeper))
}

pub(super) fn of_endpoints(endpoints: &Value, warnings: &mut Vec<String>) {
    let controller = "endpoint-controller";
    if is_kept_by(endpoints, "endpoints.kubernetes.io/managed-by", &[controller]) {
        return;
    }
    for (index, subset) in list(endpoints, "/subsets").iter().enumerate() {
        for field in ["addresses", "notReadyAddresses"] {
            let found = list(subset, &format!("/{field}"));
            of_each(found, &format!("subsets[{index}].{field}"), ".ip", warnings);
        }
    }
}

pub(super) fn of_slice(slice: &Value, warnings: &mut Vec<String>) {
    let controllers =
        ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if is_kept_by(slice, "endpointslice.kubernetes.io/managed-by", &controllers) {
        return;
    }
    for (index, endpoint) in list(slice, "/endpoints").iter().enumerate() {
        let path = format!("endpoints[{index}].addresses");
        of_addresses(list(endpoint, "/addresses"), &path, warnings);
    }
}

pub(super) fn of_policy(policy: &Value, warnings: &mut Vec<String>) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(policy, &format!("/spec/{direction}")).iter().enumerate() {
            let path = format!("spec.{direction}[{index}].{peers}");
            for (index, peer) in list(rule, &format!("/{peers}")).iter().enumerate() {
                let path = format!("{path}[{index}].ipBlock");
                let cidr = text(peer, "/ipBlock/cidr");
                warnings.extend(ip::range_warnings(&format!("{path}.cidr"), cidr));
                of_ranges(list(peer, "/ipBlock/except"), &format!("{path}.except"), warnings);
            }
        }
    }
}

pub(super) fn of_status_of_pod(pod: &Value, warnings: &mut Vec<String>) {
    for field in ["podIPs", "hostIPs"] {
        let found = list(pod, &format!("/status/{field}"));
        of_each(found, &format!("status.{field}"), ".ip", warnings);
    }
}

pub(super) fn of_balancer(object: &Value, warnings: &mut Vec<String>) {
    let found = list(object, "/status/loadBalancer/ingress");
    of_each(found, "status.loadBalancer.ingress", "", warnings);
}
