//! Who depends on whom: the metadata of every object by uid. Pure.
//!
//! The graph follows the caches; it never asks the API. What it does not know is "unseen", which
//! is not the same as absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat::cache::{Delta, Header, Owner};
use homeostat::{Key, Kind};

/// The uid of an object: its identity in the graph.
pub(crate) type Uid = Arc<str>;

/// The finalizer of an owner that waits for its dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner that lets its dependents go free first.
pub(super) const ORPHAN: &str = "orphan";

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) uid: Uid,
    pub(crate) resource_version: String,
    pub(crate) owners: Arc<[Owner]>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) is_deleting: bool,
}

impl Node {
    fn new(kind: &Kind, header: &Header) -> Self {
        Self {
            kind: kind.clone(),
            key: header.key.clone(),
            uid: Arc::clone(&header.uid),
            resource_version: header.resource_version.clone(),
            owners: Arc::clone(&header.owners),
            finalizers: header.finalizers.clone(),
            is_deleting: header.is_being_deleted(),
        }
    }

    fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|name| name == finalizer)
    }

    /// Being deleted, and waiting for its dependents.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.is_deleting && self.has(FOREGROUND)
    }

    /// Being deleted, and about to let its dependents go free.
    pub(super) fn frees_dependents(&self) -> bool {
        self.is_deleting && self.has(ORPHAN)
    }

    /// Whether deletion of `owner` in the foreground waits for this object.
    pub(super) fn blocks(&self, owner: &Uid) -> bool {
        self.owners
            .iter()
            .any(|reference| reference.uid == *owner && reference.block_owner_deletion)
    }
}

/// All objects seen, and the edges between them.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    /// Dependents by the uid of their owner; the owner itself may be unseen.
    dependents: BTreeMap<Uid, BTreeSet<Uid>>,
    /// Owners that are known to be gone, while something names them: once their kind is gone too,
    /// nobody can be asked.
    gone: BTreeSet<Uid>,
    by_namespace: BTreeMap<Arc<str>, BTreeSet<Uid>>,
}

impl Graph {
    /// Takes one change in and returns the objects that have to be looked at.
    pub(crate) fn take(&mut self, kind: &Kind, delta: &Delta) -> BTreeSet<Uid> {
        let mut look = BTreeSet::new();
        // An object replaced by a namesake between two events has both a removal and an addition.
        if let Some(old) = &delta.old
            && delta.new.as_ref().is_none_or(|new| new.header.uid != old.header.uid)
        {
            look.extend(self.end(&old.header.uid));
        }
        if let Some(new) = &delta.new {
            look.extend(self.insert(Node::new(kind, &new.header)));
        }
        look
    }

    fn insert(&mut self, node: Node) -> BTreeSet<Uid> {
        let mut look = BTreeSet::new();
        let before = self.unlink(&node.uid);
        for owner in &*node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(node.uid.clone());
        }
        if let Some(namespace) = node.key.namespace() {
            self.by_namespace.entry(Arc::from(namespace)).or_default().insert(node.uid.clone());
        }
        if !node.owners.is_empty() || node.waits_for_dependents() || node.frees_dependents() {
            look.insert(node.uid.clone());
        }
        // An owner that waits may be free to go once it is not named or not blocked any more.
        for owner in before.iter().flat_map(|old| &*old.owners) {
            if !node.blocks(&owner.uid) {
                look.extend(self.waiting(&owner.uid));
            }
            self.forget_unless_named(&owner.uid);
        }
        self.gone.remove(&node.uid);
        self.nodes.insert(node.uid.clone(), node);
        look
    }

    /// Forgets an object that is gone, and remembers that it is.
    pub(crate) fn end(&mut self, uid: &Uid) -> BTreeSet<Uid> {
        if self.dependents.contains_key(uid) {
            self.gone.insert(uid.clone());
        }
        self.remove(uid)
    }

    /// Whether an owner was seen to go.
    pub(crate) fn is_gone(&self, uid: &Uid) -> bool {
        self.gone.contains(uid)
    }

    fn forget_unless_named(&mut self, owner: &Uid) {
        if !self.dependents.contains_key(owner) {
            self.gone.remove(owner);
        }
    }

    /// Forgets an object: its dependents may be orphans now, its owners may be free to go.
    pub(crate) fn remove(&mut self, uid: &Uid) -> BTreeSet<Uid> {
        let mut look = BTreeSet::new();
        if let Some(node) = self.unlink(uid) {
            for owner in &*node.owners {
                look.extend(self.waiting(&owner.uid));
                self.forget_unless_named(&owner.uid);
            }
        }
        look.extend(self.dependents(uid).map(|node| node.uid.clone()));
        look
    }

    fn unlink(&mut self, uid: &Uid) -> Option<Node> {
        let node = self.nodes.remove(uid)?;
        for owner in &*node.owners {
            if let Some(set) = self.dependents.get_mut(&owner.uid) {
                set.remove(uid);
                if set.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        if let Some(namespace) = node.key.namespace()
            && let Some(set) = self.by_namespace.get_mut(namespace)
        {
            set.remove(uid);
            if set.is_empty() {
                self.by_namespace.remove(namespace);
            }
        }
        Some(node)
    }

    fn waiting(&self, uid: &Uid) -> Option<Uid> {
        self.nodes.get(uid).filter(|node| node.waits_for_dependents()).map(|node| node.uid.clone())
    }

    /// The object of that uid, if it was seen.
    pub(crate) fn get(&self, uid: &Uid) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The objects that name `owner`.
    pub(crate) fn dependents(&self, owner: &Uid) -> impl Iterator<Item = &Node> {
        self.dependents.get(owner).into_iter().flatten().filter_map(|uid| self.nodes.get(uid))
    }

    /// The objects in a namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Node> {
        self.by_namespace.get(namespace).into_iter().flatten().filter_map(|uid| self.nodes.get(uid))
    }

    /// The objects of a kind.
    pub(crate) fn of_kind(&self, kind: &Kind) -> Vec<Uid> {
        self.nodes.values().filter(|node| node.kind == *kind).map(|n| n.uid.clone()).collect()
    }

    /// The objects that have owners.
    pub(crate) fn owned(&self) -> Vec<Uid> {
        self.nodes.values().filter(|n| !n.owners.is_empty()).map(|n| n.uid.clone()).collect()
    }

    #[cfg(test)]
    pub(super) fn put(&mut self, node: Node) -> BTreeSet<Uid> {
        self.insert(node)
    }
}
