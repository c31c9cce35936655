//! Writes to objects that no cache shows. What one changed is told by what the reconcile itself has
//! read or left; whether it changed anything, by the version that the key left the last time.
//!
//! An object that is another one after every write of a key is looked at before the next, so that
//! whoever fights over it can be told over which field. No other write costs a request more.

use serde::Deserialize;

use super::follow::Place;
use super::{Change, Context, Memory};
use crate::cache::Entry;
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

/// So many writes in a row that found another version than the one before left are a reason to look.
const RESTLESS: u32 = 2;

impl<K: AnyObject> Context<K> {
    /// Looks at an object that is about to be written and that no cache shows, if it never rests.
    pub(super) async fn look_if_restless(&self, kind: &Kind, key: &Key) {
        let place = (kind.clone(), key.clone());
        let Some(limits) = self.run.shared.hot_loop else { return };
        if self.known(&place).is_some() {
            return;
        }
        let now = self.env().instant();
        let restless = |memory: &mut Memory| {
            let last = memory.last_write(&place);
            last.is_some_and(|last| last.moves >= RESTLESS && now - last.made <= limits.window)
        };
        if self.run.shared.memories.with_known(&self.run.key, restless) != Some(true) {
            return;
        }
        // Boxed: it is seldom needed. The write itself will say what is wrong.
        if let Err(error) = Box::pin(self.answer_live(kind, key)).await {
            tracing::debug!(error = error.chain(), "what is written again and again is not seen");
        }
    }

    /// What a write did that led to `revision`: one that changes nothing makes no new version. Where a
    /// cache lags, what this reconcile itself has left is the newer of the two.
    pub(super) fn change_to(
        &self,
        place: &Place,
        cached: Option<&Entry>,
        revision: &str,
    ) -> Change {
        let is_cached = |entry: &Entry| *entry.header.resource_version == *revision;
        let is_same = cached.is_some_and(is_cached) || self.is_left_at(place, revision);
        if is_same && !revision.is_empty() { Change::Unchanged } else { Change::Changed }
    }

    /// Whether that is the version in which this reconcile knows the object, or the last one left it.
    fn is_left_at(&self, place: &Place, revision: &str) -> bool {
        #[derive(Deserialize)]
        struct Versioned {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            resource_version: String,
        }
        if let Some(known) = self.known(place) {
            let known = serde_json::from_slice::<Versioned>(&known);
            return known.is_ok_and(|known| known.metadata.resource_version == revision);
        }
        let last = |memory: &mut Memory| {
            memory.last_write(place).is_some_and(|last| last.revision == revision)
        };
        self.run.shared.memories.with_known(&self.run.key, last).unwrap_or_default()
    }
}
