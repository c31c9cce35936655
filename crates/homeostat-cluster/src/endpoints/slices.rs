//! The EndpointSlices of a Service. Pure.

use homeostat::kube::ResourceExt;
use k8s_openapi::api::core::v1::{Pod, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::target::{by_ports, hostname, protocol, reference};
use crate::{fingerprint, pod};

const PER_SLICE: usize = 100;
const OURS: &str = "endpointslice-controller.k8s.io";

pub(super) fn slices(service: &Service, spec: &ServiceSpec, pods: &[&Pod]) -> Vec<EndpointSlice> {
    let name = service.name_any();
    let groups = by_ports(spec, pods);
    let mut labels = service.labels().clone();
    labels.insert("kubernetes.io/service-name".into(), name.clone());
    labels.insert("endpointslice.kubernetes.io/managed-by".into(), OURS.into());
    if spec.cluster_ip.as_deref() == Some("None") {
        labels.insert("service.kubernetes.io/headless".into(), String::new());
    }
    let empty = (Vec::new(), Vec::new());
    let groups = if groups.is_empty() { [empty].into_iter().collect() } else { groups };
    let mut slices = Vec::new();
    for (numbers, members) in groups {
        let family = |v6: bool| -> Vec<Endpoint> {
            let of = members.iter().filter(|(address, _)| address.contains(':') == v6);
            of.map(|(address, pod)| endpoint(spec, address, pod)).collect()
        };
        let ports: Vec<EndpointPort> =
            numbers.iter().filter_map(|(i, number)| slice_port(spec, *i, *number)).collect();
        for (kind, endpoints) in [("IPv4", family(false)), ("IPv6", family(true))] {
            let chunks: Vec<&[Endpoint]> = match endpoints.is_empty() {
                true if kind == "IPv4" => vec![&[]],
                _ => endpoints.chunks(PER_SLICE).collect(),
            };
            for (part, chunk) in chunks.into_iter().enumerate() {
                let suffix = fingerprint::of(&(&name, &numbers, kind, part), None);
                slices.push(EndpointSlice {
                    metadata: ObjectMeta {
                        name: Some(format!("{name}-{}", &suffix[..5])),
                        labels: Some(labels.clone()),
                        ..ObjectMeta::default()
                    },
                    address_type: kind.into(),
                    endpoints: Some(chunk.to_vec()),
                    ports: (!ports.is_empty()).then(|| ports.clone()),
                });
            }
        }
    }
    slices
}

fn slice_port(spec: &ServiceSpec, index: usize, number: i32) -> Option<EndpointPort> {
    let port = spec.ports.as_ref()?.get(index)?;
    Some(EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(number),
        protocol: Some(protocol(port.protocol.as_deref()).to_owned()),
        app_protocol: port.app_protocol.clone(),
    })
}

fn endpoint(spec: &ServiceSpec, address: &str, pod: &Pod) -> Endpoint {
    let serving = pod::is_ready(pod);
    let terminating = pod::is_deleting(pod);
    let ready = spec.publish_not_ready_addresses == Some(true) || (serving && !terminating);
    Endpoint {
        addresses: vec![address.to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(pod),
        node_name: pod.spec.as_ref().and_then(|s| s.node_name.clone()),
        target_ref: Some(reference(pod)),
        ..Endpoint::default()
    }
}
