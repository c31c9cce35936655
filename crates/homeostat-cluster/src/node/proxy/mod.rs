//! Answers on every Service's address and carries the bytes to a Pod behind it.
//!
//! As kube-proxy does: what is new goes to ready endpoints, or where there are none to those that
//! still serve although they are ending, and is refused without either. What has begun goes on
//! whatever becomes of the endpoints, until one of its ends hangs up.

mod tcp;
mod udp;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use homeostat_env::Env;
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::Resource;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::host::Host;

/// The label that ties an EndpointSlice to its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// How long to wait before an address is tried again: at first, and at most.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// How much higher a port is answered that only root may have.
const MOVED: u16 = 6000;
/// The first port that everybody may have.
const FIRST_FREE: u16 = 1024;

/// Whether this host lets the agent have ports below 1024.
pub(super) fn has_low_ports() -> bool {
    let https = SocketAddr::new(Host::ip().into(), 443);
    let tried = std::net::TcpListener::bind(https);
    !tried.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// The port at which a Service's port is answered: 443 at 6443 where only root may have it.
pub(super) fn answered_at(port: u16, low_ports: bool) -> u16 {
    if low_ports || port >= FIRST_FREE { port } else { port + MOVED }
}

/// What is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

/// Where a Service's port leads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    pub(super) service: ObjectReference,
    /// The port it should be answered at, where that cannot be had.
    pub(super) moved: Option<u16>,
    pub(super) backends: Vec<SocketAddr>,
}

/// Which addresses to answer on, and where they lead.
pub(super) fn routes(
    services: &[Arc<Service>],
    slices: &[Arc<EndpointSlice>],
    low_ports: bool,
) -> BTreeMap<(Transport, SocketAddr), Route> {
    let mut routes = BTreeMap::new();
    for service in services {
        let Some(spec) = &service.spec else { continue };
        let cluster_ips = spec.cluster_ips.iter().flatten().chain(&spec.cluster_ip);
        let addresses: Vec<IpAddr> = cluster_ips.filter_map(|text| text.parse().ok()).collect();
        for port in spec.ports.iter().flatten() {
            let transport = match port.protocol.as_deref() {
                None | Some("TCP") => Transport::Tcp,
                Some("UDP") => Transport::Udp,
                Some(_) => continue,
            };
            let backends = backends(service, port.name.as_deref(), slices);
            let Ok(wanted) = u16::try_from(port.port) else { continue };
            let number = answered_at(wanted, low_ports);
            let moved = (number != wanted).then_some(wanted);
            let route = Route { service: service.object_ref(&()), moved, backends };
            for address in &addresses {
                routes.insert((transport, SocketAddr::new(*address, number)), route.clone());
            }
            if let Some(node_port) = port.node_port.and_then(|port| u16::try_from(port).ok())
                && node_port > 0
            {
                routes.insert((transport, SocketAddr::new(Host::ip().into(), node_port)), route);
            }
        }
    }
    routes
}

/// The ready endpoints, or else those that serve although they are ending.
fn backends(
    service: &Service,
    port_name: Option<&str>,
    slices: &[Arc<EndpointSlice>],
) -> Vec<SocketAddr> {
    let belongs = |slice: &&Arc<EndpointSlice>| {
        let labels = slice.metadata.labels.as_ref();
        slice.metadata.namespace == service.metadata.namespace
            && labels.and_then(|labels| labels.get(SERVICE_NAME)) == service.metadata.name.as_ref()
    };
    let (mut ready, mut ending) = (BTreeSet::new(), BTreeSet::new());
    for slice in slices.iter().filter(belongs) {
        let named = |name: Option<&str>| name.unwrap_or_default() == port_name.unwrap_or_default();
        let mut ports = slice.ports.iter().flatten();
        let port = ports.find(|port| named(port.name.as_deref())).and_then(|port| port.port);
        let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else { continue };
        for endpoint in slice.endpoints.iter().flatten() {
            let address = endpoint.addresses.first().and_then(|text| text.parse().ok());
            let Some(address) = address.map(|address| SocketAddr::new(address, port)) else {
                continue;
            };
            if is_ready(endpoint) {
                ready.insert(address);
            } else if serves_to_the_end(endpoint) {
                ending.insert(address);
            }
        }
    }
    let chosen = if ready.is_empty() { ending } else { ready };
    chosen.into_iter().collect()
}

fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|now| now.ready).unwrap_or(true)
}

fn serves_to_the_end(endpoint: &Endpoint) -> bool {
    let now = endpoint.conditions.as_ref();
    now.is_some_and(|now| now.serving == Some(true) && now.terminating == Some(true))
}

/// The doors of all Services; dropping it closes them and every connection.
#[derive(Debug, Default)]
pub(super) struct Proxy {
    doors: BTreeMap<(Transport, SocketAddr), Door>,
    /// Ends the connections, which outlive their doors.
    closing: CancellationToken,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

#[derive(Debug)]
struct Door {
    backends: watch::Sender<Vec<SocketAddr>>,
    task: JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// Opens, changes and closes doors until they are `routes`. An address that cannot be had is
    /// an event on its Service, and is tried again later.
    pub(super) fn sync(
        &mut self,
        host: &Arc<Host>,
        routes: BTreeMap<(Transport, SocketAddr), Route>,
    ) {
        self.doors.retain(|front, _| routes.contains_key(front));
        for (front, Route { service, moved, backends }) in routes {
            if let Some(door) = self.doors.get(&front) {
                door.backends.send_if_modified(|old| {
                    let changed = *old != backends;
                    *old = backends;
                    changed
                });
                continue;
            }
            if let Some(wanted) = moved {
                let words = format!(
                    "only root may have port {wanted} of this host: it is answered at {}, which \
                     the variables of Pods name",
                    front.1
                );
                host.warn(service.clone(), "PortMoved", words);
            }
            let (backends, receiver) = watch::channel(backends);
            let (host, closing) = (host.clone(), self.closing.clone());
            let task = tokio::spawn(async move {
                let refused = |error: &Error| {
                    let words = format!(
                        "{} cannot be answered on this host: {error}; choose another port, or stop \
                         the program that listens there",
                        front.1
                    );
                    host.warn(service.clone(), "AddressUnavailable", words);
                };
                attend(&host.env, front, receiver, &closing, refused).await;
            });
            self.doors.insert(front, Door { backends, task });
        }
    }
}

/// Answers at an address for as long as there is somebody behind it.
async fn attend(
    env: &Env,
    (transport, address): (Transport, SocketAddr),
    mut backends: watch::Receiver<Vec<SocketAddr>>,
    closing: &CancellationToken,
    mut refused: impl FnMut(&Error),
) {
    // An error means that the Service is gone.
    while backends.wait_for(|backends| !backends.is_empty()).await.is_ok() {
        let mut deserted = backends.clone();
        let served = async {
            match transport {
                Transport::Tcp => {
                    let bind = || TcpListener::bind(address);
                    let listener = take(env, bind, &mut refused).await;
                    tcp::serve(env, &listener, &backends, closing).await;
                }
                Transport::Udp => {
                    let bind = || UdpSocket::bind(address);
                    let socket = take(env, bind, &mut refused).await;
                    udp::serve(env, socket, &backends).await;
                }
            }
        };
        tokio::select! {
            biased;
            // Without anybody to answer, clients are refused at once: nobody listens.
            deserted = deserted.wait_for(Vec::is_empty) => {
                if deserted.is_err() {
                    return;
                }
            }
            () = served => {}
        }
    }
}

/// Takes the address as soon as it can be had.
async fn take<T, F: Future<Output = Result<T>>>(
    env: &Env,
    bind: impl Fn() -> F,
    refused: &mut impl FnMut(&Error),
) -> T {
    let mut delay = FIRST_DELAY;
    loop {
        match bind().await {
            Ok(taken) => return taken,
            Err(error) => refused(&error),
        }
        env.sleep(delay).await;
        delay = (delay * 2).min(LONGEST_DELAY);
    }
}

#[cfg(test)]
mod tests;
