//! Where the name before `/proxy` leads: to the agent of a node, to a Pod, or to a Pod behind a
//! Service. It is found as kube-apiserver finds it, and refused in its words.
//!
//! Only addresses that Pods have are given out: whoever may write Endpoints cannot lead the server
//! anywhere else.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use crate::registry::{Registry, Target};
use crate::status::Status;

/// Who is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The agent of the node of that name.
    Agent(String),
    /// The program that listens there.
    Program {
        /// Host and port.
        address: String,
        secure: bool,
    },
}

/// A name of the form `name`, `name:port` or `scheme:name:port`.
struct Name<'a> {
    secure: bool,
    name: &'a str,
    /// A number or a name; empty when it is left open.
    port: &'a str,
}

impl<'a> Name<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        let known = !name.is_empty() && matches!(scheme, "" | "http" | "https");
        known.then_some(Self { secure: scheme == "https", name, port })
    }

    fn program(&self, ip: IpAddr, port: u16) -> Place {
        Place::Program { address: SocketAddr::new(ip, port).to_string(), secure: self.secure }
    }
}

/// Where a proxy of `target` leads.
pub(super) fn find(registry: &Registry, target: &Target) -> Result<Place, Status> {
    let sort = target.kind.kind.to_lowercase();
    let asked = &target.name;
    let name = Name::read(asked)
        .ok_or_else(|| Status::bad_request(format!("invalid {sort} request {asked:?}")))?;
    let named = Target { name: name.name.to_owned(), ..target.clone() };
    match sort.as_str() {
        "pod" => pod(&name, &registry.get(&named)?.value()),
        "service" => service(registry, &name, &named, asked),
        _ => registry.get(&named).map(|_| Place::Agent(named.name)),
    }
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

/// A port; `None` for what is none.
fn port(value: &Value, field: &str) -> Option<u16> {
    value.get(field).and_then(Value::as_u64).and_then(|port| port.try_into().ok())
}

fn pod(name: &Name<'_>, pod: &Value) -> Result<Place, Status> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let first = items(spec, "containers").find_map(|it| items(it, "ports").next());
    let port = match name.port {
        "" => first.and_then(|first| port(first, "containerPort")),
        given => Some(given.parse().map_err(|_| {
            let words = format!("error trying to reach service: dial tcp: lookup tcp/{given}");
            Status::unavailable(format!("{words}: unknown port"))
        })?),
    };
    let ip = pod.get("status").and_then(|status| items(status, "podIPs").next());
    let ip = ip.and_then(|ip| text(ip, "ip").parse().ok()).filter(is_a_pods);
    let ip = ip.ok_or_else(|| Status::bad_request("address not allowed"))?;
    Ok(name.program(ip, port.unwrap_or(if name.secure { 443 } else { 80 })))
}

/// Whether a Pod may have that address. kube-apiserver refuses loopback addresses as well, but that
/// is where the node agent's Pods are.
fn is_a_pods(ip: &IpAddr) -> bool {
    let local = match ip {
        IpAddr::V4(four) => four.is_link_local() || four.is_broadcast(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    !local && !ip.is_unspecified() && !ip.is_multicast()
}

fn service(
    registry: &Registry,
    name: &Name<'_>,
    service: &Target,
    asked: &str,
) -> Result<Place, Status> {
    let mut wanted = name.port.to_owned();
    if let Ok(number) = name.port.parse::<i64>() {
        let found = registry.get(service)?.value();
        let spec = found.get("spec").unwrap_or(&Value::Null);
        let mut ports = items(spec, "ports");
        let offered = ports.find(|offer| offer.get("port").and_then(Value::as_i64) == Some(number));
        let offered = offered.ok_or_else(|| {
            let name = name.name;
            Status::unavailable(format!("no service port {number} found for service {name:?}"))
        })?;
        text(offered, "name").clone_into(&mut wanted);
    }
    let nobody =
        |name: &str| Status::unavailable(format!("no endpoints available for service {name:?}"));
    let catalogue = registry.catalogue();
    let kind = catalogue.find("", "v1", "endpoints").ok_or_else(|| nobody(asked))?;
    let endpoints = registry.get(&Target { kind: kind.clone(), ..service.clone() })?.value();
    let subsets: Vec<&Value> = items(&endpoints, "subsets").collect();
    if subsets.is_empty() {
        return Err(nobody(name.name));
    }
    let offers = subsets.into_iter().flat_map(|subset| {
        let ports = items(subset, "ports").filter(|offer| text(offer, "name") == wanted);
        let ports = ports.filter_map(|offer| port(offer, "port"));
        ports.flat_map(|port| items(subset, "addresses").map(move |address| (address, port)))
    });
    let mut offers: Vec<(&Value, u16)> = offers.collect();
    if !offers.is_empty() {
        let first = registry.env.random_below(offers.len() as u64);
        offers.rotate_left(usize::try_from(first).unwrap_or(0));
    }
    let pods = offers.into_iter().find_map(|(address, port)| {
        let ip = ip_of_a_pod(registry, address, &service.namespace)?;
        Some(name.program(ip, port))
    });
    pods.ok_or_else(|| nobody(asked))
}

/// The address of an endpoint, if the Pod that it names has it.
fn ip_of_a_pod(registry: &Registry, address: &Value, namespace: &str) -> Option<IpAddr> {
    let reference = address.get("targetRef")?;
    if text(reference, "namespace") != namespace {
        return None;
    }
    let pod = registry.peek("pods", namespace, text(reference, "name"))?;
    let ip = text(address, "ip");
    let has = items(pod.get("status")?, "podIPs").any(|own| text(own, "ip") == ip);
    ip.parse().ok().filter(|_| has)
}
