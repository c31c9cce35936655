//! Several writers at once: whatever they were told fits into one order, that of the revisions; and
//! when the power goes, what is left is the beginning of that order, with all that any of them was
//! told to be safe.

use std::thread;

use homeostat_env::Env;
use jiff::Timestamp;
use proptest::prelude::{ProptestConfig, any, proptest};
use serde_json::json;

use super::super::{Draft, Expect, Limits, Pairs, Range, Store, StoreError, Write};
use super::model::{NAMES, RESOURCES, State, key, name, value};
use super::place::{Place, longest};
use crate::disk::lossy::{LossyDisk, Trouble};

const WRITERS: u64 = 4;
const COMMITS: u64 = 25;

/// A resource and the number of a name.
type Object = (usize, usize);

/// What one writer saw of one commit.
#[derive(Debug)]
struct Seen {
    /// The newest revision before it began and after it was over.
    between: (u64, u64),
    /// What it read in between: value and revision.
    read: (Object, Option<(u64, u64)>),
    /// What it expected, and the value it wanted there.
    writes: Vec<(Object, Expect, Option<u64>)>,
    /// The revision it was given; `None` if something was not as expected.
    revision: Option<u64>,
    is_safe: bool,
}

/// Writes with the others until it is through or the store refuses.
fn write(store: &Store, env: &Env, writer: u64) -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let below = |bound: usize| usize::try_from(env.random_below(bound as u64)).unwrap();
    let newest = || store.newest().revision();
    let mut all = Vec::new();
    for number in 0..COMMITS {
        let before = newest();
        let object = (below(RESOURCES.len()), below(NAMES));
        let read = store.get(RESOURCES[object.0], &key(object.1));
        let read = read.map(|object| (value(&object), object.revision));
        let own = (writer * COMMITS + number) * 10 + 1;
        // Others may have been there meanwhile: then this is refused.
        let expect = read.map_or(Expect::Absent, |(_, revision)| Expect::Revision(revision));
        let wanted = (read.is_none() || below(3) > 0).then_some(own);
        let mut writes = vec![(object, expect, wanted)];
        let other = (below(RESOURCES.len()), below(NAMES));
        if other != object && below(3) == 0 {
            writes.push((other, Expect::Absent, Some(own + 1)));
        }
        let as_write = |(object, expect, wanted): &(Object, Expect, Option<u64>)| Write {
            resource: RESOURCES[object.0].to_owned(),
            key: key(object.1),
            expect: *expect,
            draft: wanted.map(|value| Draft {
                value: json!({"metadata": {}, "value": value}),
                fields: Pairs::default(),
            }),
        };
        let commit = || store.commit(writes.iter().map(as_write).collect());
        let done = if below(2) == 0 { store.in_place(commit) } else { commit() };
        let between = (before, newest());
        let revision = match done {
            Ok(objects) => Some(objects[0].revision),
            Err(StoreError::Conflict) => None,
            Err(_) => return all,
        };
        let is_safe = runtime.block_on(store.settle()).is_ok();
        let read = (object, read);
        all.push(Seen { between, read, writes, revision, is_safe });
    }
    all
}

/// The state at each revision from `first` on, as what was committed leads to it.
fn states(first: u64, all: &[Seen]) -> Vec<State> {
    let mut commits: Vec<(u64, &Seen)> =
        all.iter().filter_map(|seen| Some((seen.revision?, seen))).collect();
    commits.sort_by_key(|(revision, _)| *revision);
    let mut states = vec![State::new()];
    for (index, (revision, seen)) in commits.into_iter().enumerate() {
        assert_eq!(revision, first + 1 + index as u64, "each revision is given once");
        assert!(seen.between.0 < revision && revision <= seen.between.1, "{seen:?}");
        let mut state = states[index].clone();
        for (object, expect, wanted) in &seen.writes {
            assert!(holds(&states[index], *object, *expect), "{seen:?} at {revision}");
            match wanted {
                Some(value) => state.insert(*object, (*value, revision)),
                None => state.remove(object),
            };
        }
        states.push(state);
    }
    states
}

fn holds(state: &State, object: Object, expect: Expect) -> bool {
    match (state.get(&object), expect) {
        (None, Expect::Absent) => true,
        (Some((_, revision)), Expect::Revision(expected)) => *revision == expected,
        _ => false,
    }
}

/// What was read, and what was refused, must have been so at some time in between.
fn check(first: u64, states: &[State], seen: &Seen) {
    let place = |revision: u64| usize::try_from(revision - first).unwrap();
    let mut between = states[place(seen.between.0)..=place(seen.between.1)].iter();
    let (object, read) = seen.read;
    assert!(between.clone().any(|state| state.get(&object).copied() == read), "{seen:?}");
    let refuses = |state: &State| {
        seen.writes.iter().any(|(object, expect, _)| !holds(state, *object, *expect))
    };
    assert!(seen.revision.is_some() || between.any(refuses), "{seen:?}");
}

fn listed(store: &Store) -> Vec<(usize, String, u64, u64)> {
    let mut all = Vec::new();
    for (index, resource) in RESOURCES.iter().enumerate() {
        for item in store.snapshot().list(resource, &Range::default()).unwrap().items {
            all.push((index, item.key.name.clone(), value(&item), item.revision));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_writers_see_is_one_order_and_what_is_left_without_power_is_its_beginning(
        seed in any::<u64>(),
        longest in longest(),
        calls in 0_u64..400,
    ) {
        let env = Env::simulated(seed, Timestamp::UNIX_EPOCH);
        let disk = LossyDisk::new();
        let place = Place::on(&disk, longest);
        let store = place.open(Limits::default()).unwrap();
        let first = store.revision();
        disk.expect(calls, Trouble::PowerLoss);
        let all: Vec<Seen> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| (writer, Env::simulated(env.random_u64(), Timestamp::UNIX_EPOCH)))
                .map(|(writer, env)| (store.clone(), env, writer))
                .map(|(store, env, writer)| scope.spawn(move || write(&store, &env, writer)))
                .collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        let states = states(first, &all);
        for seen in &all {
            check(first, &states, seen);
        }
        let shown = store.revision();
        drop(store);
        disk.restart(&env);
        let store = place.open(Limits::default()).unwrap();
        let left = store.revision();
        let safe = all.iter().filter(|seen| seen.is_safe).filter_map(|seen| seen.revision).max();
        assert!(left >= shown.max(safe.unwrap_or(first)), "{left} is all there is");
        let expected: Vec<_> = states[usize::try_from(left - first).unwrap()]
            .iter()
            .map(|((resource, number), (value, revision))| {
                (*resource, name(*number), *value, *revision)
            })
            .collect();
        assert_eq!(listed(&store), expected);
    }
}
