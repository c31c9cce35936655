//! All that a controller looks after, for when all of it is to be looked at once more. It decides
//! neither when that is nor why.

use super::Predicate;
use crate::cache::{Delta, KindCache};
use crate::key::Key;
use crate::queue::Queue;
use crate::trigger::Trigger;

/// The primaries that are known and that the controller's filter lets through.
#[derive(Debug, Clone)]
pub(super) struct Everything {
    pub(super) primaries: KindCache,
    pub(super) filter: Option<Predicate>,
}

impl Everything {
    /// Wakes them behind all that is waiting: those that would be woken if the controller began now.
    pub(super) fn wake(&self, queue: &Queue<Key>, why: &Trigger) {
        let seen = self.primaries.entries().into_iter().map(|entry| Delta::added(entry, true));
        let counts = |seen: &Delta| self.filter.as_ref().is_none_or(|filter| filter.passes(seen));
        seen.filter(counts).for_each(|seen| queue.add_low(seen.key().clone(), why.clone()));
    }
}
