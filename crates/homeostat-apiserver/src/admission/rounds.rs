//! What is remembered of the mutations of one write: who is called again in the second round of the
//! chain, and what the object was like before anybody outside of the server changed it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Review;
use crate::apply;
use crate::registry::{metadata, seconds};

/// What mutations remember from the first round of the chain to the second.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// The second round: only those that asked for it are called again.
    pub(super) is_second: bool,
    /// Something changed that others want to see.
    pub(super) is_wanted: bool,
    pub(super) policies: Turns,
    pub(super) webhooks: Turns,
    /// `managedFields` before the first change, once there was one.
    owners: Option<Value>,
}

/// Who had a turn, of all policies or of all webhooks.
#[derive(Debug, Default)]
pub(super) struct Turns {
    called: BTreeSet<String>,
    again: BTreeSet<String>,
    output: Option<Value>,
}

impl Turns {
    /// Another round begins: what others changed since the last one ended is for all who want to see
    /// such changes.
    pub(super) fn begin(&mut self, object: &Value) {
        if self.output.as_ref().is_some_and(|output| output != object) {
            self.require();
        }
    }

    /// The round has ended.
    pub(super) fn end(&mut self, object: &Value) {
        self.output = Some(object.clone());
    }

    /// All who had a turn and want to see changes have another one.
    pub(super) fn require(&mut self) {
        let called = std::mem::take(&mut self.called);
        self.again.extend(called);
    }

    /// Whether somebody has another turn in the second round.
    pub(super) fn calls_again(&self, id: &str) -> bool {
        self.again.contains(id)
    }

    /// Remembers a turn: whether it changed the object, and whether whoever had it wants to see what
    /// others change after it.
    pub(super) fn called(&mut self, id: &str, changed: bool, reinvokes: bool) {
        if changed {
            self.require();
        }
        if reinvokes {
            self.called.insert(id.to_owned());
        }
    }
}

impl Review<'_> {
    /// Makes the object what somebody made of it; says whether that is a change.
    ///
    /// The first change of a write that has just noted who owns what is always one: kube-apiserver
    /// notes the time to the nanosecond, and reads it back to the second.
    pub(super) fn change_to(&mut self, object: Value) -> bool {
        let is_first = self.rounds.owners.is_none();
        let changed = object != self.object || (is_first && self.is_noted_now());
        if is_first {
            let owners = self.object.pointer("/metadata/managedFields");
            self.rounds.owners = Some(owners.cloned().unwrap_or_default());
        }
        self.object = object;
        changed
    }

    /// Whether this write noted who owns what.
    fn is_noted_now(&self) -> bool {
        let now = seconds(self.writer.time);
        let owners = |object: &Value| {
            let owners = object.pointer("/metadata/managedFields").and_then(Value::as_array);
            owners.cloned().unwrap_or_default()
        };
        let known = self.old.map(owners).unwrap_or_default();
        let mut noted = owners(&self.object).into_iter().filter(|owner| !known.contains(owner));
        noted.any(|owner| owner["time"] == now.as_str())
    }

    /// Puts back who owns what if a mutation left it in a state that cannot be read.
    pub(super) fn mend_owners(&mut self) {
        let Some(before) = self.rounds.owners.clone() else { return };
        if self.object.pointer("/metadata/managedFields").is_some_and(|list| *list == json!([])) {
            metadata::set(&mut self.object, "managedFields", Value::Null);
        }
        let Err(why) = apply::check_owners(&self.object) else { return };
        metadata::set(&mut self.object, "managedFields", before);
        self.wish.inquiry().warn(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused \
             by an outdated mutating admission controller; please fix your requests: {why}"
        ));
    }
}
