//! The older Endpoints object of a Service. Pure.

use homeostat::kube::ResourceExt;
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::target::{by_ports, hostname, protocol, reference};
use crate::pod;

pub(super) fn endpoints(service: &Service, spec: &ServiceSpec, pods: &[&Pod]) -> Endpoints {
    let mut labels = service.labels().clone();
    labels.insert("endpoints.kubernetes.io/managed-by".into(), "endpoint-controller".into());
    if spec.cluster_ip.as_deref() == Some("None") {
        labels.insert("service.kubernetes.io/headless".into(), String::new());
    }
    let groups = by_ports(spec, pods);
    let subsets: Vec<EndpointSubset> =
        groups.iter().filter_map(|(numbers, members)| subset(spec, numbers, members)).collect();
    Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        subsets: (!subsets.is_empty()).then_some(subsets),
    }
}

fn subset(
    spec: &ServiceSpec,
    numbers: &[(usize, i32)],
    members: &[(&str, &Pod)],
) -> Option<EndpointSubset> {
    let (mut ready, mut waiting) = (Vec::new(), Vec::new());
    for (ip, pod) in members {
        let address = EndpointAddress {
            ip: (*ip).to_owned(),
            hostname: hostname(pod),
            node_name: pod.spec.as_ref().and_then(|s| s.node_name.clone()),
            target_ref: Some(reference(pod)),
        };
        let publish = spec.publish_not_ready_addresses == Some(true);
        if publish || (pod::is_ready(pod) && !pod::is_deleting(pod)) {
            ready.push(address);
        } else if !pod::is_deleting(pod) {
            waiting.push(address);
        }
    }
    let ports: Vec<EndpointPort> = numbers
        .iter()
        .filter_map(|(index, number)| {
            let port = spec.ports.as_ref()?.get(*index)?;
            Some(EndpointPort {
                name: port.name.clone(),
                port: *number,
                protocol: Some(protocol(port.protocol.as_deref()).to_owned()),
                app_protocol: port.app_protocol.clone(),
            })
        })
        .collect();
    let any = !ready.is_empty() || !waiting.is_empty();
    any.then(|| EndpointSubset {
        addresses: (!ready.is_empty()).then_some(ready),
        not_ready_addresses: (!waiting.is_empty()).then_some(waiting),
        ports: (!ports.is_empty()).then_some(ports),
    })
}
