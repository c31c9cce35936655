//! The line of ready keys of one priority: first come, first served within a lane, and lanes take
//! turns. `O(log n)`, no clock, no randomness.

use std::collections::BTreeMap;

use super::rules::Lane;

/// Where a key stands in a line: later places are larger.
pub(super) type Place = u64;

/// Ready keys by lane; `I` names a key.
#[derive(Debug)]
pub(super) struct Line<I> {
    lanes: BTreeMap<Lane, Waiting<I>>,
    /// The lanes with somebody in them, the one whose turn it is first.
    turns: BTreeMap<Place, Lane>,
    length: usize,
}

/// The keys of one lane; never empty.
#[derive(Debug)]
struct Waiting<I> {
    keys: BTreeMap<Place, I>,
    turn: Place,
}

impl<I> Line<I> {
    pub(super) fn new() -> Self {
        Self { lanes: BTreeMap::new(), turns: BTreeMap::new(), length: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// At the end of its lane. A lane that was empty has its turn after all others.
    pub(super) fn join(&mut self, lane: Lane, place: Place, key: I) {
        let turns = &mut self.turns;
        let waiting = self.lanes.entry(lane).or_insert_with_key(|lane| {
            turns.insert(place, lane.clone());
            Waiting { keys: BTreeMap::new(), turn: place }
        });
        waiting.keys.insert(place, key);
        self.length += 1;
    }

    /// Out of the line, whoever's turn it is.
    pub(super) fn leave(&mut self, lane: &Lane, place: Place) {
        let Some(waiting) = self.lanes.get_mut(lane) else { return };
        if waiting.keys.remove(&place).is_none() {
            return;
        }
        self.length -= 1;
        if waiting.keys.is_empty() {
            self.turns.remove(&waiting.turn);
            self.lanes.remove(lane);
        }
    }

    /// The first of the lane whose turn it is; the lane has its next turn after `last`, which is
    /// later than every place given so far.
    pub(super) fn pop(&mut self, last: Place) -> Option<I> {
        let (_, lane) = self.turns.pop_first()?;
        let waiting = self.lanes.get_mut(&lane)?;
        let (_, key) = waiting.keys.pop_first()?;
        self.length -= 1;
        if waiting.keys.is_empty() {
            self.lanes.remove(&lane);
        } else {
            waiting.turn = last;
            self.turns.insert(last, lane);
        }
        Some(key)
    }

    /// Everybody, in no promised order; the line is empty afterwards.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = I> + use<I> {
        self.turns.clear();
        self.length = 0;
        std::mem::take(&mut self.lanes).into_values().flat_map(|lane| lane.keys.into_values())
    }
}
