//! The guarantees of a watch, each by name, over random histories.

use std::sync::Arc;

use futures::FutureExt as _;
use proptest::prelude::{any, proptest};

use super::super::{Change, Limits, StoreError, Watcher};
use super::model::{
    Attempt, Happened, Pair, RESOURCES, attempts, fleeting, histories, limits, value,
};
use super::place::{Keeping, keepings, keepings_of_the_past};

/// Everything that waits for the watcher, in the pieces it comes in.
fn drain(watcher: &mut Watcher) -> Result<Vec<Vec<Arc<Change>>>, StoreError> {
    let mut pieces = Vec::new();
    while let Some(piece) = watcher.next().now_or_never() {
        pieces.push(piece?);
    }
    Ok(pieces)
}

fn told(resource: usize, change: &Change) -> Happened {
    Happened {
        revision: change.object.revision,
        resource,
        name: change.object.key.name.clone(),
        before: change.previous.as_deref().map(value),
        after: (!change.deleted).then(|| value(&change.object)),
    }
}

/// Bytes that a watcher takes at a time: more than any history has.
const BATCH: usize = 1 << 30;

/// A history.
fn lived(history: &[Option<Vec<Attempt>>], limits: Limits, keeping: Keeping) -> Pair {
    let mut pair = Pair::new(limits, keeping);
    for step in history {
        match step {
            Some(attempts) => pair.attempt(attempts),
            None => pair.reopen(),
        }
    }
    pair
}

/// A history, a watch of `maps` from its beginning, and what it was told. A watch ends with its
/// store; the one after it goes on where that ended.
fn watched(
    history: &[Option<Vec<Attempt>>],
    keeping: Keeping,
    batch: usize,
) -> (Pair, Vec<Vec<Arc<Change>>>) {
    let mut pair = Pair::new(Limits { changes: 1000, bytes: usize::MAX }, keeping);
    let watch = |pair: &Pair, revision| {
        pair.store.watch(RESOURCES[0], revision).unwrap().in_pieces_of(batch)
    };
    let mut watcher = watch(&pair, pair.store.revision());
    let mut pieces = Vec::new();
    for step in history {
        if let Some(attempts) = step {
            pair.attempt(attempts);
            continue;
        }
        pieces.extend(drain(&mut watcher).unwrap());
        let told = watcher.caught_up().unwrap();
        drop(watcher);
        pair.reopen();
        watcher = watch(&pair, told);
    }
    pieces.extend(drain(&mut watcher).unwrap());
    (pair, pieces)
}

proptest! {
    #[test]
    fn reads_now_and_in_the_past_are_those_of_the_model(
        history in histories(),
        limits in limits(),
        keeping in keepings(),
    ) {
        lived(&history, limits, keeping).compare();
    }

    #[test]
    fn ordered_events_come_in_the_order_of_their_revisions(
        history in histories(),
        keeping in keepings_of_the_past(),
    ) {
        let (_, pieces) = watched(&history, keeping, BATCH);
        let revisions: Vec<u64> =
            pieces.iter().flatten().map(|change| change.object.revision).collect();
        assert!(revisions.is_sorted());
    }

    #[test]
    fn unique_no_event_comes_twice(
        history in histories(),
        keeping in keepings_of_the_past(),
    ) {
        let (_, pieces) = watched(&history, keeping, BATCH);
        let mut seen: Vec<(u64, String)> = pieces
            .iter()
            .flatten()
            .map(|change| (change.object.revision, change.object.key.name.clone()))
            .collect();
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }

    #[test]
    fn reliable_no_event_between_two_others_is_missing(
        history in histories(),
        keeping in keepings_of_the_past(),
    ) {
        let (pair, pieces) = watched(&history, keeping, BATCH);
        let told: Vec<Happened> = pieces.iter().flatten().map(|change| told(0, change)).collect();
        assert_eq!(told, pair.since(0, 0));
    }

    #[test]
    fn atomic_the_events_of_a_commit_come_together(
        history in histories(),
        keeping in keepings_of_the_past(),
        batch in 0_usize..300,
    ) {
        let (pair, pieces) = watched(&history, keeping, batch);
        let mut commits: Vec<u64> = pair.since(0, 0).iter().map(|it| it.revision).collect();
        commits.dedup();
        // With nothing asked for, each commit is a piece.
        assert!(batch > 0 || pieces.len() == commits.len(), "{} pieces", pieces.len());
        for (last, first) in pieces.iter().zip(pieces.iter().skip(1)) {
            let (last, first) = (last.last().unwrap(), first.first().unwrap());
            assert!(last.object.revision < first.object.revision);
        }
    }

    #[test]
    fn resumable_a_watch_goes_on_where_another_ended_or_says_that_it_cannot(
        history in histories(),
        limits in limits(),
        keeping in keepings(),
    ) {
        let pair = lived(&history, limits, keeping);
        for (revision, _) in &pair.states {
            match pair.store.watch(RESOURCES[0], *revision) {
                Ok(mut watcher) => {
                    let pieces = drain(&mut watcher).unwrap();
                    let told: Vec<Happened> =
                        pieces.iter().flatten().map(|change| told(0, change)).collect();
                    assert_eq!(told, pair.since(0, *revision), "from {revision}");
                }
                Err(error) => {
                    assert!(matches!(error, StoreError::Expired { .. }));
                    let lost = !pair.since(0, *revision).is_empty() || pair.may_be_unknown(0);
                    assert!(lost || pair.may_be_cut_off(*revision), "nothing was lost at {revision}");
                }
            }
        }
    }

    #[test]
    fn patient_a_watch_ends_only_when_changes_of_its_own_resource_are_gone(
        history in proptest::collection::vec((fleeting(), any::<bool>(), any::<bool>()), 1..60),
        limits in limits(),
        keeping in keepings(),
    ) {
        let mut pair = Pair::new(limits, keeping);
        let mut seen = pair.store.revision();
        let mut watcher = pair.store.watch(RESOURCES[0], seen).unwrap();
        for (attempts, forgets, looks) in &history {
            if *forgets {
                pair.store.forget_until(pair.store.revision());
            }
            pair.attempt(attempts);
            if !looks {
                continue;
            }
            let missed = pair.since(0, seen);
            match drain(&mut watcher) {
                Ok(pieces) => {
                    let told: Vec<Happened> =
                        pieces.iter().flatten().map(|change| told(0, change)).collect();
                    assert_eq!(told, missed);
                    assert_eq!(watcher.caught_up(), Some(pair.store.revision()));
                }
                Err(error) => {
                    assert!(!missed.is_empty(), "{error}, and nothing was missed");
                    watcher = pair.store.watch(RESOURCES[0], pair.store.revision()).unwrap();
                }
            }
            seen = pair.store.revision();
        }
    }

    #[test]
    fn bookmarkable_a_bookmark_promises_only_what_was_told(
        history in proptest::collection::vec(attempts(), 1..60),
        stop in any::<u8>(),
    ) {
        let mut pair = Pair::new(Limits::default(), Keeping::Memory);
        let mut watcher = pair.store.watch(RESOURCES[0], pair.store.revision()).unwrap();
        let (mut count, stop) = (0, usize::from(stop) % history.len());
        for (at, attempts) in history.iter().enumerate() {
            pair.attempt(attempts);
            if at == stop {
                count = drain(&mut watcher).unwrap().iter().flatten().count();
            }
        }
        match watcher.caught_up() {
            Some(bookmark) => {
                assert_eq!(bookmark, pair.store.revision());
                assert_eq!(count, pair.since(0, 0).len());
            }
            None => assert!(count < pair.since(0, 0).len()),
        }
        drain(&mut watcher).unwrap();
        assert_eq!(watcher.caught_up(), Some(pair.store.revision()));
    }

    #[test]
    fn filtered_only_the_resource_that_was_asked_for_is_told(
        history in histories(),
        keeping in keepings_of_the_past(),
    ) {
        let (pair, pieces) = watched(&history, keeping, BATCH);
        let values: Vec<u64> = pieces.iter().flatten().map(|change| value(&change.object)).collect();
        let others = pair.since(1, 0);
        assert!(others.iter().filter_map(|it| it.after).all(|other| !values.contains(&other)));
    }

    #[test]
    fn created_an_event_says_whether_the_object_is_new(
        history in histories(),
        keeping in keepings_of_the_past(),
    ) {
        let (pair, pieces) = watched(&history, keeping, BATCH);
        let told = pieces.iter().flatten().map(|change| change.previous.is_none());
        assert!(told.eq(pair.since(0, 0).iter().map(|it| it.before.is_none())));
    }

    #[test]
    fn previous_an_event_carries_the_value_before(
        history in histories(),
        keeping in keepings_of_the_past(),
    ) {
        let (pair, pieces) = watched(&history, keeping, BATCH);
        let told = pieces.iter().flatten().map(|change| change.previous.as_deref().map(value));
        assert!(told.eq(pair.since(0, 0).iter().map(|it| it.before)));
    }
}
