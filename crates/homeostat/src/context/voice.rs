//! Whose words a condition has. The runtime signs what it says after a terminal error with the name of
//! its controller, so that another controller of the kind, or the reconcile itself, is never taken for
//! it: managed fields would name who wrote last, and they are not cached.
//!
//! Plain functions over the JSON of a condition. Nothing is remembered, so a restart changes nothing.

use serde_json::Value;

use crate::condition::{DEGRADED, READY};
use crate::error::REASONS;

const SIGNED: &str = " (controller ";

/// The runtime's voice in the conditions, for one controller and at one generation of the primary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Voice<'a> {
    pub(super) controller: &'a str,
    pub(super) generation: Option<i64>,
}

impl Voice<'_> {
    /// These words as the runtime says them.
    pub(super) fn sign(self, words: &str) -> String {
        format!("{words}{SIGNED}{})", self.controller)
    }

    /// Whether the runtime says this for another controller, which alone may change it: until the
    /// object is edited. Then it is out of date, and whoever may have said it may be gone or may have
    /// another name by now.
    pub(super) fn is_anothers(self, condition: &Value) -> bool {
        let about = condition.get("observedGeneration").and_then(Value::as_i64);
        let is_outdated = about.zip(self.generation).is_some_and(|(about, now)| about < now);
        let is_ours = |author: Option<&str>| author.is_none_or(|name| name == self.controller);
        author(condition).is_some_and(|author| !is_ours(author) && !is_outdated)
    }

    /// Whether the runtime may take this back for this controller.
    pub(super) fn is_ours(self, condition: &Value) -> bool {
        is_runtimes(condition) && !self.is_anothers(condition)
    }
}

/// Whether the runtime said so after a terminal error, for whichever controller.
pub(super) fn is_runtimes(condition: &Value) -> bool {
    author(condition).is_some()
}

/// For whom the runtime said so, if it did; for nobody knows whom where conditions have no messages.
fn author(condition: &Value) -> Option<Option<&str>> {
    let is = |type_: &str, so: &str| is_of(condition, type_) && says(condition, "status", so);
    let bad = is(DEGRADED, "True") || is(READY, "False");
    if !bad || !REASONS.iter().any(|reason| says(condition, "reason", reason)) {
        return None;
    }
    let Some(message) = condition.get("message").and_then(Value::as_str) else {
        return Some(None);
    };
    let (_, name) = message.strip_suffix(')')?.rsplit_once(SIGNED)?;
    Some(Some(name))
}

/// Whether both say the same, whenever and of whichever generation.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    ["type", "status", "reason", "message"].iter().all(|field| one.get(field) == other.get(field))
}

pub(super) fn is_of(condition: &Value, type_: &str) -> bool {
    says(condition, "type", type_)
}

pub(super) fn says(condition: &Value, field: &str, what: &str) -> bool {
    condition.get(field).is_some_and(|said| said == what)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn voice(controller: &str) -> Voice<'_> {
        Voice { controller, generation: Some(2) }
    }

    fn degraded(message: &str, generation: i64) -> Value {
        json!({ "type": DEGRADED, "status": "True", "reason": "CannotBeDone",
            "message": message, "observedGeneration": generation })
    }

    #[test]
    fn what_is_signed_is_known_for_its_authors_and_nobody_elses() {
        let said = degraded(&voice("dns").sign("no such zone"), 2);
        assert_eq!(said["message"], "no such zone (controller dns)");
        assert!(voice("dns").is_ours(&said) && !voice("dns").is_anothers(&said));
        assert!(voice("backup").is_anothers(&said) && !voice("backup").is_ours(&said));
    }

    #[test]
    fn what_another_said_of_an_earlier_generation_is_anybodys() {
        let said = degraded(&voice("old-name").sign("no such zone"), 1);
        assert!(voice("new-name").is_ours(&said) && !voice("new-name").is_anothers(&said));
    }

    #[test]
    fn what_is_not_signed_is_the_reconciles_unless_there_is_no_room_for_a_name() {
        for words in ["no such zone", "no such zone (dns)", ""] {
            assert!(!is_runtimes(&degraded(words, 2)), "{words}");
        }
        let silent = json!({ "type": READY, "status": "False", "reason": "CannotBeDone" });
        assert!(voice("dns").is_ours(&silent));
        let well = json!({ "type": READY, "status": "True", "reason": "CannotBeDone" });
        assert!(!is_runtimes(&well));
    }
}
