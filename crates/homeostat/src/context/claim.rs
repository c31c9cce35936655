//! A child that is there already: ours, nobody's, or in the way.
//!
//! What is in the way is followed from then on, so that whoever waits for the name runs again when
//! it goes or is given up. It never takes anything from its controller.

use kube::core::ObjectMeta;

use super::{Context, EventType, owner};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

impl<K: AnyObject> Context<K> {
    /// Whether the child `found` is ours to write to; `orphan_is_ours` says whether one without a
    /// controller is.
    pub(super) async fn claim<T: AnyObject>(
        &self,
        (kind, key): (&Kind, &Key),
        found: &ObjectMeta,
        orphan_is_ours: bool,
    ) -> Result<()> {
        let primary = self.primary();
        let check =
            |found| owner::check((self.kind(), primary.meta()), kind, found, orphan_is_ours);
        let Err(refused) = check(found) else { return Ok(()) };
        if !matches!(refused, Error::NotOurs { .. }) {
            return Err(refused);
        }
        match self.follow_of::<T>(kind, key).await {
            // It may have gone before it was followed, and nobody would say so again.
            Ok(Some(now)) if check(now.meta()).is_err() => Err(refused),
            Ok(_) => Err(Error::Stale(format!("{kind} {key} is not in the way any more"))),
            Err(unseen) => {
                tracing::debug!(error = unseen.chain(), "what is in the way cannot be followed");
                // Nothing would wake us, so it is looked at again and again.
                Err(Error::transient(refused))
            }
        }
    }

    /// Says that an apply has made a child ours that nobody controlled.
    pub(super) fn tell_adoption(&self, kind: &Kind, key: &Key) {
        let note = format!("took over {} {}, which nobody controlled", kind.kind(), key.name);
        self.event(EventType::Normal, "Adopted", note);
    }
}

/// Whether nobody controls the object.
pub(super) fn is_orphan(found: &ObjectMeta) -> bool {
    !found.owner_references.iter().flatten().any(|reference| reference.controller == Some(true))
}
