//! What a Service's ports and addresses are in the Pods behind it. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ObjectReference, Pod, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::pod;

/// The address of a Pod that can be led to.
fn address(pod: &Pod) -> Option<&str> {
    let address = pod.status.as_ref()?.pod_ip.as_deref().filter(|ip| !ip.is_empty())?;
    (!pod::is_terminal(pod)).then_some(address)
}

/// The number a Service's port has in this Pod; a named port must be declared by a container.
fn target_port(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        Some(IntOrString::Int(number)) if *number > 0 => Some(*number),
        Some(IntOrString::String(name)) => pod
            .spec
            .iter()
            .flat_map(|spec| &spec.containers)
            .flat_map(|container| container.ports.iter().flatten())
            .find(|p| {
                p.name.as_deref() == Some(name)
                    && protocol(p.protocol.as_deref()) == protocol(port.protocol.as_deref())
            })
            .map(|p| p.container_port),
        Some(IntOrString::Int(_)) | None => Some(port.port),
    }
}

/// TCP unless said otherwise.
pub(super) fn protocol(protocol: Option<&str>) -> &str {
    protocol.unwrap_or("TCP")
}

/// Addresses and Pods, by the index and number of each of the Service's ports.
pub(super) type ByPorts<'a> = BTreeMap<Vec<(usize, i32)>, Vec<(&'a str, &'a Pod)>>;

/// The Pods by the numbers the Service's ports have in them; several sets of numbers arise only
/// when containers give the same port name to different numbers.
pub(super) fn by_ports<'a>(spec: &ServiceSpec, pods: &[&'a Pod]) -> ByPorts<'a> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for pod in pods {
        let Some(address) = address(pod) else { continue };
        let declared = spec.ports.iter().flatten().enumerate();
        let numbers: Vec<(usize, i32)> =
            declared.filter_map(|(i, port)| Some((i, target_port(port, pod)?))).collect();
        if numbers.is_empty() && spec.ports.as_ref().is_some_and(|ports| !ports.is_empty()) {
            continue;
        }
        groups.entry(numbers).or_default().push((address, *pod));
    }
    groups
}

/// A Pod's own name under the Service, when it asks for one.
pub(super) fn hostname(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    spec.hostname.clone().filter(|_| spec.subdomain.is_some())
}

/// A reference to the Pod behind an address.
pub(super) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        name: pod.metadata.name.clone(),
        namespace: pod.metadata.namespace.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}
