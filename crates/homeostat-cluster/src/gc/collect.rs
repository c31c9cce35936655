//! Carries out what was decided about one object. Every write is guarded by uid and, where it
//! replaces a list, by resourceVersion.

use homeostat::cache::Owner;
use homeostat::kube::Client;
use homeostat::{Error, EventType, Key, Result};
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};

use super::decide::{self, Action, Standing};
use super::graph::{Node, ORPHAN, Uid};
use super::{Monitor, Surroundings, unseen};
use crate::write;

/// Who writes the events.
const NAME: &str = "garbage-collector-controller";

/// Looks at one object and does what is due. An object the graph no longer has needs nothing.
pub(super) async fn collect(
    surroundings: &Surroundings,
    monitor: &Monitor,
    uid: &Uid,
) -> Result<()> {
    let Some((node, seen)) = look(monitor, uid) else { return Ok(()) };
    let mut owners = Vec::new();
    for (owner, standing) in seen {
        let standing = match standing {
            // An object on its way out is not judged by its owners.
            Standing::Unseen if !node.is_deleting => {
                ask(surroundings, monitor, &node, &owner).await?
            }
            known => known,
        };
        owners.push((owner.uid, standing));
    }
    let action = decide::decide(&monitor.graph(), &node, &owners);
    tell_of_misplaced_owners(surroundings, monitor, &node);
    carry_out(surroundings, monitor, &node, action).await
}

fn look(monitor: &Monitor, uid: &Uid) -> Option<(Node, Vec<(Owner, Standing)>)> {
    let graph = monitor.graph();
    let node = graph.get(uid)?.clone();
    let seen = node
        .owners
        .iter()
        .map(|owner| (owner.clone(), decide::standing(&graph, &node, owner)))
        .collect();
    Some((node, seen))
}

/// Says on the object that an owner reference points into another namespace.
fn tell_of_misplaced_owners(surroundings: &Surroundings, monitor: &Monitor, node: &Node) {
    let misplaced = |owner: &&Owner| {
        let graph = monitor.graph();
        let there = graph.get(&owner.uid).and_then(|found| found.key.namespace());
        there.is_some() && there != node.key.namespace()
    };
    for owner in node.owners.iter().filter(misplaced) {
        let regarding = ObjectReference {
            api_version: Some(node.kind.api_version()),
            kind: Some(node.kind.kind().to_owned()),
            name: Some(node.key.name().to_owned()),
            namespace: node.key.namespace().map(str::to_owned),
            uid: Some(node.uid.to_string()),
            ..ObjectReference::default()
        };
        let note = format!(
            "ownerRef {}/{} {} (uid {}) does not exist in the namespace of the object",
            owner.api_version, owner.kind, owner.name, owner.uid
        );
        let recorder = &surroundings.recorder;
        recorder.record(NAME, regarding, EventType::Warning, "OwnerRefInvalidNamespace", note);
    }
}

/// Asks the API about an owner that the graph has not seen.
async fn ask(
    surroundings: &Surroundings,
    monitor: &Monitor,
    node: &Node,
    owner: &Owner,
) -> Result<Standing> {
    let Some(kind) = monitor.kind_of(owner) else {
        let is_gone = monitor.graph().is_gone(&owner.uid);
        return Ok(if is_gone { Standing::Absent } else { Standing::Unknown });
    };
    if kind.is_namespaced() && node.key.namespace().is_none() {
        return Ok(Standing::Unknown);
    }
    let key = Key::new(node.key.namespace().filter(|_| kind.is_namespaced()), &owner.name);
    let live = write::read(&surroundings.client, &kind, &key).await?;
    let uid = live.as_ref().and_then(|object| object.pointer("/metadata/uid")?.as_str());
    Ok(if uid == Some(&*owner.uid) { Standing::Solid } else { Standing::Absent })
}

async fn carry_out(
    surroundings: &Surroundings,
    monitor: &Monitor,
    node: &Node,
    action: Action,
) -> Result<()> {
    let client = &surroundings.client;
    match action {
        Action::Keep => {}
        Action::Delete(policy) => {
            tracing::debug!(kind = %node.kind, key = %node.key, policy, "deleting: no owner left");
            delete(client, node, policy).await?;
        }
        Action::Disown(gone) => disown(surroundings, node, &gone).await?,
        Action::Unblock => {
            let unblock = |owner: &Owner| (owner.clone(), false);
            set_owners(surroundings, node, node.owners.iter().map(unblock)).await?;
            write::delete(client, &node.kind, &node.key, &node.uid, "Foreground").await?;
        }
        Action::FreeDependents(dependents) => {
            unseen::check(client, monitor, node).await?;
            for uid in dependents {
                let dependent = monitor.graph().get(&uid).cloned();
                if let Some(dependent) = dependent {
                    disown(surroundings, &dependent, std::slice::from_ref(&node.uid)).await?;
                }
            }
            finish(surroundings, node, ORPHAN).await?;
        }
        Action::Finish(finalizer) => {
            unseen::check(client, monitor, node).await?;
            finish(surroundings, node, finalizer).await?;
        }
        Action::Visit(dependents) => {
            for uid in dependents {
                monitor.visit(uid);
            }
        }
    }
    Ok(())
}

/// Deletes exactly the version that was judged. Caches of different kinds are not in step: an owner
/// may be seen to go before its dependent is seen to have been set free. What has changed since is
/// left alone; its event is on the way and brings it here again.
async fn delete(client: &Client, node: &Node, policy: &str) -> Result<bool> {
    let judged = json!({"uid": node.uid, "resourceVersion": node.resource_version});
    write::delete_if(client, &node.kind, &node.key, &judged, policy).await
}

/// Takes the references to `gone` from an object.
async fn disown(surroundings: &Surroundings, node: &Node, gone: &[Uid]) -> Result<()> {
    let kept = node.owners.iter().filter(|owner| !gone.contains(&owner.uid));
    set_owners(surroundings, node, kept.map(|owner| (owner.clone(), owner.block_owner_deletion)))
        .await
}

async fn set_owners(
    surroundings: &Surroundings,
    node: &Node,
    owners: impl Iterator<Item = (Owner, bool)>,
) -> Result<()> {
    let owners: Vec<Value> = owners
        .map(|(owner, blocks)| {
            json!({
                "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name,
                "uid": owner.uid, "controller": owner.controller, "blockOwnerDeletion": blocks,
            })
        })
        .collect();
    patch(surroundings, node, json!({ "ownerReferences": owners })).await
}

async fn finish(surroundings: &Surroundings, node: &Node, finalizer: &str) -> Result<()> {
    let rest: Vec<&String> = node.finalizers.iter().filter(|name| *name != finalizer).collect();
    patch(surroundings, node, json!({ "finalizers": rest })).await
}

/// Patches metadata of exactly the version that was judged. A conflict means that an event is on
/// the way which brings the object here again, but it is retried all the same.
async fn patch(surroundings: &Surroundings, node: &Node, mut metadata: Value) -> Result<()> {
    metadata["uid"] = json!(node.uid);
    metadata["resourceVersion"] = json!(node.resource_version);
    let body = json!({ "metadata": metadata });
    match write::patch(&surroundings.client, &node.kind, &node.key, None, &body).await {
        Err(error @ Error::Api(_)) if error.is_conflict() => {
            let text = format!("{} {} changed meanwhile", node.kind, node.key);
            Err(Error::Stale(text))
        }
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeostat::{Env, Kind};
    use homeostat_apiserver::{Server, ServerConfig};

    #[tokio::test(start_paused = true)]
    async fn an_object_that_was_set_free_since_it_was_judged_is_kept() {
        let env = Env::simulated(1, jiff::Timestamp::UNIX_EPOCH);
        let client = Client::new(Server::new(ServerConfig::new(env)), "default");
        let kind = Kind::new("", "v1", "ConfigMap", "configmaps", true);
        let key = Key::namespaced("default", "child");
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"});
        let child = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "child", "ownerReferences": [owner]}});
        let path = kind.path(Some("default"));
        let method = http::Method::POST;
        let made = write::send(&client, method, &path, "application/json", &child).await;
        let made = made.unwrap().unwrap();
        let text = |pointer: &str| made.pointer(pointer).and_then(Value::as_str).unwrap();
        let judged = Node {
            kind: kind.clone(),
            key: key.clone(),
            uid: text("/metadata/uid").into(),
            resource_version: text("/metadata/resourceVersion").into(),
            owners: vec![serde_json::from_value(owner).unwrap()].into(),
            finalizers: Vec::new(),
            is_deleting: false,
        };
        let free = json!({"metadata": {"ownerReferences": null}});
        let live = write::patch(&client, &kind, &key, None, &free).await.unwrap().unwrap();
        assert!(!delete(&client, &judged, "Background").await.unwrap());
        assert_eq!(write::read(&client, &kind, &key).await.unwrap().as_ref(), Some(&live));

        let version = live.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap();
        let judged = Node { resource_version: version.into(), ..judged };
        assert!(delete(&client, &judged, "Background").await.unwrap());
        assert_eq!(write::read(&client, &kind, &key).await.unwrap(), None);
    }
}
