//! Events about children: what an apply did, in words for people. Nothing when it did nothing.

use super::{Applied, Change, Context, EventType, Wish};
use crate::kind::AnyObject;

impl<K: AnyObject> Context<K> {
    /// Records what [`Self::apply`] did to a child: `Created`; `Updated` when something else is asked
    /// for than before; `Corrected` when it is not, so somebody else had changed or removed the child.
    ///
    /// What was asked for before is known to a process that has applied the child. After a start, a
    /// child that is missing is `Created`, and one that differs is `Updated` while the primary's
    /// status (`observedGeneration`) speaks of an older generation: call this before
    /// [`Self::status`].
    pub fn announce<T: AnyObject>(&self, applied: &Applied<T>) {
        let child = super::reference(&*applied.object);
        let (kind, name) = (child.kind.unwrap_or_default(), child.name.unwrap_or_default());
        let child = format!("{kind} {name}");
        let (reason, note) = match (applied.change, applied.wish) {
            (Change::Unchanged | Change::Deleted, _) => return,
            (Change::Created, Wish::First) => ("Created", format!("created {child}")),
            (Change::Created, _) => ("Corrected", format!("{child} was lost and is there again")),
            (Change::Changed, Wish::Different) => ("Updated", format!("updated {child}")),
            (Change::Changed, Wish::First) if self.has_news() => {
                ("Updated", format!("updated {child}"))
            }
            (Change::Changed, _) => ("Corrected", format!("{child} is as declared again")),
        };
        self.event(EventType::Normal, reason, note);
    }

    /// Whether the primary's status speaks of an older generation, or of none.
    fn has_news(&self) -> bool {
        let primary = self.primary();
        let object = serde_json::to_value(&*primary).unwrap_or_default();
        let observed = object.pointer("/status/observedGeneration").and_then(|seen| seen.as_i64());
        observed < primary.meta().generation
    }
}
