//! Counts per key and window; pure but for its own memory, which is bounded in every direction.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::{Finding, HotLoop};
use crate::cache::Entry;
use crate::context::Change;
use crate::difference::{self, FieldChange};
use crate::journal::Write;
use crate::key::Key;
use crate::kind::Kind;
use crate::trigger::Trigger;

/// So many keys are watched at once; of more, the ones that began longest ago are let go.
const MOST_KEYS: usize = 1024;
/// A key that was reconciled so often in its window is not let go for others that come by once.
const BUSY: u32 = 3;
/// So many busy keys are passed over before one of them is let go after all.
const SPARED: usize = 16;
/// So many objects of one key, fields of one object and values of one field.
const MOST_OBJECTS: usize = 16;
const MOST_FIELDS: usize = 32;
const MOST_VALUES: usize = 4;
/// A status follows what it tells of, back and forth too: so many times the flips are nothing in it.
const FLIPS_OF_A_STATUS: u32 = 10;
/// A loop that goes on is told again after so many windows.
const SILENT_WINDOWS: u32 = 10;
/// How many fields are named.
const NAMED_FIELDS: usize = 5;

type Keys = HashMap<Key, Activity, RandomState>;

/// Watches the keys of one controller.
#[derive(Debug)]
pub(crate) struct Detector {
    limits: HotLoop,
    /// Asked for one key at a time and never walked: its random seed decides nothing.
    keys: Keys,
    /// When windows began, oldest first but for busy ones that were spared; those that a later one
    /// has replaced are still in it.
    begun: VecDeque<(Duration, Key)>,
}

/// One reconcile, as far as loops are concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) triggers: &'a [Trigger],
    pub(crate) writes: &'a [Write],
    /// The reconciled object as it was seen.
    pub(crate) seen: Option<&'a Arc<Entry>>,
    pub(crate) kind: &'a Kind,
}

/// What happened to a key in its present window.
#[derive(Debug, Default)]
struct Activity {
    began: Duration,
    reconciles: u32,
    /// What its reconciles changed.
    objects: BTreeMap<(Kind, Key), Changes>,
    /// Whose events woke it, and how often: mostly one object's.
    wakers: SmallVec<[(Kind, Key, u32); 1]>,
    /// What others changed in it, from the moment it looked suspicious.
    seen: Option<Arc<Entry>>,
    others: Changes,
    /// When the loop may be told again.
    silent_until: Duration,
}

#[derive(Debug, Default)]
struct Changes {
    count: u32,
    fields: BTreeMap<String, Field>,
}

#[derive(Debug, Default)]
struct Field {
    changes: u32,
    /// How often it was set to a value that it had before.
    flips: u32,
    values: Vec<u64>,
}

impl Detector {
    pub(crate) fn new(limits: HotLoop) -> Self {
        Self { limits, keys: HashMap::default(), begun: VecDeque::new() }
    }

    /// Takes a reconcile of `key` into account, and says when it was one too many. A loop that was
    /// told is told again only after a while.
    pub(crate) fn observe(&mut self, key: &Key, run: Run<'_>, now: Duration) -> Option<Finding> {
        // That everything is looked at once at the start is no loop, and would push out what is one.
        if *run.triggers == [Trigger::Initial] && run.writes.is_empty() {
            return None;
        }
        let limits = self.limits;
        let activity = self.activity(key, now);
        activity.reconciles = activity.reconciles.saturating_add(1);
        for write in run.writes.iter().filter(|write| counts(write)) {
            activity.changed(write);
        }
        activity.woken(run.triggers);
        // A second look at a whole object is worth it only for a key that is busy already.
        if activity.reconciles > limits.reconciles / 2 {
            activity.looked_at(run);
        }
        if now < activity.silent_until {
            return None;
        }
        let finding = activity.judge(limits)?;
        activity.silent_until = now.saturating_add(limits.window * SILENT_WINDOWS);
        Some(finding)
    }

    /// Forgets a key whose object is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.keys.remove(key);
    }

    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        assert!(self.begun.len() <= 2 * MOST_KEYS);
        self.keys.len()
    }

    fn activity(&mut self, key: &Key, now: Duration) -> &mut Activity {
        let known = self.keys.get(key).map(|activity| activity.began);
        let over = known.is_none_or(|began| now.saturating_sub(began) > self.limits.window);
        if over {
            self.make_room(known.is_none(), now);
            self.begun.push_back((now, key.clone()));
        }
        let activity = self.keys.entry(key.clone()).or_default();
        if over {
            let silent_until = activity.silent_until;
            *activity = Activity { began: now, silent_until, ..Activity::default() };
        }
        activity
    }

    /// Makes room for one more window; for a new key, those whose windows began first are let go,
    /// but busy ones only when there is hardly anybody else: thousands of keys that come by once a
    /// minute must not hide the one that never rests.
    fn make_room(&mut self, is_new: bool, now: Duration) {
        let Self { limits, keys, begun } = self;
        let goes_on = |keys: &Keys, (began, key): &(Duration, Key)| {
            keys.get(key).is_some_and(|activity| activity.began == *began)
        };
        if begun.len() >= 2 * MOST_KEYS {
            begun.retain(|window| goes_on(keys, window));
        }
        let mut spared = 0;
        while is_new
            && keys.len() >= MOST_KEYS
            && let Some(oldest) = begun.pop_front()
        {
            if !goes_on(keys, &oldest) {
                continue;
            }
            let is_busy = keys.get(&oldest.1).is_some_and(|it| it.is_busy(now, limits.window));
            if is_busy && spared < SPARED {
                spared += 1;
                begun.push_back(oldest);
            } else {
                keys.remove(&oldest.1);
            }
        }
    }
}

/// Whether a write changed something: a field that is known, or whether the object is there at all.
/// Who makes a child that somebody else deletes is in a loop like one that sets a field back.
fn counts(write: &Write) -> bool {
    !write.fields.is_empty() || matches!(write.change, Change::Created | Change::Deleted)
}

impl Activity {
    /// Whether something would be lost with it: a window that fills, or that a loop was told.
    fn is_busy(&self, now: Duration, window: Duration) -> bool {
        let goes_on = now.saturating_sub(self.began) <= window;
        now < self.silent_until || (goes_on && self.reconciles >= BUSY)
    }

    fn changed(&mut self, write: &Write) {
        let place = (write.kind.clone(), write.key.clone());
        if self.objects.len() >= MOST_OBJECTS && !self.objects.contains_key(&place) {
            return;
        }
        self.objects.entry(place).or_default().changed(&write.fields);
    }

    fn woken(&mut self, triggers: &[Trigger]) {
        for trigger in triggers {
            let Trigger::Event { kind, key, .. } = trigger else { continue };
            let known = self.wakers.iter_mut().find(|waker| waker.1 == *key && waker.0 == *kind);
            if let Some((_, _, times)) = known {
                *times += 1;
            } else if self.wakers.len() < MOST_OBJECTS {
                self.wakers.push((kind.clone(), key.clone(), 1));
            }
        }
    }

    fn looked_at(&mut self, run: Run<'_>) {
        let Some(seen) = run.seen else { return };
        let before = self.seen.replace(seen.clone());
        let moved =
            |before: &Arc<Entry>| before.header.resource_version != seen.header.resource_version;
        if let Some(before) = before.filter(moved) {
            let (before, after) = (before.json(), seen.json());
            let fields = difference::between(run.kind, before.as_bytes(), after.as_bytes());
            self.others.changed(&fields);
        }
    }

    fn judge(&self, limits: HotLoop) -> Option<Finding> {
        let hot = self.objects.iter().find(|(_, changes)| {
            let flips = |(path, field): (&String, &Field)| {
                let is_told = path == "status" || path.starts_with("status.");
                let times = if is_told { FLIPS_OF_A_STATUS } else { 1 };
                field.flips >= limits.flips.saturating_mul(times)
            };
            changes.fields.iter().any(flips) || changes.count >= limits.writes
        });
        if hot.is_none() && self.reconciles < limits.reconciles {
            return None;
        }
        let busiest = self.objects.iter().max_by_key(|(_, changes)| changes.count);
        let named = hot.or(busiest);
        let changes = named.map_or(&self.others, |(_, changes)| changes);
        let mut fields: Vec<(&String, &Field)> = changes.fields.iter().collect();
        fields.retain(|(_, field)| field.changes > 1);
        fields.sort_by_key(|(path, field)| {
            (std::cmp::Reverse((field.flips, field.changes)), (*path).clone())
        });
        Some(Finding {
            reconciles: self.reconciles,
            object: named.map(|((kind, key), changes)| (kind.clone(), key.clone(), changes.count)),
            fields: fields.into_iter().take(NAMED_FIELDS).map(|(path, _)| path.clone()).collect(),
            woken_by: self.wakers.iter().max_by_key(|(_, _, times)| *times).cloned(),
            window: limits.window,
        })
    }
}

impl Changes {
    fn changed(&mut self, fields: &[FieldChange]) {
        self.count = self.count.saturating_add(1);
        for change in fields {
            if self.fields.len() < MOST_FIELDS || self.fields.contains_key(&change.path) {
                self.fields.entry(change.path.clone()).or_default().changed(change);
            }
        }
    }
}

impl Field {
    fn changed(&mut self, change: &FieldChange) {
        let (from, to) = change.digests;
        self.changes = self.changes.saturating_add(1);
        if self.values.contains(&to) {
            self.flips = self.flips.saturating_add(1);
        }
        for value in [from, to] {
            if !self.values.contains(&value) {
                if self.values.len() == MOST_VALUES {
                    self.values.remove(0);
                }
                self.values.push(value);
            }
        }
    }
}
