//! Events about children: what an apply did, in words for people. Nothing when it did nothing.

use super::{Applied, Change, Context, EventType};
use crate::kind::AnyObject;

impl<K: AnyObject> Context<K> {
    /// Records what [`Self::apply`] did to a child: `Created`; `Updated` when the primary asks for
    /// something new; `Corrected` when it does not, so somebody else had changed the child.
    ///
    /// The primary asks for something new while its status (`observedGeneration`) speaks of an
    /// older generation: call this before [`Self::status`].
    pub fn announce<T: AnyObject>(&self, applied: &Applied<T>) {
        let reason = match applied.change {
            Change::Created => "Created",
            Change::Changed if self.has_news() => "Updated",
            Change::Changed => "Corrected",
            Change::Unchanged | Change::Deleted => return,
        };
        let child = super::reference(&*applied.object);
        let (kind, name) = (child.kind.unwrap_or_default(), child.name.unwrap_or_default());
        let child = format!("{kind} {name}");
        let note = match reason {
            "Created" => format!("created {child}"),
            "Updated" => format!("updated {child}"),
            _ => format!("{child} is as declared again"),
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
