//! The slots of all known keys; a key's slot is found in constant time.
//!
//! The table of keys is asked for one key at a time and never walked: its random seed decides
//! nothing that anybody could see, and nobody can choose names that collide.

use std::hash::{BuildHasher, Hash};
use std::ops::{Index, IndexMut};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::slot::Slot;

/// An empty queue gives back the memory of more keys than this.
pub(super) const KEPT: usize = 1024;

/// One slot per key, named by a number while the key is known.
#[derive(Debug)]
pub(super) struct Slots<T> {
    /// Slots are changed where they are and never moved, which costs more than all else.
    slots: Vec<Slot<T>>,
    /// Those without a key, which are blank.
    free: Vec<usize>,
    /// All slots with a key but one.
    ids: HashTable<usize>,
    /// The slot of the key that came last. It is not in the table before another comes: a queue that
    /// has one key at a time, as most have most of the time, does without the table.
    newest: Option<usize>,
    hasher: RandomState,
}

impl<T: Hash + Eq> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ids: HashTable::new(),
            newest: None,
            hasher: RandomState::default(),
        }
    }

    pub(super) fn find(&self, key: &T) -> Option<usize> {
        let newest = self.newest.filter(|id| self.slots[*id].is_of(key));
        if newest.is_some() || self.ids.is_empty() {
            return newest;
        }
        let hash = self.hasher.hash_one(key);
        self.ids.find(hash, |id| self.slots[*id].is_of(key)).copied()
    }

    /// The slot of a key, most likely this one.
    pub(super) fn find_near(&self, likely: usize, key: &T) -> Option<usize> {
        if self.slots.get(likely).is_some_and(|slot| slot.is_of(key)) {
            return Some(likely);
        }
        self.find(key)
    }

    /// The slot of a key, new if need be.
    #[inline(always)] // or the key is moved once more
    pub(super) fn of(&mut self, key: T) -> usize {
        if let Some(known) = self.find(&key) {
            return known;
        }
        let Self { slots, free, ids, newest, hasher } = self;
        let id = free.pop().unwrap_or_else(|| {
            slots.push(Slot::blank());
            slots.len() - 1
        });
        slots[id].key = Some(key);
        if let Some(older) = newest.replace(id)
            && let Some(key) = &slots[older].key
        {
            let hash = hasher.hash_one(key);
            slots[older].hash = hash;
            ids.insert_unique(hash, older, |id| slots[*id].hash);
        }
        id
    }

    pub(super) fn remove(&mut self, id: usize) {
        let slot = &mut self.slots[id];
        if self.newest == Some(id) {
            self.newest = None;
        } else if let Ok(entry) = self.ids.find_entry(slot.hash, |known| *known == id) {
            entry.remove();
        }
        slot.clear();
        self.free.push(id);
        if self.slots.len() > KEPT && self.ids.is_empty() && self.newest.is_none() {
            (self.slots, self.free, self.ids) = (Vec::new(), Vec::new(), HashTable::new());
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Slot<T>)> {
        self.slots.iter().enumerate()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<T>> {
        self.slots.iter_mut()
    }

    /// How many keys are known, and for how many there is room.
    #[cfg(test)]
    pub(super) fn known(&self) -> (usize, usize) {
        (self.ids.len() + usize::from(self.newest.is_some()), self.slots.capacity())
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = Slot<T>;

    fn index(&self, id: usize) -> &Slot<T> {
        &self.slots[id]
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    fn index_mut(&mut self, id: usize) -> &mut Slot<T> {
        &mut self.slots[id]
    }
}
