//! Which objects each owner has, found by the owner's uid in constant time.
//!
//! Most owners have few dependents, so those are a short list; an owner with many has a set, so that
//! no change costs more the more siblings it has.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry as Place;
use smallvec::SmallVec;

use crate::key::Key;

/// A list of more is worth a set.
const FEW: usize = 16;

/// Dependents by the uids of their owners. Asked for one owner at a time and never walked: its random
/// seed decides nothing that anybody could see.
#[derive(Debug, Default)]
pub(super) struct Owners(HashMap<Arc<str>, Dependents, RandomState>);

#[derive(Debug)]
enum Dependents {
    Few(SmallVec<[Key; 1]>),
    Many(BTreeSet<Key>),
}

impl Owners {
    /// An object has an owner of that uid.
    pub(super) fn insert(&mut self, uid: &Arc<str>, key: &Key) {
        let few = || Dependents::Few(SmallVec::new());
        self.0.entry(Arc::clone(uid)).or_insert_with(few).insert(key);
    }

    /// It has not any more.
    pub(super) fn remove(&mut self, uid: &Arc<str>, key: &Key) {
        let Place::Occupied(mut dependents) = self.0.entry(Arc::clone(uid)) else { return };
        if dependents.get_mut().remove(key) {
            dependents.remove();
        }
    }

    /// The dependents of the owner of that uid, in order.
    pub(super) fn find(&self, uid: &str) -> Vec<&Key> {
        match self.0.get(uid) {
            None => Vec::new(),
            Some(Dependents::Many(keys)) => keys.iter().collect(),
            Some(Dependents::Few(keys)) => {
                let mut keys: Vec<&Key> = keys.iter().collect();
                keys.sort_unstable();
                keys
            }
        }
    }
}

impl Dependents {
    fn insert(&mut self, key: &Key) {
        match self {
            Self::Many(keys) => drop(keys.insert(key.clone())),
            // An object may name an owner twice.
            Self::Few(keys) if keys.contains(key) => {}
            Self::Few(keys) if keys.len() < FEW => keys.push(key.clone()),
            Self::Few(keys) => {
                *self = Self::Many(keys.drain(..).chain([key.clone()]).collect());
            }
        }
    }

    /// Whether that was the last one.
    fn remove(&mut self, key: &Key) -> bool {
        match self {
            Self::Few(keys) => {
                keys.retain(|known| known != key);
                keys.is_empty()
            }
            Self::Many(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependents_are_found_in_order_however_many_there_are() {
        let (one, two): (Arc<str>, Arc<str>) = (Arc::from("one"), Arc::from("two"));
        let key = |number: usize| Key::namespaced("default", format!("{:03}", number * 7 % 100));
        for count in [1, FEW, FEW + 1, 99] {
            let mut owners = Owners::default();
            for number in 0..count {
                owners.insert(&one, &key(number));
                owners.insert(&one, &key(number));
            }
            owners.insert(&two, &key(0));
            let mut all: Vec<Key> = (0..count).map(key).collect();
            all.sort_unstable();
            assert_eq!(owners.find("one"), all.iter().collect::<Vec<_>>(), "{count}");
            assert_eq!(owners.find("two"), [&key(0)]);
            for number in 0..count {
                owners.remove(&one, &key(number));
            }
            assert!(owners.find("one").is_empty());
            owners.remove(&two, &key(0));
            assert!(owners.0.is_empty(), "nothing is kept of owners without dependents");
        }
    }
}
