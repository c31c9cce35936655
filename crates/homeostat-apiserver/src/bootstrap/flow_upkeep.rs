//! What the server itself writes about flow control: the objects that every cluster has are set back
//! when somebody edits them, unless their annotation says otherwise; others with that annotation were
//! made by a server before this one, and go; and every schema is told whether the level it leads to
//! exists.
//!
//! kube-apiserver looks every minute; here it happens with the write that made it necessary.

use serde_json::{Value, json};

use super::finished::TEXTS;
use super::flow_control::{CONSUMER, EXEMPT, PRODUCER, dangling, is_one, level_of};
use crate::registry::options::{DeleteOptions, WriteOptions};
use crate::registry::{Patch, Registry, Target, metadata, seconds};
use crate::status::Status;
use crate::store::Stored;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const AUTOMATIC: &str = "apf.kubernetes.io/autoupdate-spec";

/// Sets back, removes and marks what has to be.
pub(super) fn run(registry: &Registry) {
    for text in TEXTS.iter().filter(|text| text.is_of_flow_control()) {
        let Some(kind) = text.kind().cloned() else { continue };
        let wanted = text.value();
        let name = metadata::name(&wanted).to_owned();
        let target = Target { kind, namespace: String::new(), name };
        let Ok(stored) = registry.get(&target) else { continue };
        if let Some(revised) = revised(&stored.value(), &wanted) {
            let options = written_by(PRODUCER);
            report(
                registry.update(&target, false, revised.into(), &options).map(drop),
                &target.name,
            );
        }
    }
    remove(registry);
    mark(registry);
}

/// Removes what calls itself one of the objects that every cluster has, and is none of them.
pub(super) fn remove(registry: &Registry) {
    let snapshot = registry.store.newest();
    for plural in ["flowschemas", "prioritylevelconfigurations"] {
        let Some(kind) = registry.catalogue().find(GROUP, "v1", plural).cloned() else { continue };
        let resource = format!("{plural}.{GROUP}");
        for stored in snapshot.objects(&resource) {
            let name = stored.key.name.clone();
            if is_one(&resource, &name) || said(&stored.value()) != Some(true) {
                continue;
            }
            let target = Target { kind: kind.clone(), namespace: String::new(), name };
            report(registry.delete(&target, &DeleteOptions::default()).map(drop), &target.name);
        }
    }
}

/// What the annotation of an object says.
fn said(object: &Value) -> Option<bool> {
    let annotation = object.pointer("/metadata/annotations").and_then(|all| all.get(AUTOMATIC));
    annotation.and_then(Value::as_str).and_then(as_bool)
}

fn written_by(manager: &str) -> WriteOptions {
    WriteOptions { manager: manager.to_owned(), force: true, ..WriteOptions::default() }
}

fn report(done: Result<(), Status>, name: &str) {
    if let Err(status) = done {
        tracing::warn!(%status, name, "an object of flow control could not be looked after");
    }
}

/// The object as it should be, if it is not.
fn revised(current: &Value, wanted: &Value) -> Option<Value> {
    let said = said(current);
    // Nobody edited it, or nobody may.
    let fixed = matches!(metadata::name(current), EXEMPT | "catch-all");
    let automatic = fixed || said.unwrap_or(metadata::generation(current) == 1);
    let mut revised = current.clone();
    if automatic {
        revised["spec"] = wanted["spec"].clone();
    }
    if said != Some(automatic) {
        metadata::set_annotation(&mut revised, AUTOMATIC, &automatic.to_string());
    }
    (revised != *current).then_some(revised)
}

/// A flag as Go reads it.
fn as_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Tells every schema whether its level exists.
fn mark(registry: &Registry) {
    let snapshot = registry.store.newest();
    let named = |stored: &&std::sync::Arc<Stored>, name: &str| stored.key.name == name;
    let levels: Vec<_> =
        snapshot.objects(&format!("prioritylevelconfigurations.{GROUP}")).collect();
    let Some(kind) = registry.catalogue().find(GROUP, "v1", "flowschemas").cloned() else { return };
    for stored in snapshot.objects(&format!("flowschemas.{GROUP}")) {
        let schema = stored.value();
        let Some(level) = level_of(&schema) else { continue };
        let exists = levels.iter().any(|stored| named(stored, level));
        let mut condition = dangling(level, exists);
        let conditions = schema.pointer("/status/conditions").and_then(Value::as_array);
        let said = conditions.into_iter().flatten().any(|given| {
            ["type", "status", "reason", "message"]
                .iter()
                .all(|field| given.get(field) == condition.get(field))
        });
        if said {
            continue;
        }
        condition["lastTransitionTime"] = seconds(registry.env.now()).into();
        let name = stored.key.name.clone();
        let body = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "FlowSchema",
            "metadata": {"name": name},
            "status": {"conditions": [condition]},
        });
        let target = Target { kind: kind.clone(), namespace: String::new(), name };
        let options = WriteOptions { is_patch: true, ..written_by(CONSUMER) };
        let patch = Patch::Apply(body.into());
        report(registry.patch(&target, true, patch, &options).map(drop), &target.name);
    }
}
