//! What one run found out: how long large texts are, how large maps are ordered, what patterns mean.
//!
//! An expression may ask for these again and again, at the price of one; so it is found out once.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::objects::{Key, Map};
use regex::Regex;

use super::complaints;
use super::values;

/// Smaller values are looked at every time.
const LARGE: usize = 64;
/// No more values than these are remembered, or kept alive.
const MOST: usize = 64;

/// The entries of a map in order.
type Entries = Arc<Vec<(Key, Value)>>;

/// Values are known by where they lie, and are kept so that nothing else can lie there.
#[derive(Default)]
pub(super) struct Memory {
    texts: BTreeMap<usize, (Arc<String>, u64)>,
    maps: BTreeMap<usize, (Map, Entries)>,
    patterns: BTreeMap<String, Regex>,
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

    /// Whether a text matches a pattern; `None` for what is no pattern.
    pub(super) fn matches(&mut self, text: &str, pattern: &str) -> Option<bool> {
        if let Some(known) = self.patterns.get(pattern) {
            return Some(known.is_match(text));
        }
        if complaints::is_no_pattern(pattern) {
            return None;
        }
        let read = Regex::new(pattern).ok()?;
        if self.patterns.len() == MOST {
            self.patterns.clear();
        }
        let found = read.is_match(text);
        self.patterns.insert(pattern.to_owned(), read);
        Some(found)
    }

    /// What a comprehension over that value goes through; `None` where there is nothing to go
    /// through.
    pub(super) fn range(&mut self, value: Value) -> Option<Range> {
        match value {
            Value::List(items) => Some(Range::Items(items)),
            Value::Map(map) => Some(Range::Entries(self.in_order(&map))),
            _ => None,
        }
    }

    /// The entries of a map in the order of their names.
    fn in_order(&mut self, map: &Map) -> Entries {
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

/// What a comprehension goes through.
pub(super) enum Range {
    Items(Arc<Vec<Value>>),
    Entries(Entries),
}

impl Range {
    /// The key and the value of a step; items have their place for a key.
    pub(super) fn step(&self, at: usize) -> Option<(Value, Value)> {
        match self {
            Self::Items(items) => {
                Some((Value::Int(i64::try_from(at).ok()?), items.get(at)?.clone()))
            }
            Self::Entries(entries) => {
                entries.get(at).map(|(key, value)| (key.clone().into(), value.clone()))
            }
        }
    }
}
