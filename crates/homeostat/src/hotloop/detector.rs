//! Counts per key and window; pure but for its own memory, which is bounded in every direction.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Finding, HotLoop};
use crate::difference::FieldChange;
use crate::journal::Write;
use crate::key::Key;
use crate::kind::Kind;

/// So many keys are watched at once; of more, the ones that began longest ago are let go.
const MOST_KEYS: usize = 1024;
/// So many objects of one key, fields of one object and values of one field.
const MOST_OBJECTS: usize = 16;
const MOST_FIELDS: usize = 32;
const MOST_VALUES: usize = 4;
/// A loop that goes on is told again after so many windows.
const SILENT_WINDOWS: u32 = 10;
/// How many fields are named.
const NAMED_FIELDS: usize = 5;

/// Watches the keys of one controller.
#[derive(Debug)]
pub(crate) struct Detector {
    limits: HotLoop,
    keys: BTreeMap<Key, Activity>,
    by_age: BTreeSet<(Duration, Key)>,
}

/// What happened to a key in its present window.
#[derive(Debug, Default)]
struct Activity {
    began: Duration,
    reconciles: u32,
    objects: BTreeMap<(Kind, Key), Changes>,
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
        Self { limits, keys: BTreeMap::new(), by_age: BTreeSet::new() }
    }

    /// Takes a reconcile of `key` into account, and says when it was one too many. A loop that was
    /// told is told again only after a while.
    pub(crate) fn observe(
        &mut self,
        key: &Key,
        writes: &[Write],
        now: Duration,
    ) -> Option<Finding> {
        let limits = self.limits;
        let activity = self.activity(key, now);
        activity.reconciles = activity.reconciles.saturating_add(1);
        for write in writes.iter().filter(|write| !write.fields.is_empty()) {
            activity.changed(write);
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
        if let Some(activity) = self.keys.remove(key) {
            self.by_age.remove(&(activity.began, key.clone()));
        }
    }

    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        assert_eq!(self.keys.len(), self.by_age.len());
        self.keys.len()
    }

    fn activity(&mut self, key: &Key, now: Duration) -> &mut Activity {
        let before = self.keys.get(key).map(|activity| activity.began);
        let over = before.is_none_or(|began| now.saturating_sub(began) > self.limits.window);
        if over {
            if let Some(began) = before {
                self.by_age.remove(&(began, key.clone()));
            } else if self.keys.len() >= MOST_KEYS
                && let Some((_, oldest)) = self.by_age.pop_first()
            {
                self.keys.remove(&oldest);
            }
            self.by_age.insert((now, key.clone()));
        }
        let activity = self.keys.entry(key.clone()).or_default();
        if over {
            let silent_until = activity.silent_until;
            *activity = Activity { began: now, silent_until, ..Activity::default() };
        }
        activity
    }
}

impl Activity {
    fn changed(&mut self, write: &Write) {
        let place = (write.kind.clone(), write.key.clone());
        if self.objects.len() >= MOST_OBJECTS && !self.objects.contains_key(&place) {
            return;
        }
        let object = self.objects.entry(place).or_default();
        object.count = object.count.saturating_add(1);
        for change in &write.fields {
            if object.fields.len() < MOST_FIELDS || object.fields.contains_key(&change.path) {
                object.fields.entry(change.path.clone()).or_default().changed(change);
            }
        }
    }

    fn judge(&self, limits: HotLoop) -> Option<Finding> {
        let hot = self.objects.iter().find(|(_, changes)| {
            let flips = changes.fields.values().any(|field| field.flips >= limits.flips);
            flips || changes.count >= limits.writes
        });
        if hot.is_none() && self.reconciles < limits.reconciles {
            return None;
        }
        let busiest = self.objects.iter().max_by_key(|(_, changes)| changes.count);
        let named = hot.or(busiest);
        let mut fields: Vec<(&String, &Field)> =
            named.iter().flat_map(|(_, changes)| &changes.fields).collect();
        fields.retain(|(_, field)| field.changes > 1);
        fields.sort_by_key(|(path, field)| {
            (std::cmp::Reverse((field.flips, field.changes)), (*path).clone())
        });
        Some(Finding {
            reconciles: self.reconciles,
            object: named.map(|((kind, key), changes)| (kind.clone(), key.clone(), changes.count)),
            fields: fields.into_iter().take(NAMED_FIELDS).map(|(path, _)| path.clone()).collect(),
            window: limits.window,
        })
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
