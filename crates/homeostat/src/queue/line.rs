//! The line of ready keys of one priority: first come, first served within a lane, and lanes take
//! turns. Constant time, no clock, no randomness that anybody could see.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::chain::{Chain, Links};
use super::rules::Lane;

/// Where a key stands in a line.
pub(super) type Place = usize;

/// Ready keys by lane; a key is named by its number.
#[derive(Debug)]
pub(super) struct Line {
    keys: Links<Waiting>,
    /// The lanes with somebody in them, the one whose turn it is first.
    lanes: Links<OneLane>,
    turns: Chain,
    /// The lane of keys that have none, while somebody is in it.
    unnamed: Option<usize>,
    named: HashTable<usize>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Waiting {
    key: usize,
    lane: usize,
}

#[derive(Debug)]
struct OneLane {
    name: Option<Box<str>>,
    keys: Chain,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            keys: Links::new(),
            lanes: Links::new(),
            turns: Chain::EMPTY,
            unnamed: None,
            named: HashTable::new(),
            hasher: RandomState::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// At the end of its lane. A lane that was empty has its turn after all others.
    pub(super) fn join(&mut self, lane: Lane<'_>, key: usize) -> Place {
        let lane = self.lane(lane);
        self.keys.push(&mut self.lanes.get_mut(lane).keys, Waiting { key, lane })
    }

    /// Out of the line, whoever's turn it is.
    pub(super) fn leave(&mut self, place: Place) -> usize {
        let lane = self.keys.get(place).lane;
        let key = self.keys.remove(&mut self.lanes.get_mut(lane).keys, place).key;
        if self.lanes.get(lane).keys.is_empty() {
            self.drop_lane(lane);
        }
        key
    }

    /// The first of the lane whose turn it is; the lane has its next turn after all others.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let lane = self.turns.first()?;
        self.lanes.move_to_end(&mut self.turns, lane);
        let first = self.lanes.get(lane).keys.first()?;
        Some(self.leave(first))
    }

    /// Everybody, in no promised order; the line is empty afterwards.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = usize> + use<> {
        let mut all = std::mem::replace(self, Self::new());
        all.keys.drain().map(|waiting| waiting.key)
    }

    fn lane(&mut self, name: Lane<'_>) -> usize {
        let Self { lanes, turns, unnamed, named, hasher, .. } = self;
        let Some(name) = name else {
            let new = || lanes.push(turns, OneLane { name: None, keys: Chain::EMPTY });
            return *unnamed.get_or_insert_with(new);
        };
        let hash = hasher.hash_one(name);
        if let Some(lane) = named.find(hash, |lane| lanes.get(*lane).is(name)) {
            return *lane;
        }
        let new = lanes.push(turns, OneLane { name: Some(Box::from(name)), keys: Chain::EMPTY });
        named.insert_unique(hash, new, |lane| {
            hasher.hash_one(lanes.get(*lane).name.as_deref().unwrap_or_default())
        });
        new
    }

    fn drop_lane(&mut self, lane: usize) {
        let OneLane { name, .. } = self.lanes.remove(&mut self.turns, lane);
        let Some(name) = name else { return self.unnamed = None };
        let hash = self.hasher.hash_one(&*name);
        if let Ok(entry) = self.named.find_entry(hash, |known| *known == lane) {
            entry.remove();
        }
    }
}

impl OneLane {
    fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}
