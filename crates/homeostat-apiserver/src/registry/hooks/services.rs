//! Services: an address of their own, and ports on every node where asked for.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{Hooks, NONE, families};
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::registry::{Writer, metadata};
use crate::status::Status;
use crate::store::Range;

const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, kind, object| {
        allocate(writer, kind, None, object)?;
        metadata::set_top(object, "status", Some(json!({"loadBalancer": {}})));
        Ok(())
    },
    update: |writer, kind, live, object| {
        drop_policies(live, object);
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let (Some(value), true) = (live["spec"].get(field), needs_address(object))
                && object["spec"].get(field).is_none_or(|new| new.is_null() || *new == json!(""))
                && object["spec"].is_object()
            {
                object["spec"][field] = value.clone();
            }
        }
        keep_node_ports(live, object);
        allocate(writer, kind, Some(live), object)
    },
    committed: Some(|writer, _, old, service| writer.keep_addresses(old, service)),
    removed: |writer, _, service| writer.release_addresses(service),
    ..NONE
};

/// What only some types have goes with the type that had it, unless it is asked for anew.
fn drop_policies(live: &Value, service: &mut Value) {
    drop_policy("externalTrafficPolicy", has_node_ports, live, service);
    drop_policy("internalTrafficPolicy", needs_address, live, service);
    drop_policy("allocateLoadBalancerNodePorts", is_balanced, live, service);
    drop_policy("loadBalancerClass", is_balanced, live, service);
}

fn drop_policy(policy: &str, has_any: fn(&Value) -> bool, live: &Value, service: &mut Value) {
    if has_any(live)
        && !has_any(service)
        && live["spec"].get(policy) == service["spec"].get(policy)
        && let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.shift_remove(policy);
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn needs_address(service: &Value) -> bool {
    text(service, "/spec/type") != "ExternalName"
}

fn is_balanced(service: &Value) -> bool {
    text(service, "/spec/type") == "LoadBalancer"
}

fn allocate(
    writer: &Writer<'_>,
    kind: &Kind,
    live: Option<&Value>,
    service: &mut Value,
) -> Result<(), Status> {
    if !service.get("spec").is_some_and(Value::is_object) {
        return Ok(());
    }
    families::complete(kind, live, service)?;
    if !needs_address(service) {
        return Ok(());
    }
    match text(service, "/spec/clusterIP") {
        "" => {
            let address = writer.free_address().ok_or_else(full)?;
            service["spec"]["clusterIP"] = address.to_string().into();
        }
        "None" => {}
        given if live.is_some_and(|live| text(live, "/spec/clusterIP") == given) => {}
        given => check_address(writer, kind, service, given)?,
    }
    service["spec"]["clusterIPs"] = json!([service["spec"]["clusterIP"]]);
    allocate_node_ports(writer, service);
    allocate_health_check(writer, live, service);
    Ok(())
}

fn full() -> Status {
    let why = "failed to allocate a serviceIP: range is full";
    let mut status = Status::internal(format!("Internal error occurred: {why}"));
    status.details = Some(Box::new(json!({"causes": [{"message": why}]})));
    status
}

/// An address that is asked for is free and lies in a range.
fn check_address(
    writer: &Writer<'_>,
    kind: &Kind,
    service: &Value,
    given: &str,
) -> Result<(), Status> {
    // What is no address, or one of another family, was refused before.
    let Ok(address) = given.parse::<Ipv4Addr>() else { return Ok(()) };
    let why = if !writer.is_offered(address) {
        "the provided network does not match the current range"
    } else if writer.is_taken(address) {
        "provided IP is already allocated"
    } else {
        return Ok(());
    };
    let why = format!("failed to allocate IP {address}: {why}");
    let error = FieldError::new("spec.clusterIPs", Reason::Invalid, json!([given]), why);
    Err(Status::invalid(kind, metadata::name(service), &[error]))
}

fn has_node_ports(service: &Value) -> bool {
    matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer")
}

fn allocate_node_ports(writer: &Writer<'_>, service: &mut Value) {
    let wanted = has_node_ports(service);
    // A load balancer may do without them.
    let given = wanted
        && (text(service, "/spec/type") == "NodePort"
            || service["spec"].get("allocateLoadBalancerNodePorts") != Some(&json!(false)));
    let mut taken = if given { taken_ports(writer, service) } else { BTreeSet::new() };
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if given && port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) == 0 {
            if let Some(free) = NODE_PORTS.clone().find(|port| !taken.contains(port)) {
                taken.insert(free);
                port["nodePort"] = free.into();
            }
        } else if let (false, Some(port)) = (wanted, port.as_object_mut()) {
            port.shift_remove("nodePort");
        }
    }
}

/// A load balancer that keeps traffic on the nodes asks each of them at a port whether it has any.
fn allocate_health_check(writer: &Writer<'_>, live: Option<&Value>, service: &mut Value) {
    let field = "healthCheckNodePort";
    let has_checks = |service: &Value| {
        text(service, "/spec/type") == "LoadBalancer"
            && text(service, "/spec/externalTrafficPolicy") == "Local"
    };
    let given = service["spec"].get(field).and_then(Value::as_i64).filter(|port| *port != 0);
    let before = live.and_then(|live| live["spec"].get(field)).and_then(Value::as_i64);
    if !has_checks(service) {
        // It goes with what it was for, unless it is asked for anew.
        if (given.is_none() || given == before)
            && let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.shift_remove(field);
        }
    } else if given.is_none() {
        let taken = taken_ports(writer, service);
        let free = || NODE_PORTS.clone().find(|port| !taken.contains(port));
        if let Some(port) = before.or_else(free) {
            service["spec"][field] = port.into();
        }
    }
}

/// An update that leaves a port's node port out keeps the one it has.
fn keep_node_ports(live: &Value, service: &mut Value) {
    if !has_node_ports(service) {
        return;
    }
    let old = live.pointer("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let same = |other: &&Value| {
            other["port"] == port["port"] && other.get("protocol") == port.get("protocol")
        };
        if port.get("nodePort").is_none()
            && let Some(kept) = old.iter().find(same).and_then(|other| other.get("nodePort"))
        {
            port["nodePort"] = kept.clone();
        }
    }
}

/// The ports that other Services have, and those this one asks for.
fn taken_ports(writer: &Writer<'_>, service: &Value) -> BTreeSet<i64> {
    let services = writer.registry.store.list("services", &Range::default());
    let others = services.map(|page| page.items).unwrap_or_default().into_iter().filter(|stored| {
        stored.key.name != metadata::name(service)
            || stored.key.namespace != metadata::namespace(service)
    });
    let mut taken: BTreeSet<i64> =
        others.flat_map(|stored| node_ports(&stored.value()).collect::<Vec<_>>()).collect();
    taken.extend(node_ports(service));
    taken
}

fn node_ports(service: &Value) -> impl Iterator<Item = i64> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let checked = service.pointer("/spec/healthCheckNodePort").and_then(Value::as_i64);
    ports.filter_map(|port| port.get("nodePort")?.as_i64()).chain(checked)
}
