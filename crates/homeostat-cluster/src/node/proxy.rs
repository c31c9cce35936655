//! Answers on every Service's address and carries the bytes to a ready Pod.

use std::collections::BTreeMap;
use std::io::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use homeostat_env::Env;
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Resource;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::host::Host;

/// The label that ties an EndpointSlice to its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// How long to wait before an address is tried again: at first, and at most.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Where a Service's port leads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    pub(super) service: ObjectReference,
    /// Ready endpoints; never empty.
    pub(super) backends: Vec<SocketAddr>,
}

/// Which addresses to answer on. Without a ready endpoint there is nobody to answer.
pub(super) fn routes(
    services: &[Arc<Service>],
    slices: &[Arc<EndpointSlice>],
) -> BTreeMap<SocketAddr, Route> {
    let mut routes = BTreeMap::new();
    for service in services {
        let Some(spec) = &service.spec else { continue };
        let cluster_ips = spec.cluster_ips.iter().flatten().chain(&spec.cluster_ip);
        let addresses: Vec<IpAddr> = cluster_ips.filter_map(|text| text.parse().ok()).collect();
        for port in spec.ports.iter().flatten() {
            if port.protocol.as_deref().unwrap_or("TCP") != "TCP" {
                continue;
            }
            let backends = backends(service, port.name.as_deref(), slices);
            if backends.is_empty() {
                continue;
            }
            let route = Route { service: service.object_ref(&()), backends };
            let Ok(number) = u16::try_from(port.port) else { continue };
            for address in &addresses {
                routes.insert(SocketAddr::new(*address, number), route.clone());
            }
            if let Some(node_port) = port.node_port.and_then(|port| u16::try_from(port).ok())
                && node_port > 0
            {
                routes.insert(SocketAddr::new(Host::ip().into(), node_port), route);
            }
        }
    }
    routes
}

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
    let mut all = Vec::new();
    for slice in slices.iter().filter(belongs) {
        let named = |name: Option<&str>| name.unwrap_or_default() == port_name.unwrap_or_default();
        let mut ports = slice.ports.iter().flatten();
        let port = ports.find(|port| named(port.name.as_deref())).and_then(|port| port.port);
        let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else { continue };
        for endpoint in slice.endpoints.iter().flatten() {
            let ready = endpoint.conditions.as_ref().is_none_or(|now| now.ready.unwrap_or(true));
            let address = endpoint.addresses.first().and_then(|text| text.parse().ok());
            if let (true, Some(address)) = (ready, address) {
                all.push(SocketAddr::new(address, port));
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

/// The listeners; dropping it closes them and every connection.
#[derive(Debug, Default)]
pub(super) struct Proxy {
    doors: BTreeMap<SocketAddr, Door>,
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
    pub(super) fn sync(&mut self, host: &Arc<Host>, routes: BTreeMap<SocketAddr, Route>) {
        self.doors.retain(|address, _| routes.contains_key(address));
        for (address, route) in routes {
            if let Some(door) = self.doors.get(&address) {
                door.backends.send_if_modified(|old| {
                    let changed = *old != route.backends;
                    *old = route.backends;
                    changed
                });
                continue;
            }
            let (backends, receiver) = watch::channel(route.backends);
            let task = tokio::spawn(open(host.clone(), address, route.service, receiver));
            self.doors.insert(address, Door { backends, task });
        }
    }
}

async fn open(
    host: Arc<Host>,
    address: SocketAddr,
    service: ObjectReference,
    backends: watch::Receiver<Vec<SocketAddr>>,
) {
    let refused = |error: &Error| {
        let words = format!(
            "{address} cannot be answered on this host: {error}; choose another port, or stop the \
             program that listens there"
        );
        host.warn(service.clone(), "AddressUnavailable", words);
    };
    let listener = listen(&host.env, address, refused).await;
    serve(&host.env, listener, backends).await;
}

/// Takes the address as soon as it can be had.
async fn listen(env: &Env, address: SocketAddr, mut refused: impl FnMut(&Error)) -> TcpListener {
    let mut delay = FIRST_DELAY;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => refused(&error),
        }
        env.sleep(delay).await;
        delay = (delay * 2).min(LONGEST_DELAY);
    }
}

async fn serve(env: &Env, listener: TcpListener, backends: watch::Receiver<Vec<SocketAddr>>) {
    let mut connections = JoinSet::new();
    let mut turn = 0_usize;
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            client = accept(env, &listener) => {
                turn = turn.wrapping_add(1);
                let mut choice = backends.borrow().clone();
                let first = turn % choice.len().max(1);
                choice.rotate_left(first);
                connections.spawn(relay(client, choice));
            }
        }
    }
}

/// The next client. Out of descriptors, say, it waits a while for some to be given back.
async fn accept(env: &Env, listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((client, _)) => return client,
            Err(error) => tracing::warn!(%error, "a connection to a Service was not accepted"),
        }
        env.sleep(PAUSE).await;
    }
}

/// Connects to the first backend that answers and carries bytes both ways.
async fn relay(mut client: TcpStream, backends: Vec<SocketAddr>) {
    for backend in backends {
        let Ok(mut server) = TcpStream::connect(backend).await else { continue };
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        // Either end may hang up at any time.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    fn slice(ready: bool, ports: &Value) -> Arc<EndpointSlice> {
        let metadata = json!({ "namespace": "n", "labels": { SERVICE_NAME: "s" } });
        let endpoint = json!({ "addresses": ["127.64.0.1"], "conditions": { "ready": ready } });
        let slice = json!({
            "metadata": metadata, "addressType": "IPv4", "ports": ports, "endpoints": [endpoint]
        });
        Arc::new(from_value(slice).unwrap())
    }

    #[test]
    fn a_service_leads_to_its_ready_endpoints_by_port_name() {
        let spec = json!({
            "clusterIP": "127.96.0.1", "clusterIPs": ["127.96.0.1"],
            "ports": [{ "name": "web", "port": 80, "targetPort": "http" }]
        });
        let metadata = json!({ "namespace": "n", "name": "s" });
        let service = json!({ "metadata": metadata, "spec": spec });
        let services = [Arc::new(from_value(service).unwrap())];
        let ports = json!([{ "name": "other", "port": 1 }, { "name": "web", "port": 8080 }]);
        let found = routes(&services, &[slice(true, &ports)]);
        let route = &found[&"127.96.0.1:80".parse().unwrap()];
        assert_eq!(route.backends, ["127.64.0.1:8080".parse().unwrap()]);
        assert!(routes(&services, &[slice(false, &ports)]).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_is_taken_is_tried_again_until_it_is_free() {
        let env = Env::simulated(1, jiff::Timestamp::UNIX_EPOCH);
        let mut taken = Some(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let address = taken.as_ref().unwrap().local_addr().unwrap();
        let (began, mut refusals) = (env.instant(), 0);
        let listener = listen(&env, address, |_| {
            refusals += 1;
            if refusals == 3 {
                taken = None;
            }
        });
        assert_eq!(listener.await.local_addr().unwrap(), address);
        assert_eq!((env.instant() - began).as_secs(), 1 + 2 + 4);
    }
}
