//! Where the API is, told to the cluster: the endpoints of the Service `kubernetes`.
//!
//! Programs in Pods reach the API at that Service's address; what they find behind it is wherever
//! this server listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::{Value, json};

use crate::registry::options::WriteOptions;
use crate::registry::{Body, Registry, Target};

const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";

/// Where clients reach a server that listens at `address`.
pub(crate) fn reached_at(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    SocketAddr::new(ip, address.port())
}

/// Makes the endpoints lead to `address`.
pub(crate) fn advertise(registry: &Registry, address: SocketAddr) {
    let ip = reached_at(address).ip();
    let ports = json!([{"name": "https", "port": address.port(), "protocol": "TCP"}]);
    let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
    put(
        registry,
        "endpoints",
        json!({
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": NAME,
                "namespace": NAMESPACE,
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
            },
            "subsets": [{"addresses": [{"ip": ip.to_string()}], "ports": ports}],
        }),
    );
    put(
        registry,
        "endpointslices",
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": NAME,
                "namespace": NAMESPACE,
                "labels": {"kubernetes.io/service-name": NAME},
            },
            "addressType": family,
            "endpoints": [{"addresses": [ip.to_string()], "conditions": {"ready": true}}],
            "ports": ports,
        }),
    );
}

/// Creates or replaces the object.
fn put(registry: &Registry, plural: &str, object: Value) {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let Some(kind) = registry.catalogue().find(group, version, plural).cloned() else { return };
    let options = WriteOptions { manager: "kube-apiserver".to_owned(), ..WriteOptions::default() };
    let target = |name: &str| Target {
        kind: kind.clone(),
        namespace: NAMESPACE.to_owned(),
        name: name.to_owned(),
    };
    let body = Body::from(object);
    let written = match registry.create(&target(""), body.clone(), &options) {
        Err(status) if status.reason == "AlreadyExists" => {
            registry.update(&target(NAME), false, body, &options)
        }
        other => other,
    };
    if let Err(status) = written {
        tracing::error!(%status, plural, "the cluster cannot be told where the API is");
    }
}
