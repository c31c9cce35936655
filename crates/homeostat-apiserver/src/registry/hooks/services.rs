//! Services: an address of their own, and ports on every node where asked for.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::registry::{Writer, metadata};
use crate::status::Status;
use crate::store::Range;

const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, kind, object| {
        allocate(writer, kind, object)?;
        metadata::set_top(object, "status", Some(json!({"loadBalancer": {}})));
        Ok(())
    },
    update: |writer, kind, live, object| {
        drop_external_policy(live, object);
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let (Some(value), true) = (live["spec"].get(field), needs_address(object))
                && object["spec"].get(field).is_none_or(|new| new.is_null() || *new == json!(""))
                && object["spec"].is_object()
            {
                object["spec"][field] = value.clone();
            }
        }
        keep_node_ports(live, object);
        allocate(writer, kind, object)
    },
    ..NONE
};

/// A policy for outside traffic goes with the type that had it, unless it is asked for anew.
fn drop_external_policy(live: &Value, service: &mut Value) {
    let pointer = "/spec/externalTrafficPolicy";
    let external =
        |service: &Value| matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer");
    if external(live)
        && !external(service)
        && live.pointer(pointer) == service.pointer(pointer)
        && let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.shift_remove("externalTrafficPolicy");
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn needs_address(service: &Value) -> bool {
    text(service, "/spec/type") != "ExternalName"
}

fn allocate(writer: &Writer<'_>, kind: &Kind, service: &mut Value) -> Result<(), Status> {
    if !service.get("spec").is_some_and(Value::is_object) {
        return Ok(());
    }
    if !needs_address(service) {
        if let Some(spec) = service["spec"].as_object_mut() {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                spec.shift_remove(field);
            }
        }
        return Ok(());
    }
    let taken = Taken::read(writer, service);
    match text(service, "/spec/clusterIP") {
        "" => {
            let address = taken
                .free_address(writer)
                .ok_or_else(|| Status::internal("no address of the service range is free"))?;
            service["spec"]["clusterIP"] = address.to_string().into();
        }
        "None" => {}
        given => {
            let refuse = |why: &str| {
                let error =
                    FieldError::new("spec.clusterIPs[0]", Reason::Invalid, given.into(), why);
                Err(Status::invalid(kind, metadata::name(service), &[error]))
            };
            match given.parse::<Ipv4Addr>() {
                Err(_) => {
                    return refuse("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
                }
                Ok(address) if taken.addresses.contains(&address) => {
                    return refuse("failed to allocate IP: provided IP is already allocated");
                }
                Ok(address) if !writer.registry.config.service_range.contains(address) => {
                    let crate::server::AddressRange { base, prefix } =
                        writer.registry.config.service_range;
                    return refuse(&format!(
                        "failed to allocate IP {address}: the provided IP ({address}) is not in \
                         the valid range. The range of valid IPs is {base}/{prefix}"
                    ));
                }
                Ok(_) => {}
            }
        }
    }
    let bare = text(service, "/spec/clusterIP") == "None"
        && service.pointer("/spec/selector").is_none_or(|selector| *selector == json!({}));
    let spec = &mut service["spec"];
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
    // Whoever fills a Service that has neither address nor selector may use both families.
    let families = if bare {
        [("ipFamilies", json!(["IPv4", "IPv6"])), ("ipFamilyPolicy", json!("RequireDualStack"))]
    } else {
        [("ipFamilies", json!(["IPv4"])), ("ipFamilyPolicy", json!("SingleStack"))]
    };
    for (field, value) in families {
        if spec.get(field).is_none_or(Value::is_null) {
            spec[field] = value;
        }
    }
    allocate_node_ports(service, taken);
    Ok(())
}

fn has_node_ports(service: &Value) -> bool {
    matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer")
}

fn allocate_node_ports(service: &mut Value, mut taken: Taken) {
    let wanted = has_node_ports(service);
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if wanted && port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) == 0 {
            if let Some(free) = NODE_PORTS.clone().find(|port| !taken.ports.contains(port)) {
                taken.ports.insert(free);
                port["nodePort"] = free.into();
            }
        } else if let (false, Some(port)) = (wanted, port.as_object_mut()) {
            port.shift_remove("nodePort");
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

/// What other Services have.
struct Taken {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<i64>,
}

impl Taken {
    fn read(writer: &Writer<'_>, except: &Value) -> Self {
        let mut taken = Self { addresses: BTreeSet::new(), ports: BTreeSet::new() };
        let services = writer.registry.store.list("services", &Range::default());
        for stored in services.map(|page| page.items).unwrap_or_default() {
            if stored.key.name == metadata::name(except)
                && stored.key.namespace == metadata::namespace(except)
            {
                continue;
            }
            let service = stored.value();
            taken.addresses.extend(text(&service, "/spec/clusterIP").parse::<Ipv4Addr>());
            let ports = service.pointer("/spec/ports").and_then(Value::as_array);
            let ports = ports.into_iter().flatten();
            taken.ports.extend(ports.filter_map(|port| port.get("nodePort")?.as_i64()));
        }
        let own = except.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
        taken.ports.extend(own.filter_map(|port| port.get("nodePort")?.as_i64()));
        taken
    }

    /// The lowest free address; the first of the range belongs to the API itself.
    fn free_address(&self, writer: &Writer<'_>) -> Option<Ipv4Addr> {
        let range = writer.registry.config.service_range;
        range.addresses().find(|address| !self.addresses.contains(address))
    }
}
