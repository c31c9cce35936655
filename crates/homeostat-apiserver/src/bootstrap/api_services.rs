//! APIServices of what the server serves itself: one per group and version, in the order that
//! clients prefer them. Those of definitions come and go with them.

use serde_json::{Value, json};

use crate::registry::update::Area;
use crate::registry::{Writer, metadata, rules, seconds};
use crate::store::{Expect, Key, Range};

pub(super) const RESOURCE: &str = "apiservices.apiregistration.k8s.io";
/// Says that the server looks after the object: from its start, or all the time.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Group, version, and the priorities of both; a group is preferred to those with lower ones. The
/// finished texts are made from it.
#[cfg(test)]
const BUILT_IN: &[(&str, &str, u32, u32)] = &[
    ("", "v1", 18000, 1),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("apps", "v1", 17800, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("networking.k8s.io", "v1", 17200, 15),
    ("node.k8s.io", "v1", 16300, 15),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("storage.k8s.io", "v1", 16800, 15),
];

/// The priorities of every group and version of definitions.
const OF_DEFINITIONS: (u32, u32) = (1000, 100);

/// The APIServices of the built-in groups.
#[cfg(test)]
pub(super) fn objects() -> Vec<Value> {
    let rows = BUILT_IN.iter();
    rows.map(|(group, version, above, within)| object(group, version, (*above, *within), "onstart"))
        .collect()
}

/// What an APIService says of itself when there is nobody to pass requests on to.
pub(crate) fn local_status(now: &str) -> Value {
    json!({"conditions": [{
        "lastTransitionTime": now,
        "message": "Local APIServices are always available",
        "reason": "Local",
        "status": "True",
        "type": "Available",
    }]})
}

/// Makes the APIServices of the definitions of a group, and removes those of versions that nobody
/// serves any more.
pub(crate) fn follow_definitions(writer: &Writer<'_>, group: &str) {
    let catalogue = writer.registry.catalogue();
    let Some(kind) = catalogue.find("apiregistration.k8s.io", "v1", "apiservices") else { return };
    let store = &writer.registry.store;
    let served: std::collections::BTreeSet<&str> = catalogue
        .all()
        .iter()
        .filter(|kind| kind.group == group && kind.custom.is_some())
        .map(|kind| kind.version.as_str())
        .collect();
    for version in &served {
        let key = Key::new("", format!("{version}.{group}"));
        if store.get(RESOURCE, &key).is_some() {
            continue;
        }
        let now = seconds(writer.registry.env.now());
        let mut object = object(group, version, OF_DEFINITIONS, "true");
        metadata::set(&mut object, "uid", writer.registry.env.uid().into());
        metadata::set(&mut object, "creationTimestamp", now.clone().into());
        let done = rules::track(writer, kind, None, &mut object, "kube-apiserver", Area::Main);
        metadata::set_top(&mut object, "status", Some(local_status(&now)));
        let done =
            done.and_then(|()| writer.commit(kind, &key, Expect::Absent, object, false).map(drop));
        if let Err(status) = done {
            tracing::error!(%status, name = key.name, "an APIService could not be made");
        }
    }
    let listed = store.list(RESOURCE, &Range::default()).map(|page| page.items);
    for stored in listed.unwrap_or_default() {
        let of_group =
            stored.key.name.split_once('.').filter(|(_, of)| *of == group && !group.is_empty());
        let Some((version, _)) = of_group else { continue };
        let object = stored.value();
        if !served.contains(version)
            && object["metadata"]["labels"][MANAGED] == "true"
            && let Err(status) = writer.remove(kind, &stored, &object)
        {
            tracing::error!(%status, name = stored.key.name, "an APIService could not be removed");
        }
    }
}

fn object(group: &str, version: &str, (above, within): (u32, u32), managed: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": format!("{version}.{group}"), "labels": {MANAGED: managed}},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": above,
            "versionPriority": within,
        },
    });
    if let Some(spec) = object["spec"].as_object_mut().filter(|_| group.is_empty()) {
        spec.shift_remove("group");
    }
    object
}
