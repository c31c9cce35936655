//! Which changes are worth a reconcile. A predicate sees the object before and after.

use std::fmt;
use std::sync::Arc;

use crate::cache::{Delta, Entry};

/// A test on a change. New and deleted objects pass every ready-made one, and so does a change
/// that begins a deletion or puts another object (by uid) in the place of the old one.
#[derive(Clone)]
pub struct Predicate(Arc<dyn Fn(&Delta) -> bool + Send + Sync>);

impl Predicate {
    /// A test of your own. It runs in the cache's task: it must be quick and must not block.
    pub fn new(test: impl Fn(&Delta) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(test))
    }

    /// The desired state changed: `metadata.generation` differs. Kinds without a generation pass.
    #[must_use]
    pub fn generation_changed() -> Self {
        Self::on_update(|old, new| {
            new.header.generation.is_none() || old.header.generation != new.header.generation
        })
    }

    /// The labels differ.
    #[must_use]
    pub fn labels_changed() -> Self {
        Self::on_update(|old, new| old.header.labels != new.header.labels)
    }

    /// The annotations differ.
    #[must_use]
    pub fn annotations_changed() -> Self {
        Self::on_update(|old, new| old.annotations() != new.annotations())
    }

    /// The finalizers differ.
    #[must_use]
    pub fn finalizers_changed() -> Self {
        Self::on_update(|old, new| old.header.finalizers != new.header.finalizers)
    }

    /// Both pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |delta| self.passes(delta) && other.passes(delta))
    }

    /// At least one passes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |delta| self.passes(delta) || other.passes(delta))
    }

    /// What this one stops passes, and the other way round: new and deleted objects too.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "one of three combinators, not an operator")]
    pub fn not(self) -> Self {
        Self::new(move |delta| !self.passes(delta))
    }

    /// Whether the change passes.
    #[must_use]
    pub fn passes(&self, delta: &Delta) -> bool {
        (self.0)(delta)
    }

    fn on_update(differs: impl Fn(&Entry, &Entry) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |delta| match (&delta.old, &delta.new) {
            (Some(old), Some(new)) => {
                old.header.uid != new.header.uid
                    || old.header.is_being_deleted() != new.header.is_being_deleted()
                    || differs(old, new)
            }
            _ => true,
        })
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}
