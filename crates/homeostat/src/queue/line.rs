//! The line of ready keys of one priority: first come, first served within a lane, and lanes take
//! turns. Constant time, no clock, no randomness that anybody could see.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use slab::Slab;

use super::chain::{Chain, Link, Linked};
use super::rules::Lane;
use super::slots::{KEPT, Slots};

/// Ready keys by lane; a key is named by its number, and so is a lane while it is known.
#[derive(Debug)]
pub(super) struct Line {
    lanes: Slab<OneLane>,
    /// The lanes with somebody in them, the one whose turn it is first.
    turns: Chain,
    /// The lane of keys that have none, once there was one.
    unnamed: Option<usize>,
    named: HashTable<usize>,
    hasher: RandomState,
    keys: usize,
}

#[derive(Debug)]
struct OneLane {
    name: Option<Box<str>>,
    /// The hash of the name.
    hash: u64,
    keys: Chain,
    link: Link,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            lanes: Slab::new(),
            turns: Chain::EMPTY,
            unnamed: None,
            named: HashTable::new(),
            hasher: RandomState::default(),
            keys: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// The lane of that name, new if need be. It is known until somebody has been in it.
    pub(super) fn lane(&mut self, name: Lane<'_>) -> usize {
        match (name, self.unnamed) {
            (None, Some(lane)) => lane,
            (None, None) => {
                let lane = self.lanes.insert(OneLane::new(None, 0));
                self.unnamed = Some(lane);
                lane
            }
            (Some(name), _) => self.named(name),
        }
    }

    /// At the end of its lane. A lane that was empty has its turn after all others.
    pub(super) fn join<T>(&mut self, slots: &mut Slots<T>, lane: usize, key: usize) {
        let Self { lanes, turns, keys, .. } = self;
        *keys += 1;
        if lanes[lane].keys.is_empty() {
            turns.push(lanes, lane);
        }
        lanes[lane].keys.push(slots, key);
    }

    /// Out of the line, whoever's turn it is.
    pub(super) fn leave<T>(&mut self, slots: &mut Slots<T>, lane: usize, key: usize) {
        let Self { lanes, turns, keys, .. } = self;
        *keys -= 1;
        lanes[lane].keys.remove(slots, key);
        if lanes[lane].keys.is_empty() {
            turns.remove(lanes, lane);
            self.drop_if_many(lane);
        }
    }

    /// The first of the lane whose turn it is; the lane has its next turn after all others.
    pub(super) fn pop<T>(&mut self, slots: &mut Slots<T>) -> Option<usize> {
        let lane = self.turns.first()?;
        self.turns.move_to_end(&mut self.lanes, lane);
        let first = self.lanes[lane].keys.first()?;
        self.leave(slots, lane, first);
        Some(first)
    }

    fn named(&mut self, name: &str) -> usize {
        let Self { lanes, named, hasher, .. } = self;
        let hash = hasher.hash_one(name);
        let known = named.find(hash, |lane| lanes[*lane].name.as_deref() == Some(name));
        known.copied().unwrap_or_else(|| {
            let new = lanes.insert(OneLane::new(Some(Box::from(name)), hash));
            *named.insert_unique(hash, new, |lane| lanes[*lane].hash).get()
        })
    }

    /// An empty lane is kept for the next key of its name, unless too many are known.
    fn drop_if_many(&mut self, lane: usize) {
        if self.lanes.len() <= KEPT || self.unnamed == Some(lane) {
            return;
        }
        let OneLane { hash, .. } = self.lanes.remove(lane);
        if let Ok(entry) = self.named.find_entry(hash, |known| *known == lane) {
            entry.remove();
        }
    }
}

impl OneLane {
    fn new(name: Option<Box<str>>, hash: u64) -> Self {
        Self { name, hash, keys: Chain::EMPTY, link: Link::NONE }
    }
}

impl Linked for OneLane {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}
