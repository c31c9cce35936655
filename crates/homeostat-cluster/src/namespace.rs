//! The end of a namespace: delete what is in it, Pods first, say what remains, and let it go.
//!
//! The collector's graph knows what is left and wakes this for every removal, so nothing is polled.
//! Before the finalizer is taken, every kind is listed once more: the graph may be a moment behind.

use std::collections::BTreeMap;

use homeostat::kube::Client;
use homeostat::{Env, Error, Key, Kind, Result};
use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition, NamespaceStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::gc::{Monitor, Node};
use crate::write;

/// Takes a namespace one step further; nothing to do for one that is not being deleted.
pub(crate) async fn finish(
    client: &Client,
    env: &Env,
    monitor: &Monitor,
    name: &str,
) -> Result<()> {
    let (kind, key) = (Kind::of::<Namespace>(), Key::cluster(name));
    let Some(live) = write::read(client, &kind, &key).await? else {
        monitor.forget_namespace(name);
        return Ok(());
    };
    let namespace: Namespace = serde_json::from_value(live.clone()).map_err(Error::terminal)?;
    if namespace.metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    let is_held =
        namespace.spec.iter().any(|s| s.finalizers.iter().flatten().any(|f| f == "kubernetes"));
    if !is_held {
        return Ok(());
    }
    delete_content(client, monitor, name).await?;
    let remaining: Vec<Node> = monitor.graph().in_namespace(name).cloned().collect();
    if !remaining.is_empty() {
        return report(client, &namespace, &remaining, env.now()).await;
    }
    let left = sweep(client, monitor, name).await?;
    if left > 0 {
        return Err(Error::Stale(format!("{left} objects in {name} are not seen yet")));
    }
    report(client, &namespace, &[], env.now()).await?;
    release(client, live, name).await
}

/// Deletes what the graph knows of; while there are Pods, only those.
async fn delete_content(client: &Client, monitor: &Monitor, name: &str) -> Result<()> {
    let content: Vec<Node> = monitor.graph().in_namespace(name).cloned().collect();
    let pods = Kind::of::<Pod>();
    let any_pod = content.iter().any(|node| node.kind == pods);
    for node in content.iter().filter(|node| !any_pod || node.kind == pods) {
        if !node.is_deleting {
            write::delete(client, &node.kind, &node.key, &node.uid, "Background").await?;
        }
    }
    Ok(())
}

/// Deletes and then counts what the API itself has, of every kind.
async fn sweep(client: &Client, monitor: &Monitor, name: &str) -> Result<usize> {
    let mut left = 0;
    for kind in monitor.namespaced_kinds() {
        let path = kind.path(Some(name));
        let count = |list: &Value| list.get("items").and_then(Value::as_array).map_or(0, Vec::len);
        let list = || write::send(client, Method::GET, &path, "application/json", &Value::Null);
        if list().await?.as_ref().map_or(0, count) == 0 {
            continue;
        }
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1",
            "propagationPolicy": "Background"});
        write::send(client, Method::DELETE, &path, "application/json", &options).await?;
        left += list().await?.as_ref().map_or(0, count);
    }
    Ok(left)
}

/// Takes the finalizer that holds the namespace.
async fn release(client: &Client, mut live: Value, name: &str) -> Result<()> {
    let (kind, key) = (Kind::of::<Namespace>(), Key::cluster(name));
    if let Some(finalizers) = live.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| finalizer != "kubernetes");
    }
    // The status was written since it was read; the finalizers alone matter here.
    if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
    }
    write::put(client, &kind, &key, "finalize", &live).await?;
    Ok(())
}

async fn report(
    client: &Client,
    namespace: &Namespace,
    remaining: &[Node],
    now: Timestamp,
) -> Result<()> {
    let old = namespace.status.clone().unwrap_or_default();
    let new = NamespaceStatus {
        phase: Some("Terminating".into()),
        conditions: Some(conditions(old.conditions.as_deref().unwrap_or_default(), remaining, now)),
    };
    if new == old {
        return Ok(());
    }
    let body = json!({"metadata": {"uid": namespace.metadata.uid}, "status": new});
    let key = Key::of(namespace);
    write::patch(client, &Kind::of::<Namespace>(), &key, Some("status"), &body).await?;
    Ok(())
}

/// The five conditions of a namespace that is being deleted.
fn conditions(
    old: &[NamespaceCondition],
    remaining: &[Node],
    now: Timestamp,
) -> Vec<NamespaceCondition> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for node in remaining {
        let group = node.kind.group();
        *kinds.entry(format!("{}.{group}", node.kind.plural())).or_default() += 1;
        for finalizer in &node.finalizers {
            *finalizers.entry(finalizer).or_default() += 1;
        }
    }
    let list = |parts: Vec<String>| parts.join(", ");
    let content =
        list(kinds.iter().map(|(k, n)| format!("{k} has {n} resource instances")).collect());
    let held =
        list(finalizers.iter().map(|(f, n)| format!("{f} in {n} resource instances")).collect());
    let make = |kind: &str, is_true: bool, reason: &str, message: String| {
        let status = if is_true { "True" } else { "False" };
        let since = old.iter().find(|c| c.type_ == kind && c.status == status);
        NamespaceCondition {
            type_: kind.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message),
            last_transition_time: since
                .and_then(|c| c.last_transition_time.clone())
                .or(Some(Time(now))),
        }
    };
    let (has_content, is_held) = (!remaining.is_empty(), !finalizers.is_empty());
    vec![
        make(
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".into(),
        ),
        make(
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".into(),
        ),
        make(
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".into(),
        ),
        if has_content {
            let message = format!("Some resources are remaining: {content}");
            make("NamespaceContentRemaining", true, "SomeResourcesRemain", message)
        } else {
            let message = "All content successfully removed".into();
            make("NamespaceContentRemaining", false, "ContentRemoved", message)
        },
        if is_held {
            let message = format!("Some content in the namespace has finalizers remaining: {held}");
            make("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", message)
        } else {
            let message = "All content-preserving finalizers finished".into();
            make("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers", message)
        },
    ]
}
