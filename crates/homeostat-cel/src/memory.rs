//! What one run found out about large values: how long texts are, and how maps are ordered.
//!
//! An expression may ask for either again and again, at the price of one; so it is found out once.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::objects::{Key, Map};

use super::values;

/// Smaller values are looked at every time.
const LARGE: usize = 64;
/// No more values than these are remembered, or kept alive.
const MOST: usize = 64;

/// The entries of a map in order.
pub(super) type Entries = Arc<Vec<(Key, Value)>>;

/// Values are known by where they lie, and are kept so that nothing else can lie there.
#[derive(Default)]
pub(super) struct Memory {
    texts: BTreeMap<usize, (Arc<String>, u64)>,
    maps: BTreeMap<usize, (Map, Entries)>,
}

impl Memory {
    /// How large something is, as far as costs go.
    pub(super) fn size(&mut self, value: &Value) -> u64 {
        let Value::String(text) = value else { return values::size(value) };
        if text.len() < LARGE {
            return values::size(value);
        }
        let place = Arc::as_ptr(text) as usize;
        if let Some((_, size)) = self.texts.get(&place) {
            return *size;
        }
        if self.texts.len() == MOST {
            self.texts.clear();
        }
        let size = values::size(value);
        self.texts.insert(place, (Arc::clone(text), size));
        size
    }

    /// The entries of a map in the order of their names.
    pub(super) fn in_order(&mut self, map: &Map) -> Entries {
        if map.map.len() < LARGE {
            return Arc::new(values::in_order(map));
        }
        let place = Arc::as_ptr(&map.map) as usize;
        if let Some((_, entries)) = self.maps.get(&place) {
            return Arc::clone(entries);
        }
        if self.maps.len() == MOST {
            self.maps.clear();
        }
        let entries = Arc::new(values::in_order(map));
        self.maps.insert(place, (map.clone(), Arc::clone(&entries)));
        entries
    }
}
