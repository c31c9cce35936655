//! The objects every cluster begins with. What controllers own is left to them.
//!
//! Some of them nobody can do without, and they come back when they are removed (`restore`);
//! kube-apiserver looks for them every few seconds. What it writes about flow control by itself is
//! in `flow_upkeep`. The others are made again at the next start.

mod api_services;
mod flow_control;
mod flow_upkeep;
mod policy;

use std::io::Read as _;
use std::sync::{Arc, OnceLock};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::advertise::advertise;
use crate::default;
use crate::kinds::Kind;
use crate::registry::options::WriteOptions;
use crate::registry::update::Area;
use crate::registry::{Patch, Registry, Target, Writer, metadata, rules};
use crate::store::{Expect, Key};

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

const NAMESPACES: [&str; 4] =
    ["default", NAMESPACE_OF_THE_SYSTEM, "kube-public", "kube-node-lease"];

/// Objects that are committed as they are.
type Ready = Vec<(Arc<Kind>, Value)>;

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
    install(registry, flow_control);
    flow_upkeep::run(registry, flow_control);
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
    registry.rbac.load(&registry.store);
    namespaces(registry);
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
    for (kind, object) in install(registry, roles_and_bindings) {
        policy::reconcile(registry, kind, object);
    }
    install(registry, flow_control);
    install(registry, api_services);
    flow_upkeep::remove(registry);
    service_range(registry);
    api_service(registry);
    registry.writer().restore_addresses();
    registry.writer().restore_node_ports();
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

/// Commits what is missing as it is: more than a hundred objects that need no completing and no
/// checking, at every start. Gives those that were there already, which stay as they are.
fn install(
    registry: &Registry,
    objects: fn(&Writer<'_>) -> &'static Ready,
) -> Vec<&'static (Arc<Kind>, Value)> {
    let writer = registry.writer();
    let now = writer.now();
    let mut there = Vec::new();
    for ready in objects(&writer) {
        let (kind, object) = ready;
        let key = Key::new(metadata::namespace(object), metadata::name(object));
        let mut object = object.clone();
        metadata::set(&mut object, "uid", registry.env.uid().into());
        metadata::set(&mut object, "creationTimestamp", now.clone().into());
        for (list, field) in
            [("/metadata/managedFields", "time"), ("/status/conditions", "lastTransitionTime")]
        {
            let entries = object.pointer_mut(list).and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten() {
                entry[field] = now.clone().into();
            }
        }
        if writer.commit(kind, &key, Expect::Absent, object, false).is_err() {
            there.push(ready);
        }
    }
    there
}

fn roles_and_bindings(writer: &Writer<'_>) -> &'static Ready {
    const BYTES: &[u8] = include_bytes!("../../data/rbac.json.gz");
    static READY: OnceLock<Ready> = OnceLock::new();
    READY.get_or_init(|| {
        let mut text = Vec::new();
        // The bytes are generated and checked: they are always readable.
        let _ = GzDecoder::new(BYTES).read_to_end(&mut text);
        owned(writer, serde_json::from_slice(&text).unwrap_or_default(), "kube-apiserver")
    })
}

/// The groups and versions that are served by the server itself.
fn api_services(writer: &Writer<'_>) -> &'static Ready {
    static READY: OnceLock<Ready> = OnceLock::new();
    READY.get_or_init(|| {
        let mut ready = owned(writer, api_services::objects(), "kube-apiserver");
        for (_, object) in &mut ready {
            metadata::set_top(object, "status", Some(api_services::local_status("")));
        }
        ready
    })
}

/// The levels of priority and their schemas.
fn flow_control(writer: &Writer<'_>) -> &'static Ready {
    static READY: OnceLock<Ready> = OnceLock::new();
    READY.get_or_init(|| {
        let mut ready = owned(writer, flow_control::objects(), flow_control::PRODUCER);
        for (kind, object) in &mut ready {
            flow_control::mark_found(object);
            default::builtin(kind, object);
        }
        ready
    })
}

/// The objects with their kinds, and with whom their fields belong to, which is the same at every
/// start.
fn owned(writer: &Writer<'_>, objects: Vec<Value>, manager: &str) -> Ready {
    let with_kind = objects.into_iter().filter_map(|mut object| {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let mut kinds = crate::kinds::builtin().iter();
        let kind = kinds
            .find(|kind| kind.kind == text("kind") && kind.api_version() == text("apiVersion"))?
            .clone();
        rules::track(writer, &kind, None, &mut object, manager, Area::Main).ok()?;
        Some((kind, object))
    });
    with_kind.collect()
}

/// The range of addresses that Services get theirs from, ready to be used. A server that is started
/// with another range than before gives out addresses of that one from now on.
fn service_range(registry: &Registry) {
    let range = registry.config.service_range;
    let spec = json!({"cidrs": [format!("{}/{}", range.base, range.prefix)]});
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
