//! The line of ready keys of one priority: first come, first served within a lane, and lanes take
//! turns. Constant time, no clock, no randomness that anybody could see.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use slab::Slab;

use super::chain::{Chain, Link, Linked};
use super::rules::Lane;
use super::slots::{KEPT, Slots};

/// In which lane a key belongs.
type Name<T> = fn(&T) -> Lane<'_>;

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
    /// The key that is alone in the line, and in no lane: whose turn it is needs no finding out.
    alone: Option<usize>,
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
            alone: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// At the end of its lane. A lane that was empty has its turn after all others.
    #[inline]
    pub(super) fn join<T>(&mut self, slots: &mut Slots<T>, key: usize, name: Name<T>) {
        self.keys += 1;
        if self.keys == 1 {
            self.alone = Some(key);
            return;
        }
        if let Some(first) = self.alone.take() {
            self.stand(slots, first, name);
        }
        self.stand(slots, key, name);
    }

    /// Out of the line, whoever's turn it is.
    pub(super) fn leave<T>(&mut self, slots: &mut Slots<T>, key: usize) {
        self.keys -= 1;
        if self.alone == Some(key) {
            self.alone = None;
            return;
        }
        let Self { lanes, turns, .. } = self;
        let lane = slots[key].lane;
        lanes[lane].keys.remove(slots, key);
        if lanes[lane].keys.is_empty() {
            turns.remove(lanes, lane);
            self.drop_if_many(lane);
        }
    }

    /// The first of the lane whose turn it is; the lane has its next turn after all others.
    #[inline]
    pub(super) fn pop<T>(&mut self, slots: &mut Slots<T>) -> Option<usize> {
        if let Some(key) = self.alone.take() {
            self.keys = 0;
            return Some(key);
        }
        let lane = self.turns.first()?;
        self.turns.move_to_end(&mut self.lanes, lane);
        let first = self.lanes[lane].keys.first()?;
        self.leave(slots, first);
        Some(first)
    }

    fn stand<T>(&mut self, slots: &mut Slots<T>, key: usize, name: Name<T>) {
        let lane = self.lane(slots[key].key.as_ref().and_then(name));
        slots[key].lane = lane;
        let Self { lanes, turns, .. } = self;
        if lanes[lane].keys.is_empty() {
            turns.push(lanes, lane);
        }
        lanes[lane].keys.push(slots, key);
    }

    /// The lane of that name, new if need be. It is known until somebody has been in it.
    fn lane(&mut self, name: Lane<'_>) -> usize {
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
