//! APIServices: what the server serves itself is available at once; of the others it is told what
//! keeps anybody from asking their Service.
//!
//! Nobody is asked: this server passes no requests on, so a Service that could be asked is one that
//! did not answer.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::bootstrap::local_status;
use crate::kinds::Kind;
use crate::registry::aggregated::service_of;
use crate::registry::update::Area;
use crate::registry::{Writer, metadata, rules};
use crate::store::{Expect, Key, Range};

const RESOURCE: &str = "apiservices.apiregistration.k8s.io";
const SLICES: &str = "endpointslices.discovery.k8s.io";
/// The label that names the Service of an EndpointSlice.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, _, object| {
        if service_of(object).is_none() {
            metadata::set_top(object, "status", Some(local_status(&writer.now())));
        }
        Ok(())
    },
    committed: Some(|writer, kind, _, object| {
        writer.registry.aggregated.note(object);
        look_at(writer, kind, object);
    }),
    removed: |writer, _, object| writer.registry.aggregated.forget(metadata::name(object)),
    ..NONE
};

/// Looks again at the APIServices that lead to a Service of which something changed.
pub(super) fn service_changed(writer: &Writer<'_>, namespace: &str, name: &str) {
    let names = writer.registry.aggregated.leading_to(namespace, name);
    if names.is_empty() {
        return;
    }
    let catalogue = writer.registry.catalogue();
    let Some(kind) = catalogue.find("apiregistration.k8s.io", "v1", "apiservices") else { return };
    for name in names {
        if let Some(object) = writer.registry.peek(RESOURCE, "", &name) {
            look_at(writer, kind, &object);
        }
    }
}

/// The same for the Service of an EndpointSlice.
pub(super) fn slice_changed(writer: &Writer<'_>, slice: &Value) {
    if let Some(service) = metadata::labels(slice).get(SERVICE_NAME) {
        service_changed(writer, metadata::namespace(slice), service);
    }
}

/// Says whether an APIService is available, with a commit of its own, unless it says so already.
fn look_at(writer: &Writer<'_>, kind: &Kind, object: &Value) {
    let now = writer.now();
    let mut condition = match service_of(object) {
        None => local_status(&now)["conditions"][0].take(),
        Some(service) => {
            let (reason, message) = obstacle(writer, object, &service);
            json!({
                "lastTransitionTime": now,
                "message": message,
                "reason": reason,
                "status": "False",
                "type": "Available",
            })
        }
    };
    let mut conditions =
        object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            if *known == condition {
                return;
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
    let mut told = object.clone();
    metadata::set_top(&mut told, "status", Some(json!({"conditions": conditions})));
    let tracked =
        rules::track(writer, kind, Some(object), &mut told, "kube-apiserver", Area::Status);
    let key = Key::new("", metadata::name(object));
    let Some(stored) = writer.registry.store.get(RESOURCE, &key) else { return };
    let expect = Expect::Revision(stored.revision);
    let done = tracked.and_then(|()| writer.commit(kind, &key, expect, told, false).map(drop));
    if let Err(status) = done {
        tracing::error!(%status, name = key.name, "nobody is told whether an APIService is available");
    }
}

/// Reason and message of what keeps requests from the Service.
fn obstacle(writer: &Writer<'_>, object: &Value, at: &Key) -> (&'static str, String) {
    let called = format!("service/{} in {:?}", at.name, at.namespace);
    let Some(service) = writer.registry.peek("services", &at.namespace, &at.name) else {
        return ("ServiceNotFound", format!("{called} is not present"));
    };
    if service["spec"]["type"] == "ClusterIP" {
        let port = &object["spec"]["service"]["port"];
        let ports = service["spec"]["ports"].as_array();
        let Some(found) = ports.into_iter().flatten().find(|known| known["port"] == *port) else {
            return ("ServicePortError", format!("{called} is not listening on port {port}"));
        };
        let port = found["name"].as_str().unwrap_or_default();
        let slices = slices(writer, at);
        if slices.is_empty() {
            let message = format!("cannot find endpointslices for {called}");
            return ("EndpointsNotFound", message);
        }
        if !slices.iter().any(|slice| is_ready(slice, port)) {
            let message =
                format!("endpointslices for {called} have no addresses with port name {port:?}");
            return ("MissingEndpoints", message);
        }
    }
    ("FailedDiscoveryCheck", format!("this server passes no requests on to {called}"))
}

fn slices(writer: &Writer<'_>, service: &Key) -> Vec<Value> {
    let range = Range { namespace: Some(service.namespace.clone()), ..Range::default() };
    let all = writer.registry.store.list(SLICES, &range).map(|page| page.items);
    let of_service = all
        .unwrap_or_default()
        .into_iter()
        .filter(|slice| slice.labels.get(SERVICE_NAME) == Some(service.name.as_str()));
    of_service.map(|slice| slice.value()).collect()
}

/// Whether a slice has an endpoint that is ready, and the port.
fn is_ready(slice: &Value, port: &str) -> bool {
    let list = |field: &str| slice[field].as_array().into_iter().flatten();
    list("endpoints").any(|endpoint| endpoint["conditions"]["ready"] != false)
        && list("ports").any(|known| known["name"] == port && !known["port"].is_null())
}
