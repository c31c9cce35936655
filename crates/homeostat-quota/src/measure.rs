//! What objects of a resource are charged for, by the names a quota may limit.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{Amounts, Overhead, Quantity, pod_limits, pod_requests};

const POD_RESOURCES: &[&str] = &[
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
const SERVICE_RESOURCES: &[&str] =
    &["count/services", "services", "services.nodeports", "services.loadbalancers"];
const CLAIM_RESOURCES: &[&str] = &["persistentvolumeclaims", "requests.storage"];
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Resources that are also counted under their plain name.
const PLAIN_COUNTS: &[&str] =
    &["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// Resources that every container must name when a quota limits them.
const REQUIRED: &[&str] =
    &["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// The measure of one resource: `pods`, `deployments.apps`.
#[derive(Debug, Clone, Copy)]
pub struct Measure<'a> {
    resource: &'a str,
}

impl<'a> Measure<'a> {
    /// The measure of `plural.group` (`plural` in the core group).
    #[must_use]
    pub fn of(resource: &'a str) -> Self {
        Self { resource }
    }

    /// Whether a limit of that name has anything to do with objects of the resource.
    #[must_use]
    pub fn measures(self, name: &str) -> bool {
        match self.resource {
            "pods" => {
                POD_RESOURCES.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || name.strip_prefix("requests.").is_some_and(is_extended)
            }
            "services" => SERVICE_RESOURCES.contains(&name),
            "persistentvolumeclaims" => {
                name == "count/persistentvolumeclaims"
                    || CLAIM_RESOURCES.contains(&name)
                    || CLAIM_RESOURCES.iter().any(|own| {
                        name.strip_suffix(own).is_some_and(|class| class.ends_with(STORAGE_CLASS))
                    })
            }
            other => {
                name.strip_prefix("count/") == Some(other)
                    || (PLAIN_COUNTS.contains(&other) && name == other)
            }
        }
    }

    /// What the object is charged for at that time.
    #[must_use]
    pub fn usage(self, object: &Value, now: Timestamp) -> Amounts {
        let mut usage = Amounts::default();
        usage.set(format!("count/{}", self.resource), Quantity::whole(1));
        match self.resource {
            "pods" if is_alive(object, now) => {
                let requests = pod_requests(object, Overhead::Counted);
                let limits = pod_limits(object, Overhead::Counted);
                usage.add(&compute(&requests, &limits));
            }
            "services" => service(object, &mut usage),
            "persistentvolumeclaims" => claim(object, &mut usage),
            other if PLAIN_COUNTS.contains(&other) => usage.set(other, Quantity::whole(1)),
            _ => {}
        }
        usage
    }
}

/// The plain and the qualified names of what a Pod, or one of its containers, asks for.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut result = Amounts::default();
    result.set("pods", Quantity::whole(1));
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = requests.get(name) {
            result.set(name, amount);
            result.set(format!("requests.{name}"), amount);
        }
        if let Some(amount) = limits.get(name) {
            result.set(format!("limits.{name}"), amount);
        }
    }
    for (name, amount) in requests.iter() {
        if name.starts_with("hugepages-") {
            result.set(name, amount);
            result.set(format!("requests.{name}"), amount);
        } else if is_extended(name) {
            result.set(format!("requests.{name}"), amount);
        }
    }
    result
}

/// Whether the name is one that somebody other than Kubernetes gave.
fn is_extended(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, _)| {
        !domain.ends_with("kubernetes.io") && !domain.starts_with("requests.")
    })
}

/// A Pod that has ended, or should have, no longer holds what it asked for.
fn is_alive(pod: &Value, now: Timestamp) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    if matches!(phase, Some("Failed" | "Succeeded")) {
        return false;
    }
    let deletion = pod.pointer("/metadata/deletionTimestamp").and_then(Value::as_str);
    let grace = pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    match (deletion.and_then(|text| text.parse::<Timestamp>().ok()), grace) {
        (Some(due), Some(grace)) => {
            due.saturating_add(SignedDuration::from_secs(grace)).is_ok_and(|end| now <= end)
        }
        _ => true,
    }
}

fn service(object: &Value, usage: &mut Amounts) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let ports = object.pointer("/spec/ports").and_then(Value::as_array);
    let count = |test: &dyn Fn(&Value) -> bool| {
        let count = ports.into_iter().flatten().filter(|port| test(port)).count();
        Quantity::whole(u32::try_from(count).unwrap_or(u32::MAX))
    };
    let balanced = text("/spec/type") == "LoadBalancer";
    let allocates = object.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&false.into());
    let node_ports = match text("/spec/type") {
        "NodePort" => count(&|_| true),
        "LoadBalancer" if allocates => count(&|_| true),
        "LoadBalancer" => {
            count(&|port| port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0)
        }
        _ => Quantity::ZERO,
    };
    usage.set("services", Quantity::whole(1));
    usage.set("services.nodeports", node_ports);
    usage.set("services.loadbalancers", Quantity::whole(u32::from(balanced)));
}

fn claim(object: &Value, usage: &mut Amounts) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let old = text("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    let class = old.or_else(|| text("/spec/storageClassName")).unwrap_or("");
    let read = |pointer: &str| Amounts::read(object.pointer(pointer)).get("storage");
    let wanted = read("/spec/resources/requests").map(|wanted| {
        let allocated = read("/status/allocatedResources").unwrap_or(Quantity::ZERO);
        wanted.max(allocated).rounded_up()
    });
    let mut charge = |name: &str, amount: Quantity| {
        usage.set(name, amount);
        if !class.is_empty() {
            usage.set(format!("{class}{STORAGE_CLASS}{name}"), amount);
        }
    };
    charge("persistentvolumeclaims", Quantity::whole(1));
    if let Some(wanted) = wanted {
        charge("requests.storage", wanted);
    }
}

/// Which of the limited resources the Pod's containers fail to name: resource → containers.
#[must_use]
pub fn missing_requirements(pod: &Value, limited: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut missing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if pod.pointer("/spec/resources").is_some_and(|own| {
        ["requests", "limits"].iter().any(|which| !Amounts::read(own.get(*which)).is_empty())
    }) {
        return missing;
    }
    let list = |pointer: &str| pod.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    for container in list("/spec/containers").chain(list("/spec/initContainers")) {
        let amounts = |which: &str| {
            Amounts::read(container.get("resources").and_then(|resources| resources.get(which)))
        };
        let named = compute(&amounts("requests"), &amounts("limits"));
        for name in limited.iter().filter(|name| REQUIRED.contains(name)) {
            if named.get(name).is_none() {
                let container = container.get("name").and_then(Value::as_str).unwrap_or("");
                missing.entry((*name).to_owned()).or_default().insert(container.to_owned());
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(resource: &str, object: &Value) -> String {
        Measure::of(resource).usage(object, Timestamp::UNIX_EPOCH).to_string()
    }

    #[test]
    fn a_pod_is_charged_for_its_containers_or_for_its_hungriest_start() {
        let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
        let pod = json!({"spec": {
            "containers": [container("100m"), container("200m")],
            "initContainers": [container("1")],
        }});
        assert_eq!(usage("pods", &pod), "count/pods=1,cpu=1,pods=1,requests.cpu=1");
        let mut ended = pod;
        ended["status"] = json!({"phase": "Succeeded"});
        assert_eq!(usage("pods", &ended), "count/pods=1");
    }

    #[test]
    fn a_claim_is_charged_to_its_class_too() {
        let claim = json!({"spec": {
            "storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}},
        }});
        let charged = usage("persistentvolumeclaims", &claim);
        assert!(charged.contains("gold.storageclass.storage.k8s.io/requests.storage=1Gi"));
        let measure = Measure::of("persistentvolumeclaims");
        assert!(measure.measures("gold.storageclass.storage.k8s.io/persistentvolumeclaims"));
        assert!(!measure.measures("pods"));
    }

    #[test]
    fn services_are_charged_for_their_ports_and_balancers() {
        let service =
            json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}});
        assert_eq!(
            usage("services", &service),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2"
        );
    }
}
