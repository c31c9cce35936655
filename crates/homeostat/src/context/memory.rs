//! What is remembered of a key between its reconciles: writes the cache has yet to show, what was
//! applied to its children, how many quick retries it had. Forgotten with the object.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::barrier::Pending;
use crate::key::Key;
use crate::kind::Kind;
use crate::trigger::Trigger;

/// What is remembered of one key.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Writes that a read of their kind must wait for.
    pub(super) pending: Vec<Pending>,
    /// The children as they were last applied.
    pub(super) applied: BTreeMap<(Kind, Key), LastApply>,
    /// Quick retries in a row.
    pub(crate) conflicts: u32,
    /// A change of the primary that the runtime itself makes and that must not wake the key.
    own_step: Option<OwnStep>,
}

/// From which resourceVersion of the primary to which; sent with the first as precondition, so
/// that nobody else's change can hide in it.
#[derive(Debug)]
struct OwnStep {
    from: String,
    to: Option<String>,
    /// An event that came before the answer: ours if it leads to the version answered.
    held: Option<(String, Trigger)>,
}

impl Memory {
    /// The runtime is about to change the primary at resourceVersion `from`.
    pub(crate) fn begin_own_step(&mut self, from: String) {
        self.own_step = Some(OwnStep { from, to: None, held: None });
    }

    /// The change led to resourceVersion `to`, or was not made. Returns a held event that was
    /// somebody else's after all.
    #[must_use]
    pub(crate) fn end_own_step(&mut self, to: Option<String>) -> Option<Trigger> {
        let step = self.own_step.as_mut()?;
        step.to = to;
        let (reached, trigger) = step.held.take()?;
        let ours = step.to.as_ref() == Some(&reached);
        if step.to.is_none() {
            self.own_step = None;
        }
        (!ours).then_some(trigger)
    }

    /// Takes a primary's event in and gives it back unless the runtime caused it.
    fn filter_own_step(&mut self, from: &str, to: &str, trigger: Trigger) -> Option<Trigger> {
        let Some(step) = self.own_step.as_mut().filter(|step| step.from == from) else {
            return Some(trigger);
        };
        match &step.to {
            Some(reached) => (reached != to).then_some(trigger),
            None => {
                step.held = Some((to.to_owned(), trigger));
                None
            }
        }
    }
}

/// What an apply sent and what it gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastApply {
    /// The digest of what was asked for.
    pub(super) desired: u64,
    /// The digest of the object that came of it, without status and revision.
    pub(super) result: u64,
    pub(super) revision: String,
}

/// The memories of all keys of a controller.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<BTreeMap<Key, Arc<Mutex<Memory>>>>);

impl Memories {
    /// Works on the memory of `key`, which is empty at first.
    pub(crate) fn with<R>(&self, key: &Key, work: impl FnOnce(&mut Memory) -> R) -> R {
        let memory = lock(&self.0).entry(key.clone()).or_default().clone();
        work(&mut lock(&memory))
    }

    /// Forgets `key`.
    pub(crate) fn forget(&self, key: &Key) {
        lock(&self.0).remove(key);
    }

    /// The trigger of a change of the primary, or nothing when the runtime itself made it.
    pub(crate) fn filter_own_step(
        &self,
        key: &Key,
        from: &str,
        to: &str,
        trigger: Trigger,
    ) -> Option<Trigger> {
        // An event must not make a memory: nobody would forget it.
        let Some(memory) = lock(&self.0).get(key).cloned() else { return Some(trigger) };
        lock(&memory).filter_own_step(from, to, trigger)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
