//! All that a controller looks after, for when all of it is to be looked at once more. It only names
//! keys; who asks decides what becomes of them.

use super::Predicate;
use crate::cache::{Delta, KindCache};
use crate::key::Key;

/// The primaries that are known and that the controller's filter lets through.
#[derive(Debug, Clone)]
pub(super) struct Everything {
    pub(super) primaries: KindCache,
    pub(super) filter: Option<Predicate>,
}

impl Everything {
    /// Their keys: those that would be woken if the controller began now.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        let seen = self.primaries.entries().into_iter().map(|entry| Delta::added(entry, true));
        let counts = |seen: &Delta| self.filter.as_ref().is_none_or(|filter| filter.passes(seen));
        seen.filter(counts).map(|seen| seen.key().clone())
    }
}
