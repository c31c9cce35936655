//! Services: an address of their own, and what only some of their types have.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{Hooks, NONE, api_services, families, service_ports};
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::registry::options::DeleteOptions;
use crate::registry::{Target, Writer, metadata};
use crate::status::Status;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, kind, object| {
        allocate(writer, kind, None, object)?;
        metadata::set_top(object, "status", Some(json!({"loadBalancer": {}})));
        Ok(())
    },
    update: |writer, kind, live, object| {
        drop_policies(live, object);
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            // A policy that is empty was said.
            let is_nothing =
                |new: &Value| new.is_null() || (field != "ipFamilyPolicy" && *new == json!(""));
            if let (Some(value), true) = (live["spec"].get(field), needs_address(object))
                && object["spec"].get(field).is_none_or(is_nothing)
                && object["spec"].is_object()
            {
                object["spec"][field] = value.clone();
            }
        }
        service_ports::keep(live, object);
        allocate(writer, kind, Some(live), object)
    },
    committing: Some(|writer, old, service| writer.take_addresses(old, service)),
    committed: Some(|writer, _, old, service| {
        writer.release_addresses(old, Some(service));
        writer.keep_node_ports(old, Some(service));
        changed(writer, service);
    }),
    removed: |writer, _, service| {
        writer.release_addresses(Some(service), None);
        writer.keep_node_ports(Some(service), None);
        take_endpoints_along(writer, service);
        changed(writer, service);
    },
    ..NONE
};

/// The Endpoints of that name go with a Service, unless somebody holds them back: the next Service of
/// that name would begin with them. Nobody is asked, as nobody asked for it.
fn take_endpoints_along(writer: &Writer<'_>, service: &Value) {
    let catalogue = writer.registry.catalogue();
    let Some(kind) = catalogue.find("", "v1", "endpoints").cloned() else { return };
    let (namespace, name) = (metadata::namespace(service), metadata::name(service));
    let target = Target { kind, namespace: namespace.to_owned(), name: name.to_owned() };
    // Most have none.
    let Ok((stored, live)) = writer.live(&target) else { return };
    let deleted = writer.delete_admitted(&target, &DeleteOptions::default(), stored, &live);
    if let Err(status) = deleted {
        tracing::error!(%status, name, "the Endpoints of a Service that is gone stay");
    }
}

fn changed(writer: &Writer<'_>, service: &Value) {
    api_services::service_changed(writer, metadata::namespace(service), metadata::name(service));
}

/// What only some types have goes with the type that had it, unless it is asked for anew.
fn drop_policies(live: &Value, service: &mut Value) {
    service_ports::drop_unneeded(live, service);
    drop_policy("externalTrafficPolicy", is_reached_from_outside, live, service);
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

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn needs_address(service: &Value) -> bool {
    text(service, "/spec/type") != "ExternalName"
}

pub(super) fn is_balanced(service: &Value) -> bool {
    text(service, "/spec/type") == "LoadBalancer"
}

fn is_reached_from_outside(service: &Value) -> bool {
    let routed = service.pointer("/spec/externalIPs").and_then(Value::as_array);
    service_ports::has_node_ports(service)
        || text(service, "/spec/type") == "ClusterIP" && routed.is_some_and(|all| !all.is_empty())
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
            let full = || internal("failed to allocate a serviceIP: range is full");
            let address = writer.free_address(service).ok_or_else(full)?;
            if metadata::name(service).is_empty() {
                return Err(without_name(kind, address));
            }
            service["spec"]["clusterIP"] = address.to_string().into();
        }
        "None" => {}
        given if live.is_some_and(|live| text(live, "/spec/clusterIP") == given) => {}
        given => check_address(writer, kind, service, given)?,
    }
    service["spec"]["clusterIPs"] = json!([service["spec"]["clusterIP"]]);
    service_ports::allocate(writer, kind, live, service)
}

/// A failure that is nobody's fault.
pub(super) fn internal(why: &str) -> Status {
    let mut status = Status::internal(format!("Internal error occurred: {why}"));
    status.details = Some(Box::new(json!({"causes": [{"message": why}]})));
    status
}

/// An address belongs to its Service by name, which is missed there first.
fn without_name(kind: &Kind, address: Ipv4Addr) -> Status {
    let why = format!(
        "failed to allocate IP: IPAddress.networking.k8s.io \"{address}\" is invalid: \
         spec.parentRef.name: Required value"
    );
    let error = FieldError::new("spec.clusterIPs", Reason::Invalid, json!([""]), why);
    Status::invalid(kind, "", &[error])
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
