//! Two informers of one kind are not in step. Who is woken by one and reads the other is to find
//! there what has woken it: nobody would wake it again when the other has caught up.
//!
//! It holds no cache: a handler that does keeps it from being stopped.

use std::sync::Arc;

use kube::core::{Selector, SelectorExt};

use crate::cache::{Entry, KindCache, selector};
use crate::context::Memories;
use crate::key::Key;
use crate::kind::Kind;

/// What a cache tells of that reconciles do not read; cheap to clone.
#[derive(Clone)]
pub(super) struct Ahead {
    memories: Arc<Memories>,
    /// The labels of what reconciles read; the rest they will not find there.
    selected: Option<Arc<Selector>>,
}

impl Ahead {
    /// For changes that `told` tells of, when reconciles read `read`; `None` if it is the same.
    pub(super) fn of(told: &KindCache, read: &KindCache, memories: &Arc<Memories>) -> Option<Self> {
        let selected = read.selection().0.and_then(|labels| selector::parse(labels).ok());
        let selected = selected.map(Arc::new);
        (!told.is_same(read)).then(|| Self { memories: Arc::clone(memories), selected })
    }

    /// Reconciles of `key` read this version of an object, or a later one.
    pub(super) fn heard(&self, key: &Key, kind: &Kind, entry: &Entry) {
        let selects = |selected: &Arc<Selector>| selected.matches(&entry.header.labels);
        let left_out = !self.selected.as_ref().is_none_or(selects);
        self.memories.heard(key, kind, entry, left_out);
    }
}
