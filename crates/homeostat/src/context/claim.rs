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

    /// Says that an apply has made a stranger's object, which nobody controlled, our child.
    pub(super) fn tell_adoption(&self, kind: &Kind, key: &Key) {
        let note = format!("took over {} {}, which nobody controlled", kind.kind(), key.name());
        self.event(EventType::Normal, "Adopted", note);
    }
}

/// Who makes a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// We do, and name its owner.
    Ours,
    /// Somebody whom we have told to, and who does not name its owner.
    MadeForUs,
}

/// Whether an apply takes the child over from nobody: no one controls it, and it was not made for
/// the primary. Nothing is made for a primary before that is there.
pub(super) fn was_a_strangers(found: &ObjectMeta, origin: Origin, primary: &ObjectMeta) -> bool {
    let references = found.owner_references.iter().flatten();
    let is_orphan = !references.into_iter().any(|reference| reference.controller == Some(true));
    let is_older = found.creation_timestamp < primary.creation_timestamp;
    is_orphan && (origin == Origin::Ours || is_older)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

    use super::*;

    #[test]
    fn only_what_was_there_before_or_came_unasked_was_a_strangers() {
        let born = |at: &str| {
            let time = at.parse().unwrap();
            ObjectMeta { creation_timestamp: Some(Time(time)), ..ObjectMeta::default() }
        };
        let primary = born("2026-01-01T00:00:01Z");
        let (before, since) = (born("2026-01-01T00:00:00Z"), born("2026-01-01T00:00:01Z"));
        assert!(was_a_strangers(&since, Origin::Ours, &primary));
        assert!(was_a_strangers(&before, Origin::MadeForUs, &primary));
        assert!(!was_a_strangers(&since, Origin::MadeForUs, &primary));
        let reference = OwnerReference { controller: Some(true), ..OwnerReference::default() };
        let controlled = ObjectMeta { owner_references: Some(vec![reference]), ..before };
        assert!(!was_a_strangers(&controlled, Origin::Ours, &primary), "it is ours already");
    }
}
