//! The slots of all known keys; a key's slot is found in constant time.
//!
//! The table of keys is asked for one key at a time and never walked: its random seed decides
//! nothing that anybody could see, and nobody can choose names that collide.

use std::hash::{BuildHasher, Hash};
use std::ops::{Index, IndexMut};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use slab::Slab;

use super::slot::Slot;

/// An empty queue gives back the memory of more keys than this.
pub(super) const KEPT: usize = 1024;

/// One slot per key, named by a number while the key is known.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Slab<Slot<T>>,
    ids: HashTable<usize>,
    hasher: RandomState,
}

impl<T: Hash + Eq> Slots<T> {
    pub(super) fn new() -> Self {
        Self { slots: Slab::new(), ids: HashTable::new(), hasher: RandomState::default() }
    }

    pub(super) fn find(&self, key: &T) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        self.ids.find(hash, |id| self.slots[*id].key == *key).copied()
    }

    /// The slot of a key, new if need be.
    pub(super) fn of(&mut self, key: T) -> usize {
        let Self { slots, ids, hasher } = self;
        let hash = hasher.hash_one(&key);
        if let Some(id) = ids.find(hash, |id| slots[*id].key == key) {
            return *id;
        }
        let id = slots.insert(Slot::new(key, hash));
        ids.insert_unique(hash, id, |id| slots[*id].hash);
        id
    }

    pub(super) fn remove(&mut self, id: usize) {
        let slot = self.slots.remove(id);
        if let Ok(entry) = self.ids.find_entry(slot.hash, |known| *known == id) {
            entry.remove();
        }
        if self.slots.is_empty() && self.slots.capacity() > KEPT {
            (self.slots, self.ids) = (Slab::new(), HashTable::new());
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<T>> {
        self.slots.iter().map(|(_, slot)| slot)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<T>> {
        self.slots.iter_mut().map(|(_, slot)| slot)
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
