//! Makes the objects of two runs comparable, and lists where they differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::kinds::{ENDPOINT_SLICE, KindOf, REVISION};
use crate::pretended;

/// Objects by kind and name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// Fields that differ from run to run: uids, revisions, times, addresses, secrets, and what is
/// derived from them.
const VARYING: [&str; 30] = [
    "uid",
    "podUid",
    "resourceVersion",
    "creationTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "startTime",
    "startedAt",
    "finishedAt",
    "time",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "clusterIP",
    "clusterIPs",
    "podIP",
    "podIPs",
    "containerID",
    "endpoint",
    "externalId",
    "password",
    "uri",
    "host",
    "managedFields",
    "volumeName",
    "ca.crt",
    // A Database's Pods carry a mark of its password, and all of their revisions differ with it.
    "homeostat.dev/credentials",
    "controller-revision-hash",
    "controller.kubernetes.io/hash",
    "currentRevision",
    "updateRevision",
];

/// Every object by kind and name, without what no two runs share.
pub(crate) fn comparable(lists: BTreeMap<KindOf, Vec<DynamicObject>>, namespace: &str) -> Objects {
    let generated =
        |item: &DynamicObject| item.metadata.generate_name.as_ref().map(|_| item.name_any());
    let generated: Vec<String> = lists.values().flatten().filter_map(generated).collect();
    let mut objects = BTreeMap::new();
    for (kind, items) in lists {
        for (index, item) in items.into_iter().enumerate() {
            let name = match &item.metadata.generate_name {
                Some(base) => format!("{base}{index}"),
                // Named after what it holds, a mark of the password among it.
                None if kind == REVISION => format!("{index}"),
                None => item.name_any(),
            };
            let mut value = serde_json::to_value(&item).unwrap();
            if kind == REVISION {
                value["metadata"]["name"] = json!("derived");
            }
            if kind == ENDPOINT_SLICE {
                // It counts how often it was written: once for each Pod, or once for several that get
                // ready together.
                value["metadata"]["generation"] = json!("varies");
            }
            plain(&mut value, namespace, &generated, None);
            // Whether items of a list repeat their type is a matter of representation.
            for field in ["apiVersion", "kind"] {
                value.as_object_mut().unwrap().remove(field);
            }
            objects.insert(format!("{} {name}", kind.2), value);
        }
    }
    objects
}

fn plain(value: &mut Value, namespace: &str, generated: &[String], key: Option<&str>) {
    match value {
        // Written out or left out, a null means the same.
        Value::Null => {}
        _ if key.is_some_and(|key| VARYING.contains(&key)) => *value = json!("varies"),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                plain(field, namespace, generated, Some(name));
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| plain(item, namespace, generated, None));
        }
        Value::String(text) => {
            *text = text.replace(namespace, "namespace");
            for name in generated {
                *text = text.replace(name, "generated");
            }
            if text.starts_with(pretended::ADDRESSES) {
                "address".clone_into(text);
            }
            // `kube-api-access-x7k2p`: the volume of the service account's token has a random name.
            if text.starts_with("kube-api-access-") {
                "kube-api-access".clone_into(text);
            }
        }
        _ => {}
    }
}

/// The paths at which two runs differ, each with both values.
pub(crate) fn differences(ours: &Objects, theirs: &Objects) -> String {
    let mut found = String::new();
    for (name, object) in ours {
        differing(name, object, &theirs[name], &mut found);
    }
    found
}

fn differing(path: &str, ours: &Value, theirs: &Value, found: &mut String) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let fields: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for field in fields {
                let absent = Value::Null;
                let (a, b) = (a.get(field).unwrap_or(&absent), b.get(field).unwrap_or(&absent));
                differing(&format!("{path}.{field}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differing(&format!("{path}[{index}]"), a, b, found);
            }
        }
        _ if ours == theirs => {}
        _ => {
            let _ = writeln!(found, "{path}: {ours} | {theirs}");
        }
    }
}
