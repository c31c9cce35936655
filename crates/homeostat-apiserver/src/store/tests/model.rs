//! The store against the simplest thing that could be right: a list of everything that was ever
//! committed.

use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::json;

use super::super::{Draft, Expect, Key, Limits, Pairs, Range, Store, Write};

/// The resources and names that are written to: few, so that writes meet.
pub(super) const RESOURCES: [&str; 2] = ["maps", "secrets"];
const NAMES: usize = 4;

/// What somebody tries to do to one object.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    resource: usize,
    name: usize,
    deletes: bool,
    /// Expects something that is not so.
    wrongly: bool,
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

/// The store and its model.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) store: Store,
    limits: Limits,
    /// The state after each revision, from the empty one on.
    pub(super) states: Vec<(u64, State)>,
    pub(super) happened: Vec<Happened>,
}

pub(super) fn attempts() -> impl Strategy<Value = Vec<Vec<Attempt>>> {
    let attempt = (0..RESOURCES.len(), 0..NAMES, any::<bool>(), any::<u8>());
    let attempt = attempt.prop_map(|(resource, name, deletes, luck)| Attempt {
        resource,
        name,
        deletes: deletes && luck % 2 == 0,
        wrongly: luck % 10 == 0,
    });
    let many = proptest::collection::vec(attempt, 1..4);
    proptest::collection::vec(many, 1..60)
}

pub(super) fn limits() -> impl Strategy<Value = Limits> {
    let changes = prop_oneof![Just(1_usize), Just(5), Just(1000)];
    let bytes = prop_oneof![Just(0_usize), Just(2000), Just(usize::MAX)];
    (changes, bytes).prop_map(|(changes, bytes)| Limits { changes, bytes })
}

fn name(number: usize) -> String {
    format!("object-{number}")
}

fn key(number: usize) -> Key {
    Key::new("default", name(number))
}

/// The value that an object holds.
pub(super) fn value(object: &super::super::Stored) -> u64 {
    object.value()["value"].as_u64().unwrap()
}

impl Pair {
    pub(super) fn new(limits: Limits) -> Self {
        let store = Store::new(limits);
        let states = vec![(store.revision(), State::new())];
        Self { store, limits, states, happened: Vec::new() }
    }

    /// Tries a commit on both; they must agree on whether it is possible.
    pub(super) fn attempt(&mut self, attempts: &[Attempt]) {
        let (_, state) = self.states.last().cloned().unwrap();
        let next = self.store.newest().revision() + 1;
        let (mut writes, mut possible, mut after) = (Vec::new(), true, state.clone());
        let mut happened = Vec::new();
        for (at, attempt) in attempts.iter().enumerate() {
            let place = (attempt.resource, attempt.name);
            let current = state.get(&place).copied();
            let expect = match (current, attempt.wrongly) {
                (Some((_, revision)), false) => Expect::Revision(revision),
                (None, false) | (Some(_), true) => Expect::Absent,
                (None, true) => Expect::Revision(next - 1),
            };
            let fresh = next * 10 + at as u64;
            let deletes = attempt.deletes && current.is_some();
            let twice = attempts[..at].iter().any(|one| (one.resource, one.name) == place);
            possible &= !attempt.wrongly && !twice;
            let draft = (!deletes).then(|| Draft {
                value: json!({"metadata": {}, "value": fresh}),
                fields: Pairs::default(),
            });
            if deletes {
                after.remove(&place);
            } else {
                after.insert(place, (fresh, next));
            }
            happened.push(Happened {
                revision: next,
                resource: attempt.resource,
                name: name(attempt.name),
                before: current.map(|(value, _)| value),
                after: (!deletes).then_some(fresh),
            });
            let resource = RESOURCES[attempt.resource].to_owned();
            writes.push(Write { resource, key: key(attempt.name), expect, draft });
        }
        let done = self.store.commit(writes);
        assert_eq!(done.is_ok(), possible, "{done:?}");
        if possible {
            self.states.push((next, after));
            self.happened.extend(happened);
        }
        assert_eq!(self.store.revision(), self.states.last().unwrap().0);
    }

    /// What the model says happened to a resource after `revision`.
    pub(super) fn since(&self, resource: usize, revision: u64) -> Vec<Happened> {
        let later = self.happened.iter();
        later.filter(|it| it.resource == resource && it.revision > revision).cloned().collect()
    }

    /// Every state that the store still knows must be the one of the model.
    pub(super) fn compare(&self) {
        for (revision, state) in &self.states {
            for (index, resource) in RESOURCES.iter().enumerate() {
                let range = Range { at: Some(*revision), ..Range::default() };
                let Ok(page) = self.store.list(resource, &range) else {
                    let later = self.since(index, *revision);
                    assert!(!later.is_empty(), "{resource} has not changed since {revision}");
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
