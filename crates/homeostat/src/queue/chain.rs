//! Doubly linked lists in one arena: to the end, off the front or out of the middle in constant
//! time, and no allocation once the arena has grown.

use slab::Slab;

use super::slots::KEPT;

/// No neighbour.
const NOBODY: usize = usize::MAX;

/// The values of any number of lists.
#[derive(Debug)]
pub(super) struct Links<V> {
    nodes: Slab<Node<V>>,
}

#[derive(Debug)]
struct Node<V> {
    value: V,
    before: usize,
    after: usize,
}

/// One list: its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    first: usize,
    last: usize,
}

impl Chain {
    pub(super) const EMPTY: Self = Self { first: NOBODY, last: NOBODY };

    pub(super) fn is_empty(self) -> bool {
        self.first == NOBODY
    }

    /// The node at the front.
    pub(super) fn first(self) -> Option<usize> {
        (!self.is_empty()).then_some(self.first)
    }
}

impl<V> Links<V> {
    pub(super) fn new() -> Self {
        Self { nodes: Slab::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn get(&self, node: usize) -> &V {
        &self.nodes[node].value
    }

    pub(super) fn get_mut(&mut self, node: usize) -> &mut V {
        &mut self.nodes[node].value
    }

    /// At the end of `chain`; returns the node, by which it can be taken out again.
    pub(super) fn push(&mut self, chain: &mut Chain, value: V) -> usize {
        let node = self.nodes.insert(Node { value, before: NOBODY, after: NOBODY });
        self.attach(chain, node);
        node
    }

    /// From wherever it is in `chain` to its end.
    pub(super) fn move_to_end(&mut self, chain: &mut Chain, node: usize) {
        if chain.last != node {
            self.detach(chain, node);
            self.attach(chain, node);
        }
    }

    /// Out of `chain`, wherever in it.
    pub(super) fn remove(&mut self, chain: &mut Chain, node: usize) -> V {
        self.detach(chain, node);
        let value = self.nodes.remove(node).value;
        if self.nodes.is_empty() && self.nodes.capacity() > KEPT {
            self.nodes = Slab::new();
        }
        value
    }

    /// Everything of every chain, in no promised order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = V> + use<V> {
        std::mem::take(&mut self.nodes).into_iter().map(|(_, node)| node.value)
    }

    fn attach(&mut self, chain: &mut Chain, node: usize) {
        let before = std::mem::replace(&mut chain.last, node);
        if before == NOBODY {
            chain.first = node;
        } else {
            self.nodes[before].after = node;
        }
        let it = &mut self.nodes[node];
        (it.before, it.after) = (before, NOBODY);
    }

    fn detach(&mut self, chain: &mut Chain, node: usize) {
        let Node { before, after, .. } = self.nodes[node];
        if before == NOBODY {
            chain.first = after;
        } else {
            self.nodes[before].after = after;
        }
        if after == NOBODY {
            chain.last = before;
        } else {
            self.nodes[after].before = before;
        }
    }
}
