//! Where a Service leads: EndpointSlices and the older Endpoints, from the Pods it selects.
//!
//! A Pod counts once it has an address; it receives traffic while it is ready. Slices hold at most
//! 100 addresses. Services without a selector are left to whoever writes their endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Outcome, Result};
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort as AddressPort, EndpointSubset, Endpoints, ObjectReference, Pod,
    Service, ServicePort, ServiceSpec,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::selector::Interest;
use crate::{fingerprint, pod, selector};

const PER_SLICE: usize = 100;
const OURS: &str = "endpointslice-controller.k8s.io";

/// The controller.
pub(crate) fn controller() -> Controller<Service> {
    let interest = Interest::default();
    let selected = interest.clone();
    Controller::new(move |service, ctx| reconcile(service, ctx, interest.clone()))
        .named("endpoint-controller")
        .owns::<EndpointSlice>()
        .owns::<Endpoints>()
        .watches::<Pod>(move |pod| {
            selected.matching(pod.metadata.namespace.as_deref(), pod.metadata.labels.as_ref())
        })
}

async fn reconcile(
    service: Arc<Service>,
    ctx: Context<Service>,
    interest: Interest,
) -> Result<Outcome> {
    let Some(spec) = &service.spec else { return Ok(Outcome::Done) };
    let Some(labels) = spec.selector.as_ref().filter(|labels| !labels.is_empty()) else {
        return Ok(Outcome::Done);
    };
    if service.metadata.deletion_timestamp.is_some()
        || spec.type_.as_deref() == Some("ExternalName")
    {
        return Ok(Outcome::Done);
    }
    let wanted = selector::exact(labels);
    interest.record(ctx.key(), &wanted);
    let mut pods = ctx.list::<Pod>().await?;
    pods.retain(|pod| selector::matches(&wanted, pod.metadata.labels.as_ref()));
    let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let slices = slices(&service, spec, &pods);
    for stale in ctx.owned::<EndpointSlice>().await? {
        if !slices.iter().any(|slice| slice.metadata.name == stale.metadata.name) {
            ctx.delete(stale.as_ref()).await?;
        }
    }
    for slice in slices {
        ctx.apply(slice).await?;
    }
    ctx.apply(endpoints(&service, spec, &pods)).await?;
    Ok(Outcome::Done)
}

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

fn protocol(protocol: Option<&str>) -> &str {
    protocol.unwrap_or("TCP")
}

/// Addresses and Pods, by the index and number of each of the Service's ports.
type ByPorts<'a> = BTreeMap<Vec<(usize, i32)>, Vec<(&'a str, &'a Pod)>>;

/// The Pods by the numbers the Service's ports have in them; several sets of numbers arise only
/// when containers give the same port name to different numbers.
fn by_ports<'a>(spec: &ServiceSpec, pods: &[&'a Pod]) -> ByPorts<'a> {
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

fn slices(service: &Service, spec: &ServiceSpec, pods: &[&Pod]) -> Vec<EndpointSlice> {
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

/// A Pod's own name under the Service, when it asks for one.
fn hostname(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    spec.hostname.clone().filter(|_| spec.subdomain.is_some())
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        name: pod.metadata.name.clone(),
        namespace: pod.metadata.namespace.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

fn endpoints(service: &Service, spec: &ServiceSpec, pods: &[&Pod]) -> Endpoints {
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
    let ports: Vec<AddressPort> = numbers
        .iter()
        .filter_map(|(index, number)| {
            let port = spec.ports.as_ref()?.get(*index)?;
            Some(AddressPort {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_ready_pods_receive_traffic() {
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]},
        }))
        .unwrap();
        let pod = |name: &str, ip: &str, ready: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"containers": [{"name": "c",
                    "ports": [{"name": "http", "containerPort": 8080}]}]},
                "status": {"phase": "Running", "podIP": ip,
                    "conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap()
        };
        let pods =
            [pod("a", "127.1.0.1", "True"), pod("b", "127.1.0.2", "False"), pod("c", "", "True")];
        let refs: Vec<&Pod> = pods.iter().collect();
        let spec = service.spec.as_ref().unwrap();
        let slices = slices(&service, spec, &refs);
        assert_eq!(slices.len(), 1);
        assert_eq!(slices[0].ports.as_ref().unwrap()[0].port, Some(8080));
        let ready: Vec<bool> = slices[0]
            .endpoints
            .iter()
            .flatten()
            .map(|e| e.conditions.as_ref().unwrap().ready.unwrap())
            .collect();
        assert_eq!(ready, [true, false]);
        let endpoints = endpoints(&service, spec, &refs);
        let subset = &endpoints.subsets.unwrap()[0];
        assert_eq!(subset.addresses.as_ref().unwrap()[0].ip, "127.1.0.1");
        assert_eq!(subset.not_ready_addresses.as_ref().unwrap()[0].ip, "127.1.0.2");
    }

    #[test]
    fn a_service_without_pods_has_one_empty_slice() {
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        }))
        .unwrap();
        let slices = slices(&service, service.spec.as_ref().unwrap(), &[]);
        assert_eq!(slices.len(), 1);
        assert_eq!(slices[0].endpoints.as_deref(), Some(&[][..]));
    }
}
