//! The slots of all known keys; a key's slot is found in constant time.
//!
//! The table of keys is asked for one key at a time and never walked: its random seed decides
//! nothing that anybody could see, and nobody can choose names that collide.

use std::hash::{BuildHasher, Hash};
use std::ops::{Index, IndexMut};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

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
    ids: HashTable<usize>,
    hasher: RandomState,
}

impl<T: Hash + Eq> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ids: HashTable::new(),
            hasher: RandomState::default(),
        }
    }

    pub(super) fn find(&self, key: &T) -> Option<usize> {
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
        let Self { slots, free, ids, hasher } = self;
        let hash = hasher.hash_one(&key);
        match ids.entry(hash, |id| slots[*id].is_of(&key), |id| slots[*id].hash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let id = free.pop().unwrap_or_else(|| {
                    slots.push(Slot::blank());
                    slots.len() - 1
                });
                let slot = &mut slots[id];
                (slot.key, slot.hash) = (Some(key), hash);
                place.insert(id);
                id
            }
        }
    }

    pub(super) fn remove(&mut self, id: usize) {
        let slot = &mut self.slots[id];
        if let Ok(entry) = self.ids.find_entry(slot.hash, |known| *known == id) {
            entry.remove();
        }
        slot.clear();
        self.free.push(id);
        if self.ids.is_empty() && self.slots.len() > KEPT {
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
        (self.ids.len(), self.slots.capacity())
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
