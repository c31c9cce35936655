//! The store against the simplest thing that could be right: a list of everything that was ever
//! committed.

use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::json;

use super::super::{Draft, Expect, Key, Limits, Pairs, Range, StorageError, Store, Write};
use super::place::{Keeping, Place};

/// The resources and names that are written to: few, so that writes meet.
pub(super) const RESOURCES: [&str; 2] = ["maps", "secrets"];
pub(super) const NAMES: usize = 4;

/// What somebody tries to do to one object.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    resource: usize,
    name: usize,
    deletes: bool,
    /// Expects something that is not so.
    wrongly: bool,
}

impl Attempt {
    /// To write the first object, whether it is there or not.
    pub(super) fn to_write() -> Self {
        Self { resource: 0, name: 0, deletes: false, wrongly: false }
    }
}

/// One object as the model knows it: value and revision.
pub(super) type State = BTreeMap<(usize, usize), (u64, u64)>;

/// What happened to one object in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Happened {
    pub(super) revision: u64,
    pub(super) resource: usize,
    pub(super) name: String,
    /// The value before and after.
    pub(super) before: Option<u64>,
    pub(super) after: Option<u64>,
}

/// A commit, and what the model says about it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    pub(super) possible: bool,
    state: State,
    happened: Vec<Happened>,
}

/// The store and its model.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) store: Store,
    limits: Limits,
    pub(super) place: Place,
    /// The state after each revision, from the empty one on.
    pub(super) states: Vec<(u64, State)>,
    pub(super) happened: Vec<Happened>,
    /// The revision that the store was opened at last: what was before may be in a snapshot alone.
    opened_at: u64,
    /// Whether there were ever snapshots.
    snapshots: bool,
    /// No value is written twice.
    values: u64,
}

pub(super) fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let attempt = (0..RESOURCES.len(), 0..NAMES, any::<bool>(), any::<u8>());
    let attempt = attempt.prop_map(|(resource, name, deletes, luck)| Attempt {
        resource,
        name,
        deletes: deletes && luck % 2 == 0,
        wrongly: luck % 10 == 0,
    });
    proptest::collection::vec(attempt, 1..4)
}

/// One object of each resource that comes and goes: nothing is left of them time and again.
pub(super) fn fleeting() -> impl Strategy<Value = Vec<Attempt>> {
    let attempt = (0..RESOURCES.len(), any::<bool>());
    attempt.prop_map(|(resource, deletes)| {
        vec![Attempt { resource, name: 0, deletes, wrongly: false }]
    })
}

/// Commits; `None` closes the store and opens it again.
pub(super) fn histories() -> impl Strategy<Value = Vec<Option<Vec<Attempt>>>> {
    let step = prop_oneof![12 => attempts().prop_map(Some), 1 => Just(None)];
    proptest::collection::vec(step, 1..60)
}

pub(super) fn limits() -> impl Strategy<Value = Limits> {
    let changes = prop_oneof![Just(1_usize), Just(5), Just(1000)];
    let bytes = prop_oneof![Just(0_usize), Just(2000), Just(usize::MAX)];
    (changes, bytes).prop_map(|(changes, bytes)| Limits { changes, bytes })
}

pub(super) fn name(number: usize) -> String {
    format!("object-{number}")
}

pub(super) fn key(number: usize) -> Key {
    Key::new("default", name(number))
}

/// The value that an object holds.
pub(super) fn value(object: &super::super::Stored) -> u64 {
    object.value()["value"].as_u64().unwrap()
}

impl Pair {
    pub(super) fn new(limits: Limits, keeping: Keeping) -> Self {
        let place = Place::new(keeping);
        let store = place.open(limits).unwrap();
        let opened_at = store.revision();
        Self {
            store,
            limits,
            snapshots: place.snapshots(),
            place,
            states: vec![(opened_at, State::new())],
            happened: Vec::new(),
            opened_at,
            values: 0,
        }
    }

    /// What the commit of `attempts` would be.
    pub(super) fn plan(&mut self, attempts: &[Attempt]) -> Plan {
        let (newest, state) = self.states.last().unwrap();
        let next = newest + 1;
        let mut plan =
            Plan { writes: Vec::new(), possible: true, state: state.clone(), happened: Vec::new() };
        for (at, attempt) in attempts.iter().enumerate() {
            let place = (attempt.resource, attempt.name);
            let current = state.get(&place).copied();
            let expect = match (current, attempt.wrongly) {
                (Some((_, revision)), false) => Expect::Revision(revision),
                (None, false) | (Some(_), true) => Expect::Absent,
                (None, true) => Expect::Revision(next - 1),
            };
            self.values += 1;
            let fresh = self.values;
            let deletes = attempt.deletes && current.is_some();
            let twice = attempts[..at].iter().any(|one| (one.resource, one.name) == place);
            plan.possible &= !attempt.wrongly && !twice;
            let draft = (!deletes).then(|| Draft {
                value: json!({"metadata": {}, "value": fresh}),
                fields: Pairs::default(),
            });
            if deletes {
                plan.state.remove(&place);
            } else {
                plan.state.insert(place, (fresh, next));
            }
            plan.happened.push(Happened {
                revision: next,
                resource: attempt.resource,
                name: name(attempt.name),
                before: current.map(|(value, _)| value),
                after: (!deletes).then_some(fresh),
            });
            let resource = RESOURCES[attempt.resource].to_owned();
            plan.writes.push(Write { resource, key: key(attempt.name), expect, draft });
        }
        plan
    }

    /// Takes note of a commit that the store has taken.
    pub(super) fn note(&mut self, plan: Plan) {
        let next = self.states.last().unwrap().0 + 1;
        self.states.push((next, plan.state));
        self.happened.extend(plan.happened);
    }

    /// Tries a commit on both; they must agree on whether it is possible.
    pub(super) fn attempt(&mut self, attempts: &[Attempt]) {
        let mut plan = self.plan(attempts);
        let writes = std::mem::take(&mut plan.writes);
        let done = self.store.in_place(|| self.store.commit(writes));
        assert_eq!(done.is_ok(), plan.possible, "{done:?}");
        if plan.possible {
            self.note(plan);
        }
        assert_eq!(self.store.revision(), self.states.last().unwrap().0);
    }

    /// Closes the store, as far as that is possible for one in memory.
    pub(super) fn close(&mut self) {
        if self.place.keeps() {
            self.store = Store::new(self.limits);
        }
    }

    /// Opens what was closed. The model goes back to the revision that is there: whether it may
    /// have gone that far is for the caller to say.
    pub(super) fn open(&mut self) -> Result<u64, StorageError> {
        if self.place.keeps() {
            self.store = self.place.open(self.limits)?;
            self.opened_at = self.store.revision();
            self.snapshots |= self.place.snapshots();
            self.states.retain(|(revision, _)| *revision <= self.opened_at);
            self.happened.retain(|it| it.revision <= self.opened_at);
            assert_eq!(self.states.last().unwrap().0, self.opened_at, "a revision of nobody");
        }
        Ok(self.store.revision())
    }

    /// Closes the store and opens it again; nothing has changed.
    pub(super) fn reopen(&mut self) {
        let before = self.store.revision();
        self.close();
        assert_eq!(self.open().unwrap(), before);
    }

    /// What the model says happened to a resource after `revision`.
    pub(super) fn since(&self, resource: usize, revision: u64) -> Vec<Happened> {
        let later = self.happened.iter();
        later.filter(|it| it.resource == resource && it.revision > revision).cloned().collect()
    }

    /// Whether a snapshot may have been the end of what was known of the past at `revision`.
    pub(super) fn may_be_cut_off(&self, revision: u64) -> bool {
        self.snapshots && revision < self.opened_at
    }

    /// Whether a resource may not be known at all any more, so that others say how old is too old.
    pub(super) fn may_be_unknown(&self, resource: usize) -> bool {
        let (_, state) = self.states.last().unwrap();
        self.limits.bytes < usize::MAX && !state.keys().any(|(of, _)| *of == resource)
    }

    /// Every state that the store still knows must be the one of the model.
    pub(super) fn compare(&self) {
        for (revision, state) in &self.states {
            for (index, resource) in RESOURCES.iter().enumerate() {
                let range = Range { at: Some(*revision), ..Range::default() };
                let Ok(page) = self.store.list(resource, &range) else {
                    if self.may_be_cut_off(*revision) {
                        continue;
                    }
                    let later = self.since(index, *revision);
                    let lost = !later.is_empty() || self.may_be_unknown(index);
                    assert!(lost, "{resource} has not changed since {revision}");
                    let kept = self.limits.changes.max(1);
                    let too_many = later.len() > kept || self.limits.bytes < usize::MAX;
                    assert!(too_many, "{resource} at {revision} could be known");
                    continue;
                };
                let listed: Vec<(String, u64, u64)> = page
                    .items
                    .iter()
                    .map(|item| (item.key.name.clone(), value(item), item.revision))
                    .collect();
                let expected: Vec<(String, u64, u64)> = state
                    .iter()
                    .filter(|((resource, _), _)| *resource == index)
                    .map(|((_, number), (value, revision))| (name(*number), *value, *revision))
                    .collect();
                assert_eq!(listed, expected, "{resource} at {revision}");
            }
        }
    }
}
