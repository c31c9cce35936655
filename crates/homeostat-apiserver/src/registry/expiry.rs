//! Events are forgotten an hour after they were last written, or the store would grow for ever.
//!
//! Nothing wakes up for it: whatever is written takes those with it whose time has come, and so does
//! whoever looks at Events. Only who does neither, and waits on a watch, hears of it later.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::metadata;
use crate::store::{Key, Store, Stored};

/// The resource whose objects expire.
pub(super) const EVENTS: &str = "events";
/// How long an Event is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// When a version of an Event was written.
type Written = (Timestamp, Key, u64);

/// When which version of which Event was written, oldest first.
#[derive(Debug, Default)]
pub(super) struct Expiry(Mutex<VecDeque<Written>>);

impl Expiry {
    fn all(&self) -> MutexGuard<'_, VecDeque<Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a written Event.
    pub(super) fn written(&self, event: &Stored, now: Timestamp) {
        self.all().push_back((now, event.key.clone(), event.revision));
    }

    /// Takes up the Events that are there already: their time goes on.
    pub(super) fn resume<'a>(&self, events: impl Iterator<Item = &'a Arc<Stored>>, now: Timestamp) {
        let mut found: Vec<Written> = events
            .map(|event| {
                let at = last_written(&event.value()).unwrap_or(now).min(now);
                (at, event.key.clone(), event.revision)
            })
            .collect();
        found.sort();
        self.all().extend(found);
    }

    /// Whether the time of any Event has come.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.all().front().is_some_and(|(at, ..)| now.duration_since(*at) >= KEPT)
    }

    /// Deletes the Events that have not been written for an hour.
    pub(super) fn expire(&self, store: &Store, now: Timestamp) {
        while self.is_due(now) {
            let Some((_, key, revision)) = self.all().pop_front() else { return };
            // A conflict means that it was written again, or is gone already.
            let _ = store.delete(EVENTS, &key, revision);
        }
    }
}

/// When an Event was last written, as far as it tells: every write that changes something says when.
fn last_written(event: &Value) -> Option<Timestamp> {
    let created = metadata::text(event, "creationTimestamp").parse().ok();
    let managers = event.pointer("/metadata/managedFields").and_then(Value::as_array);
    let times = managers.into_iter().flatten().filter_map(|entry| entry["time"].as_str());
    times.filter_map(|time| time.parse().ok()).chain(created).max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::transient;

    #[test]
    fn after_a_restart_the_time_of_an_event_goes_on() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let event = |name: &str, created: &str, changed: &str| {
            let object = json!({"metadata": {"name": name, "creationTimestamp": created,
                "managedFields": [{"time": changed}]}});
            Arc::new(transient(&Key::new("n", name), &object))
        };
        let events = [
            event("young", "2026-01-01T00:00:00Z", "2026-01-01T02:30:00Z"),
            event("old", "2026-01-01T01:00:00Z", "2026-01-01T01:30:00Z"),
        ];
        let expiry = Expiry::default();
        expiry.resume(events.iter(), at("2026-01-01T02:29:00Z"));
        assert!(!expiry.is_due(at("2026-01-01T02:29:59Z")));
        assert!(expiry.is_due(at("2026-01-01T02:30:00Z")));
        let names: Vec<_> = expiry.all().iter().map(|(_, key, _)| key.name.clone()).collect();
        assert_eq!(names, ["old", "young"]);
    }
}
