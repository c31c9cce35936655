//! The objects every cluster begins with. What controllers own is left to them.
//!
//! A server that begins with nothing takes them from finished texts; one that finds a cluster makes
//! what is missing, and brings the rest up to date.
//!
//! Some of them nobody can do without, and they come back when they are removed (`restore`);
//! kube-apiserver looks for them every few seconds. What it writes about flow control by itself is
//! in `flow_upkeep`. The others are made again at the next start.

mod api_services;
#[cfg(test)]
mod computed;
mod finished;
mod flow_control;
mod flow_upkeep;
mod policy;

use serde_json::{Value, json};

use crate::advertise::advertise;
use crate::registry::options::WriteOptions;
use crate::registry::{Patch, Registry, Target};
use crate::store::{Expect, Key};
use finished::{News, TEXTS, Text};

pub(crate) use api_services::{follow_definitions, local_status};
pub(crate) use flow_control::fixed as fixed_priority;

/// Priorities that nothing a user makes may exceed.
const PRIORITY_CLASSES: &[(&str, i64, &str)] = &[
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

const NAMESPACE_OF_THE_SYSTEM: &str = "kube-system";

const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

const NAMESPACES: [&str; 4] =
    ["default", NAMESPACE_OF_THE_SYSTEM, "kube-public", "kube-node-lease"];

/// Whether the object comes back when it is removed.
pub(crate) fn is_kept(resource: &str, key: &Key) -> bool {
    match resource {
        "namespaces" => NAMESPACES.contains(&key.name.as_str()),
        "servicecidrs.networking.k8s.io" => key.name == "kubernetes",
        "services" | "endpoints" | "endpointslices.discovery.k8s.io" => {
            (key.namespace.as_str(), key.name.as_str()) == ("default", "kubernetes")
        }
        _ => flow_control::is_one(resource, &key.name),
    }
}

/// Makes what nobody can do without, where it is missing.
pub(crate) fn restore(registry: &Registry) {
    namespaces(registry);
    service_range(registry);
    api_service(registry);
    install(registry, Text::is_of_flow_control);
    flow_upkeep::run(registry);
    if let Some(address) = registry.address() {
        advertise(registry, address);
    }
}

fn namespaces(registry: &Registry) {
    for name in NAMESPACES {
        create(
            registry,
            "namespaces",
            "",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
    }
}

/// Creates what is missing.
pub(crate) fn run(registry: &Registry) {
    if registry.store.newest().resources().next().is_none() {
        // There is nobody who could have a say in them.
        install(registry, |_| true);
        return;
    }
    registry.rbac.load(&registry.store);
    namespaces(registry);
    priority_classes(registry);
    for text in install(registry, Text::is_role_or_binding) {
        policy::reconcile(registry, text);
    }
    install(registry, Text::is_of_flow_control);
    install(registry, Text::is_api_service);
    flow_upkeep::remove(registry);
    service_range(registry);
    // Before the Service of the API: its address may be left of one that never came to be.
    registry.writer().restore_addresses();
    api_service(registry);
    token_tracking(registry);
    registry.writer().restore_node_ports();
}

fn priority_classes(registry: &Registry) {
    for (name, value, description) in PRIORITY_CLASSES {
        create(
            registry,
            "priorityclasses",
            "",
            json!({
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "description": description,
            }),
        );
    }
}

/// The Service that programs in Pods reach the API by.
fn api_service(registry: &Registry) {
    let address = registry.config.service_range.first();
    let writer = registry.writer();
    // It has the first address of the range, unless the data are of a server with another one.
    let address = (writer.is_offered(address) && !writer.is_taken(address)).then_some(address);
    drop(writer);
    create(
        registry,
        "services",
        "default",
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "type": "ClusterIP",
                "clusterIP": address.map(|address| address.to_string()),
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            },
        }),
    );
}

/// Says since which day it is known whether tokens of the old sort, which never end, are used: who removes
/// those that nobody uses asks for it. This server lets nobody in by one.
fn token_tracking(registry: &Registry) {
    let since = registry.env.now().strftime("%Y-%m-%d").to_string();
    let metadata = json!({"name": TOKEN_TRACKING});
    let data = json!({"since": since});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    create(registry, "configmaps", NAMESPACE_OF_THE_SYSTEM, map);
}

/// Commits those of the texts that are missing. Gives those that were there already, which stay as
/// they are.
fn install(registry: &Registry, is_meant: fn(&Text) -> bool) -> Vec<&'static Text> {
    let writer = registry.writer();
    let (now, range) = (writer.now(), registry.config.service_range);
    let news = News { now: &now, range };
    let meant: Vec<&Text> = TEXTS.iter().filter(|text| is_meant(text)).collect();
    let objects = meant.iter().map(|text| text.finish(&registry.env.uid(), &news));
    // Every commit tells how old what was before it is.
    registry.grow_older();
    let made = registry.store.put_absent(objects).unwrap_or_default();
    if made.iter().any(Option::is_some) {
        // Somebody may have read them while one was missing.
        registry.forget_flows();
    }
    for (text, made) in meant.iter().zip(&made) {
        if let Some(stored) = made {
            registry.rbac.note(text.resource, stored);
        }
    }
    let there = meant.into_iter().zip(made).filter(|(_, made)| made.is_none());
    there.map(|(text, _)| text).collect()
}

/// The range of addresses that Services get theirs from, ready to be used. A server that is started
/// with another range than before gives out addresses of that one from now on.
fn service_range(registry: &Registry) {
    let range = registry.config.service_range;
    let spec = json!({"cidrs": [range.to_string()]});
    let object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": spec,
    });
    create(registry, "servicecidrs", "", object);
    let Some(kind) = registry.catalogue().find("networking.k8s.io", "v1", "servicecidrs").cloned()
    else {
        return;
    };
    let target = Target { kind, namespace: String::new(), name: "kubernetes".to_owned() };
    let Ok(stored) = registry.get(&target) else { return };
    let mut object = stored.value();
    if object["spec"] != spec {
        object["spec"] = spec;
        let expect = Expect::Revision(stored.revision);
        let written = registry.writer().commit(&target.kind, &stored.key, expect, object, false);
        if let Err(status) = written {
            tracing::error!(%status, "the range of Services could not be changed");
        }
        return;
    }
    if object.pointer("/status/conditions").is_some() {
        return;
    }
    let ready = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "status": {"conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": crate::registry::seconds(registry.env.now()),
        }]},
    });
    let options = WriteOptions {
        manager: "kubernetes-service-cidr-controller".to_owned(),
        force: true,
        is_patch: true,
        ..WriteOptions::default()
    };
    let patch = Patch::Apply(ready.into());
    if let Err(status) = registry.patch(&target, true, patch, &options) {
        tracing::error!(%status, "the range of Services could not be marked as ready");
    }
}

fn create(registry: &Registry, plural: &str, namespace: &str, object: Value) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let Some(kind) = registry.catalogue().find(group, version, plural).cloned() else { return };
    let target = Target { kind, namespace: namespace.to_owned(), name: String::new() };
    let options = WriteOptions { manager: "kube-apiserver".to_owned(), ..WriteOptions::default() };
    if let Err(status) = registry.create(&target, object.into(), &options)
        && status.reason != "AlreadyExists"
    {
        tracing::error!(%status, plural, "an object that every cluster has could not be made");
    }
}
