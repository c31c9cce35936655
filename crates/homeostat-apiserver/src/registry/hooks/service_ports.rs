//! The ports of nodes that lead to a Service: drawn for the types that have them, kept while they
//! are needed, and dropped with the type.

use serde_json::{Value, json};

use super::services::{internal, is_balanced, text};
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::registry::node_ports::{Drawing, number, of_ports};
use crate::registry::{Writer, metadata};
use crate::status::Status;

const CHECK: &str = "healthCheckNodePort";

/// Whether nodes listen for a Service of this type.
pub(super) fn has_node_ports(service: &Value) -> bool {
    matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer")
}

/// Whether ports of nodes are drawn where none is named: a load balancer may do without.
fn draws(service: &Value) -> bool {
    text(service, "/spec/type") == "NodePort"
        || is_balanced(service)
            && service["spec"].get("allocateLoadBalancerNodePorts") != Some(&json!(false))
}

/// A load balancer that keeps traffic on the nodes asks each of them at a port whether it has any.
fn has_checks(service: &Value) -> bool {
    is_balanced(service) && text(service, "/spec/externalTrafficPolicy") == "Local"
}

fn ports(service: &mut Value) -> &mut [Value] {
    service
        .pointer_mut("/spec/ports")
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

fn check(service: &Value) -> i64 {
    service["spec"].get(CHECK).and_then(Value::as_i64).unwrap_or(0)
}

/// An update that leaves a port out keeps the one that the port of the same name has.
pub(super) fn keep(live: &Value, service: &mut Value) {
    if draws(live) && draws(service) {
        let used: Vec<i64> = of_ports(service).collect();
        let old = live.pointer("/spec/ports").and_then(Value::as_array);
        for port in ports(service).iter_mut().filter(|port| number(port) == 0) {
            let name = text(port, "/name");
            let same = old.into_iter().flatten().filter(|old| text(old, "/name") == name);
            let kept = same.map(number).next_back().unwrap_or(0);
            if kept != 0 && !used.contains(&kept) {
                port["nodePort"] = kept.into();
            }
        }
    }
    if has_checks(live) && has_checks(service) && check(service) == 0 {
        service["spec"][CHECK] = check(live).into();
    }
}

/// What goes with the type that had it, unless the client asks for something else.
pub(super) fn drop_unneeded(live: &Value, service: &mut Value) {
    let only_old = |service: &Value| {
        let old: Vec<i64> = of_ports(live).collect();
        of_ports(service).all(|port| old.contains(&port))
    };
    if has_node_ports(live) && !has_node_ports(service) && only_old(service) {
        for port in ports(service).iter_mut().filter_map(Value::as_object_mut) {
            port.shift_remove("nodePort");
        }
    }
    if has_checks(live)
        && !has_checks(service)
        && check(live) == check(service)
        && let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.shift_remove(CHECK);
    }
}

/// Takes the ports that a Service asks for and draws those that it needs besides.
pub(super) fn allocate(
    writer: &Writer<'_>,
    kind: &Kind,
    live: Option<&Value>,
    service: &mut Value,
) -> Result<(), Status> {
    let mut drawing = writer.draw_node_ports(service);
    if has_node_ports(service) {
        let name = metadata::name(service).to_owned();
        match live {
            None => draw_all(&mut drawing, service),
            Some(live) => draw_changed(&mut drawing, live, service),
        }
        .map_err(|refused| refused.status(kind, &name))?;
    }
    if has_checks(service) && !live.is_some_and(has_checks) {
        let given = check(service);
        let drawn = match given {
            0 => drawing.next().ok_or_else(|| {
                "failed to allocate a HealthCheck NodePort 0: range is full".to_owned()
            }),
            given => drawing.claim(given).map(|()| given).map_err(|why| {
                format!("failed to allocate requested HealthCheck NodePort {given}: {why}")
            }),
        };
        service["spec"][CHECK] = drawn.map_err(|why| internal(&why))?.into();
    }
    Ok(())
}

/// Why a Service does not get its ports.
enum Refused {
    /// The port at this place in the list.
    Port {
        index: usize,
        port: i64,
        why: String,
    },
    /// Two of its own are the same.
    Twice {
        protocol: String,
        port: i64,
    },
    Full,
}

impl Refused {
    fn status(self, kind: &Kind, name: &str) -> Status {
        match self {
            Self::Port { index, port, why } => {
                let path = format!("spec.ports[{index}].nodePort");
                let error = FieldError::new(path, Reason::Invalid, port.into(), why);
                Status::invalid(kind, name, &[error])
            }
            Self::Twice { protocol, port } => {
                Status::unexplained(format!("duplicate nodePort: {{{protocol} {port}}}"))
            }
            Self::Full => internal("failed to allocate a nodePort: range is full"),
        }
    }
}

/// The ports of a new Service: one number serves all protocols of a port.
fn draw_all(drawing: &mut Drawing<'_>, service: &mut Value) -> Result<(), Refused> {
    let draws = draws(service);
    let ports = ports(service);
    let mut known: Vec<(i64, i64)> = Vec::new();
    for index in 0..ports.len() {
        let (own, given) = (ports[index]["port"].as_i64().unwrap_or(0), number(&ports[index]));
        if given == 0 && !draws {
            continue;
        }
        let mut claim = |port: i64| {
            let claimed = drawing.claim(port);
            claimed.map(|()| port).map_err(|why| Refused::Port { index, port, why })
        };
        let before = known.iter().find(|(port, _)| *port == own).map(|(_, drawn)| *drawn);
        let drawn = match before {
            Some(before) if given == 0 || given == before => before,
            Some(_) => claim(given)?,
            None => {
                let same = |port: &&Value| port["port"].as_i64() == Some(own) && number(port) != 0;
                let drawn = match ports.iter().find(same).map(number) {
                    Some(asked) => claim(asked)?,
                    None => drawing.next().ok_or(Refused::Full)?,
                };
                known.push((own, drawn));
                drawn
            }
        };
        ports[index]["nodePort"] = drawn.into();
    }
    Ok(())
}

/// The ports of a Service that had some before.
fn draw_changed(
    drawing: &mut Drawing<'_>,
    live: &Value,
    service: &mut Value,
) -> Result<(), Refused> {
    let draws = draws(service);
    let old: Vec<i64> = of_ports(live).collect();
    let mut claimed: Vec<i64> = Vec::new();
    let mut new: Vec<(String, i64)> = Vec::new();
    for (index, port) in ports(service).iter_mut().enumerate() {
        let given = number(port);
        if given == 0 && !draws {
            continue;
        }
        if given == 0 {
            port["nodePort"] = drawing.next().ok_or(Refused::Full)?.into();
        } else if !old.contains(&given) && !claimed.contains(&given) {
            drawing.claim(given).map_err(|why| Refused::Port { index, port: given, why })?;
            claimed.push(given);
        }
        let (protocol, port) = (text(port, "/protocol").to_owned(), number(port));
        if new.contains(&(protocol.clone(), port)) {
            return Err(Refused::Twice { protocol, port });
        }
        new.push((protocol, port));
    }
    Ok(())
}
