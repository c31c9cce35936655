//! What is remembered of a key between its reconciles: writes the cache has yet to show, what was
//! applied to its children, where writes left what no cache shows, how many quick retries it had.
//! Forgotten with the object.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use homeostat_env::Env;
use tokio::time::Instant;

use super::Shared;
use super::barrier::Pending;
use super::follow::Place;
use crate::cache::{Entry, Expect, revision};
use crate::key::Key;
use crate::kind::Kind;
use crate::trigger::Trigger;

/// So many reconciles that ended well without applying a child again make it forgotten; so it is
/// with what was written and no cache shows.
const REMEMBERED: u64 = 16;
/// So many objects that no cache shows are remembered of one key.
const MOST_WRITTEN: usize = 16;

/// What is remembered of one key.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Of which object it is; `None` before its first reconcile has begun or ended.
    uid: Option<Arc<str>>,
    /// Writes that a read of their kind must wait for.
    pub(super) pending: BTreeMap<Place, Pending>,
    /// The children as they were last applied.
    applied: BTreeMap<Place, LastApply>,
    /// The objects that no cache shows, as they were last written.
    written: BTreeMap<Place, LastWrite>,
    /// How many reconciles ended well while something was applied or written.
    age: u64,
    /// What was last said about a primary that cannot be decoded.
    pub(crate) undecodable: Option<String>,
    /// The generation and the terminal error that were last told.
    pub(crate) terminal: Option<(Option<i64>, String)>,
    /// Quick retries in a row.
    pub(crate) conflicts: u32,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// How often in a row the runtime's own words about the primary could not be written.
    pub(crate) unmarked: u32,
    /// Whether somebody was told that the key is given up, which its primary does not show yet.
    pub(crate) given_up: bool,
    /// Whether somebody was told of a finalizer that the primary waits for in vain.
    pub(super) finalizer_named: bool,
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
    /// Whether there is nothing to remember; most keys are so most of the time.
    fn is_blank(&self) -> bool {
        let Self { pending, applied, written, undecodable, terminal, .. } = self;
        pending.is_empty()
            && (applied.is_empty() && written.is_empty())
            && (undecodable.is_none() && terminal.is_none() && self.own_step.is_none())
            && (self.conflicts, self.failures, self.unmarked) == (0, 0, 0)
            && !self.given_up
            && !self.finalizer_named
    }

    /// It is the memory of the object with this uid. Whether it was that of an earlier one of the name,
    /// of which nothing is kept; but what a later read is to find says nothing of whose it is.
    pub(crate) fn meet(&mut self, uid: &Arc<str>) -> bool {
        let is_another = self.uid.as_ref().is_some_and(|known| known != uid);
        if is_another {
            *self = Self { pending: std::mem::take(&mut self.pending), ..Self::default() };
        }
        self.uid = Some(Arc::clone(uid));
        is_another
    }

    /// Later reads wait for this, unless they wait for a later version of the same object already.
    pub(super) fn expect(&mut self, place: Place, mut new: Pending) {
        if let Some(old) = self.pending.get(&place).filter(|old| old.uid == new.uid) {
            match (&old.until, &new.until) {
                (Expect::Version(older), Expect::Version(newer)) => {
                    if revision::is_earlier(newer, older) {
                        return;
                    }
                    // Heard of once more: its fields are the same.
                    new.left_out |= old.left_out && older == newer;
                }
                (_, Expect::Version(_)) => {}
                _ => new.ends(old),
            }
        }
        self.pending.insert(place, new);
    }

    /// What is waited for of a kind, or of one object of it.
    pub(super) fn pending_of(
        &self,
        kind: &Kind,
        key: Option<&Key>,
    ) -> impl Iterator<Item = (&Place, &Pending)> {
        let first = (kind.clone(), key.cloned().unwrap_or_else(|| Key::cluster("")));
        let rest = self.pending.range(first..);
        rest.take_while(move |((of, name), _)| of == kind && key.is_none_or(|key| key == name))
    }

    /// What was last applied to a child.
    pub(super) fn last_apply(&self, child: &Place) -> Option<&LastApply> {
        self.applied.get(child)
    }

    /// Remembers what was applied to a child.
    pub(super) fn applied(&mut self, child: Place, last: LastApply) {
        self.applied.insert(child, LastApply { age: self.age, ..last });
    }

    /// Forgets a child that was deleted.
    pub(super) fn disown(&mut self, child: &Place) {
        self.applied.remove(child);
    }

    /// How an object that no cache shows was last written.
    pub(super) fn last_write(&self, object: &Place) -> Option<&LastWrite> {
        self.written.get(object)
    }

    /// Remembers a write to an object that no cache shows; `moved` if it
    /// has another version now than was known.
    pub(super) fn wrote(&mut self, object: Place, revision: &str, moved: bool, made: Instant) {
        let last = self.written.get(&object);
        if last.is_none() && self.written.len() >= MOST_WRITTEN {
            return;
        }
        // Of the first one there is nothing to tell it by.
        let moves = last.map_or(0, |last| if moved { last.moves.saturating_add(1) } else { 0 });
        let revision = revision.to_owned();
        self.written.insert(object, LastWrite { revision, moves, made, age: self.age });
    }

    /// A reconcile ended well. What was not applied for long is forgotten: the worst that can come
    /// of it is a write that changes nothing.
    pub(crate) fn grow_older(&mut self) {
        self.age += 1;
        let age = self.age;
        self.applied.retain(|_, last| last.age + REMEMBERED > age);
        self.written.retain(|_, last| last.age + REMEMBERED > age);
    }

    /// The runtime is about to change the primary at resourceVersion `from`.
    pub(crate) fn begin_own_step(&mut self, from: String) {
        self.own_step = Some(OwnStep { from, to: None, held: None });
    }

    /// The change led to resourceVersion `to`, or was not made. Returns a held event that was
    /// somebody else's after all.
    #[must_use]
    pub(crate) fn end_own_step(&mut self, to: Option<String>) -> Option<Trigger> {
        let Some(to) = to else {
            // Not made, as far as we know: no later event may be taken for ours.
            return self.own_step.take()?.held.map(|(_, trigger)| trigger);
        };
        let step = self.own_step.as_mut()?;
        let held = step.held.take().filter(|(reached, _)| *reached != to);
        step.to = Some(to);
        held.map(|(_, trigger)| trigger)
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
    /// How old the memory was; filled in by [`Memory::applied`].
    pub(super) age: u64,
}

/// Where a write left an object that no cache shows.
#[derive(Debug)]
pub(super) struct LastWrite {
    pub(super) revision: String,
    /// How many writes in a row found another version than the one before left, or made one.
    pub(super) moves: u32,
    /// When its answer came.
    pub(super) made: Instant,
    /// How old the memory was.
    age: u64,
}

/// The memories of all keys of a controller.
#[derive(Debug)]
pub(crate) struct Memories {
    env: Env,
    all: Mutex<BTreeMap<Key, Arc<Mutex<Memory>>>>,
    /// Who knows what the caches show; not before the controller runs.
    shared: OnceLock<Weak<Shared>>,
}

impl Memories {
    /// Nothing is remembered of anybody.
    pub(crate) fn new(env: Env) -> Self {
        Self { env, all: Mutex::default(), shared: OnceLock::new() }
    }

    /// From now on it can be looked up what the caches show.
    pub(crate) fn belong_to(&self, shared: &Arc<Shared>) {
        self.shared.get_or_init(|| Arc::downgrade(shared));
    }

    /// Works on the memory of `key`, which is empty at first.
    pub(crate) fn with<R>(&self, key: &Key, work: impl FnOnce(&mut Memory) -> R) -> R {
        let memory = lock(&self.all).entry(key.clone()).or_default().clone();
        let result = work(&mut lock(&memory));
        if lock(&memory).is_blank() {
            let mut all = lock(&self.all);
            // Held by the map and by us alone: nobody else is about to write to it.
            if Arc::strong_count(&memory) == 2 && lock(&memory).is_blank() {
                all.remove(key);
            }
        }
        result
    }

    /// The same, if there is anything to remember of `key`: what is only taken back needs no memory.
    pub(crate) fn with_known<R>(
        &self,
        key: &Key,
        work: impl FnOnce(&mut Memory) -> R,
    ) -> Option<R> {
        let known = lock(&self.all).contains_key(key);
        known.then(|| self.with(key, work))
    }

    /// Later reads of `key` find at least this version of an object, or that it is gone since.
    pub(crate) fn heard(&self, key: &Key, kind: &Kind, entry: &Entry) {
        // What left a selection may be there all the same; its last version says when it left.
        let until = Expect::Version(entry.header.resource_version.to_string());
        let uid = entry.header.uid.to_string();
        let place = (kind.clone(), entry.header.key.clone());
        let labels = Some(Arc::clone(&entry.header.labels));
        let heard = Pending { labels, ..Pending::of(uid, until, self.env.instant()) };
        self.with(key, |memory| memory.expect(place, heard));
        // However long nobody reads, because another process leads: it is not to become more and more.
        if let Some(shared) = self.shared.get().and_then(Weak::upgrade) {
            shared.tidy(key);
        }
    }

    /// How many writes of all keys may not be shown by the caches yet, and how many children are
    /// remembered as they were applied.
    pub(crate) fn count(&self) -> (usize, usize) {
        let all: Vec<_> = lock(&self.all).values().cloned().collect();
        let each =
            all.iter().map(|memory| lock(memory)).map(|m| (m.pending.len(), m.applied.len()));
        each.fold((0, 0), |(pending, applied), (more, other)| (pending + more, applied + other))
    }

    /// Forgets `key`.
    pub(crate) fn forget(&self, key: &Key) {
        lock(&self.all).remove(key);
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
        let Some(memory) = lock(&self.all).get(key).cloned() else { return Some(trigger) };
        lock(&memory).filter_own_step(from, to, trigger)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(to: Option<&str>, before: Option<&str>) -> (Memory, Option<Trigger>) {
        let mut memory = Memory::default();
        memory.begin_own_step("1".to_owned());
        if let Some(reached) = before {
            assert_eq!(memory.filter_own_step("1", reached, Trigger::Timer), None, "held");
        }
        let held = memory.end_own_step(to.map(str::to_owned));
        (memory, held)
    }

    #[test]
    fn only_the_event_of_our_own_write_is_left_out() {
        let (mut ours, held) = memory(Some("2"), None);
        assert_eq!(held, None);
        assert_eq!(ours.filter_own_step("1", "2", Trigger::Timer), None);
        assert_eq!(ours.filter_own_step("1", "3", Trigger::Timer), Some(Trigger::Timer));
        assert_eq!(memory(Some("2"), Some("2")).1, None);
        assert_eq!(memory(Some("2"), Some("3")).1, Some(Trigger::Timer));
    }

    #[test]
    fn a_key_without_anything_to_remember_takes_no_memory() {
        let env = Env::simulated(1, jiff::Timestamp::UNIX_EPOCH);
        let (memories, key) = (Memories::new(env), Key::cluster("a"));
        memories.with(&key, |memory| memory.failures = 1);
        assert_eq!(memories.with(&key, |memory| memory.failures), 1);
        memories.with(&key, |memory| memory.failures = 0);
        assert!(lock(&memories.all).is_empty());
    }

    #[test]
    fn of_an_earlier_object_of_a_name_nothing_is_kept_for_the_next() {
        let (one, other) = (Arc::from("1"), Arc::from("2"));
        let mut memory = Memory { failures: 2, given_up: true, ..Memory::default() };
        assert!(!memory.meet(&one) && !memory.meet(&one));
        assert_eq!((memory.failures, memory.given_up), (2, true));
        assert!(memory.meet(&other));
        assert!(memory.is_blank() && !memory.meet(&other));
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_cache_shows_is_remembered_of_so_many_objects_and_not_for_ever() {
        let now = Env::simulated(1, jiff::Timestamp::UNIX_EPOCH).instant();
        let mut memory = Memory::default();
        let place = |name: &str| (Kind::new("", "v1", "Pod", "pods", true), Key::cluster(name));
        for number in 0..2 * MOST_WRITTEN {
            memory.wrote(place(&number.to_string()), "1", true, now);
        }
        assert_eq!(memory.written.len(), MOST_WRITTEN);
        let moves = |memory: &Memory| memory.last_write(&place("0")).map(|last| last.moves);
        for (moved, counted) in [(true, 1), (true, 2), (false, 0)] {
            memory.wrote(place("0"), "2", moved, now);
            assert_eq!(moves(&memory), Some(counted));
        }
        (0..REMEMBERED).for_each(|_| memory.grow_older());
        assert!(memory.is_blank(), "{memory:?}");
    }

    #[test]
    fn a_change_that_made_our_write_fail_still_wakes_the_key() {
        assert_eq!(memory(None, Some("2")).1, Some(Trigger::Timer), "it came before the answer");
        let (mut after, held) = memory(None, None);
        assert_eq!(held, None);
        assert_eq!(after.filter_own_step("1", "2", Trigger::Timer), Some(Trigger::Timer));
    }
}
