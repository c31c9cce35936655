//! What is left when the power goes, the process ends, or a call to the disk fails: every write
//! that was acknowledged or seen, and no part of any other. Proven on a disk that loses what was
//! not synced.

use homeostat_env::Env;
use jiff::Timestamp;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

use super::super::{Limits, StorageError, StoreError};
use super::model::{Attempt, Pair, attempts};
use super::place::{Keeping, Place, longest};
use crate::disk::lossy::{LossyDisk, Trouble};

/// From one opening of the store to its end.
#[derive(Debug, Clone)]
struct Session {
    /// Commits that are made durable together.
    groups: Vec<Vec<Vec<Attempt>>>,
    /// Whether the thread of the log writes them.
    by_thread: bool,
    longest: u64,
    /// After how many calls of the disk it comes to its end, and how.
    calls: u64,
    trouble: Trouble,
}

fn sessions() -> impl Strategy<Value = Vec<Session>> {
    let group = proptest::collection::vec(attempts(), 1..4);
    let groups = proptest::collection::vec(group, 0..12);
    let trouble = prop_oneof![
        3 => Just(Trouble::PowerLoss),
        1 => Just(Trouble::Kill),
        1 => Just(Trouble::Fault),
    ];
    let session = (groups, any::<bool>(), longest(), 0_u64..80, trouble);
    let session = session.prop_map(|(groups, by_thread, longest, calls, trouble)| Session {
        groups,
        by_thread,
        longest,
        calls,
        trouble,
    });
    proptest::collection::vec(session, 1..5)
}

/// Does what a session asks for until the store refuses; everything it acknowledged is seen.
fn work(pair: &mut Pair, session: &Session, runtime: &tokio::runtime::Runtime) {
    for group in &session.groups {
        let store = pair.store.clone();
        let mut commits = || {
            for attempts in group {
                let mut plan = pair.plan(attempts);
                match store.commit(std::mem::take(&mut plan.writes)) {
                    Ok(_) => {
                        assert!(plan.possible);
                        pair.note(plan);
                    }
                    Err(StoreError::Conflict) => assert!(!plan.possible),
                    Err(_) => return,
                }
            }
        };
        if session.by_thread {
            commits();
        } else {
            store.in_place(&mut commits);
        }
        match runtime.block_on(store.settle()) {
            Ok(()) => assert_eq!(store.revision(), pair.states.last().unwrap().0),
            Err(_) => assert!(!store.works()),
        }
    }
}

/// Lives through all sessions, and looks at what is left after each of them.
fn endure(sessions: &[Session], seed: u64) {
    let env = Env::simulated(seed, Timestamp::UNIX_EPOCH);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let disk = LossyDisk::new();
    let mut pair = Pair::new(Limits::default(), Keeping::Memory);
    let mut seen = pair.store.revision();
    for session in sessions {
        pair.place = Place::on(&disk, session.longest);
        disk.expect(session.calls, session.trouble);
        match pair.open() {
            Ok(revision) => {
                assert!(revision >= seen, "{revision} is all there is, {seen} was seen");
                pair.compare();
                work(&mut pair, session, &runtime);
                seen = pair.store.revision();
            }
            Err(StorageError::Io { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        pair.close();
        disk.restart(&env);
    }
    let revision = pair.open().unwrap();
    assert!(revision >= seen, "{revision} is all there is, {seen} was seen");
    pair.compare();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_was_acknowledged_outlives_the_power_and_nothing_else_is_half_there(
        sessions in sessions(),
        seed in any::<u64>(),
    ) {
        endure(&sessions, seed);
    }
}

#[test]
fn there_is_no_bad_moment_to_end_at_nor_is_any_soon_after_it() {
    for trouble in [Trouble::PowerLoss, Trouble::Kill, Trouble::Fault] {
        for calls in 0..40 {
            for soon in 0..12 {
                let group = vec![vec![Attempt::to_write()]];
                let longest = if calls % 2 == 0 { u64::MAX } else { 700 };
                let first =
                    Session { groups: vec![group; 4], by_thread: false, longest, calls, trouble };
                let second = Session {
                    groups: Vec::new(),
                    calls: soon,
                    trouble: Trouble::PowerLoss,
                    ..first.clone()
                };
                endure(&[first, second], calls * 100 + soon);
            }
        }
    }
}
