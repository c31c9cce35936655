//! Two informers of one kind are not in step. Who is woken by one and reads the other is to find
//! there what has woken it: nobody would wake it again when the other has caught up.
//!
//! It holds no cache: a handler that does keeps it from being stopped.

use std::sync::Arc;

use crate::cache::{Entry, KindCache};
use crate::context::Memories;
use crate::key::Key;
use crate::kind::Kind;

/// What a cache tells of that reconciles do not read; cheap to clone.
#[derive(Clone)]
pub(super) struct Ahead {
    memories: Arc<Memories>,
}

impl Ahead {
    /// For changes that `told` tells of, when reconciles read `read`; `None` if it is the same.
    pub(super) fn of(told: &KindCache, read: &KindCache, memories: &Arc<Memories>) -> Option<Self> {
        (!told.is_same(read)).then(|| Self { memories: Arc::clone(memories) })
    }

    /// Reconciles of `key` read this version of an object, or a later one.
    pub(super) fn heard(&self, key: &Key, kind: &Kind, entry: &Entry) {
        self.memories.heard(key, kind, entry);
    }
}
