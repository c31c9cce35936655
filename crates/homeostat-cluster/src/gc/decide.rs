//! What becomes of one object. Pure: from the graph and from what is known of its owners.

use homeostat::cache::Owner;

use super::graph::{FOREGROUND, Graph, Node, ORPHAN, Uid};

/// What is known of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is there.
    Solid,
    /// It is there, being deleted, and waits for its dependents.
    Waiting,
    /// The API says it is gone, or that another object has its name.
    Absent,
    /// It is in a place where an owner must not be, or of a kind that nobody knows: no reason to
    /// delete anything.
    Unknown,
    /// The graph has not seen it; the API has to be asked.
    Unseen,
}

/// One write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing to do.
    Keep,
    /// Delete the object with this policy.
    Delete(&'static str),
    /// Take these owner references from the object.
    Disown(Vec<Uid>),
    /// Let the object no longer block its owners, then delete it in the foreground: its
    /// dependents wait for it while it is waited for, a circle nobody else would break.
    Unblock,
    /// Take the owner's reference from these, then the finalizer from the object.
    FreeDependents(Vec<Uid>),
    /// Take the finalizer from the object: no dependent blocks it any more.
    Finish(&'static str),
    /// Look at these dependents: they block the object's deletion.
    Visit(Vec<Uid>),
}

/// The standing of an owner as the graph has it. An owner must be in the dependent's namespace or
/// in none.
pub(super) fn standing(graph: &Graph, dependent: &Node, owner: &Owner) -> Standing {
    let Some(node) = graph.get(&owner.uid) else { return Standing::Unseen };
    match (node.key.namespace(), dependent.key.namespace()) {
        (Some(_), None) => Standing::Unknown,
        (Some(there), Some(here)) if there != here => Standing::Absent,
        _ if node.waits_for_dependents() => Standing::Waiting,
        _ => Standing::Solid,
    }
}

/// Decides about `node`, given the standing of each of its owners.
pub(super) fn decide(graph: &Graph, node: &Node, owners: &[(Uid, Standing)]) -> Action {
    if node.frees_dependents() {
        return Action::FreeDependents(
            graph.dependents(&node.uid).map(|n| n.uid.clone()).collect(),
        );
    }
    if node.waits_for_dependents() {
        let blocking: Vec<Uid> = graph
            .dependents(&node.uid)
            .filter(|dependent| dependent.blocks(&node.uid))
            .map(|dependent| dependent.uid.clone())
            .collect();
        return if blocking.is_empty() {
            Action::Finish(FOREGROUND)
        } else {
            Action::Visit(blocking)
        };
    }
    if node.is_deleting || owners.is_empty() {
        return Action::Keep;
    }
    let with = |wanted: Standing| owners.iter().filter(move |(_, standing)| *standing == wanted);
    if with(Standing::Unknown).next().is_some() || with(Standing::Unseen).next().is_some() {
        return Action::Keep;
    }
    if with(Standing::Solid).next().is_some() {
        let gone = with(Standing::Absent).chain(with(Standing::Waiting));
        let gone: Vec<Uid> = gone.map(|(uid, _)| uid.clone()).collect();
        return if gone.is_empty() { Action::Keep } else { Action::Disown(gone) };
    }
    let mut dependents = graph.dependents(&node.uid).peekable();
    if with(Standing::Waiting).next().is_some() && dependents.peek().is_some() {
        return if dependents.any(Node::waits_for_dependents) {
            Action::Unblock
        } else {
            Action::Delete("Foreground")
        };
    }
    let own = |finalizer: &str| node.finalizers.iter().any(|name| name == finalizer);
    Action::Delete(match () {
        () if own(ORPHAN) => "Orphan",
        () if own(FOREGROUND) => "Foreground",
        () => "Background",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeostat::{Key, Kind};

    fn node(uid: &str, owners: &[&str]) -> Node {
        let owner = |uid: &&str| {
            serde_json::from_value::<Owner>(serde_json::json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid,
                "blockOwnerDeletion": true,
            }))
            .unwrap()
        };
        Node {
            kind: Kind::new("", "v1", "ConfigMap", "configmaps", true),
            key: Key::namespaced("default", uid),
            uid: uid.into(),
            resource_version: "1".into(),
            owners: owners.iter().map(owner).collect(),
            finalizers: Vec::new(),
            is_deleting: false,
        }
    }

    fn foreground(mut node: Node) -> Node {
        node.is_deleting = true;
        node.finalizers = vec![FOREGROUND.into()];
        node
    }

    fn graph(nodes: &[&Node]) -> Graph {
        let mut graph = Graph::default();
        for node in nodes {
            graph.put((*node).clone());
        }
        graph
    }

    fn judge(graph: &Graph, node: &Node, unseen: Standing) -> Action {
        let owners: Vec<_> = node
            .owners
            .iter()
            .map(|owner| match standing(graph, node, owner) {
                Standing::Unseen => (owner.uid.clone(), unseen),
                seen => (owner.uid.clone(), seen),
            })
            .collect();
        decide(graph, node, &owners)
    }

    #[test]
    fn an_object_without_any_owner_left_is_deleted_and_one_with_a_solid_owner_is_kept() {
        let (owner, child) = (node("owner", &[]), node("child", &["owner", "other"]));
        let only = graph(&[&child]);
        assert_eq!(judge(&only, &child, Standing::Absent), Action::Delete("Background"));
        let both = graph(&[&owner, &child]);
        assert_eq!(judge(&both, &child, Standing::Absent), Action::Disown(vec!["other".into()]));
        assert_eq!(judge(&both, &child, Standing::Unknown), Action::Keep);
    }

    #[test]
    fn an_owner_in_another_namespace_is_absent() {
        let (mut owner, child) = (node("owner", &[]), node("child", &["owner"]));
        owner.key = Key::namespaced("elsewhere", "owner");
        let graph = graph(&[&owner, &child]);
        assert_eq!(judge(&graph, &child, Standing::Unseen), Action::Delete("Background"));
    }

    #[test]
    fn a_namespaced_owner_of_a_cluster_object_deletes_nothing() {
        let (owner, mut child) = (node("owner", &[]), node("child", &["owner"]));
        child.key = Key::cluster("child");
        let graph = graph(&[&owner, &child]);
        assert_eq!(judge(&graph, &child, Standing::Unseen), Action::Keep);
    }

    #[test]
    fn a_waiting_owner_finishes_when_no_dependent_blocks_it() {
        let (owner, child) = (foreground(node("owner", &[])), node("child", &["owner"]));
        let mut both = graph(&[&owner, &child]);
        assert_eq!(judge(&both, &owner, Standing::Unseen), Action::Visit(vec!["child".into()]));
        assert_eq!(judge(&both, &child, Standing::Unseen), Action::Delete("Background"));
        let look = both.remove(&child.uid);
        assert!(look.contains(&owner.uid), "the owner is looked at again");
        assert_eq!(judge(&both, &owner, Standing::Unseen), Action::Finish(FOREGROUND));
    }

    #[test]
    fn a_circle_of_waiting_objects_is_broken() {
        let a = foreground(node("a", &["b"]));
        let b = node("b", &["a"]);
        let circle = graph(&[&a, &b]);
        assert_eq!(judge(&circle, &b, Standing::Unseen), Action::Unblock);
    }
}
