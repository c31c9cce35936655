//! Parts that many objects have alike, kept once: labels, owner references.
//!
//! The Pods of a ReplicaSet have the same labels and the same owner, down to the bytes, so what was
//! parsed for the first of them serves the others without being parsed again.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::header::{Labels, Owner};

/// How many distinct parts there may be before those that nobody uses any more are looked for.
const FIRST_SWEEP: usize = 64;

/// The shared parts of the objects of one informer.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    labels: Pool<Labels>,
    owners: Pool<[Owner]>,
    no_labels: Arc<Labels>,
}

impl Interner {
    /// Labels by their JSON.
    pub(crate) fn labels(&mut self, json: Option<&str>) -> Result<Arc<Labels>, serde_json::Error> {
        match json {
            None => Ok(Arc::clone(&self.no_labels)),
            Some(json) => self.labels.parse(json, |json| serde_json::from_str(json).map(Arc::new)),
        }
    }

    /// Owner references by their JSON.
    pub(crate) fn owners(&mut self, json: Option<&str>) -> Result<Arc<[Owner]>, serde_json::Error> {
        let parse = |json: &str| serde_json::from_str::<Vec<Owner>>(json).map(Arc::from);
        self.owners.parse(json.unwrap_or("[]"), parse)
    }
}

/// Hashed, as nobody sees an order: labels and owners of a cluster begin alike, and every comparison
/// would read that beginning again.
#[derive(Debug)]
struct Pool<T: ?Sized> {
    by_text: HashMap<Box<str>, Arc<T>, RandomState>,
    sweep_at: usize,
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { by_text: HashMap::default(), sweep_at: FIRST_SWEEP }
    }
}

impl<T: ?Sized> Pool<T> {
    fn parse<E>(
        &mut self,
        text: &str,
        parse: impl FnOnce(&str) -> Result<Arc<T>, E>,
    ) -> Result<Arc<T>, E> {
        match self.by_text.get(text) {
            Some(known) => Ok(Arc::clone(known)),
            None => parse(text).map(|new| self.keep(text, new)),
        }
    }

    fn keep(&mut self, text: &str, new: Arc<T>) -> Arc<T> {
        if self.by_text.len() >= self.sweep_at {
            self.by_text.retain(|_, part| Arc::strong_count(part) > 1);
            // Twice what is in use: a sweep costs each new part a constant.
            self.sweep_at = FIRST_SWEEP.max(self.by_text.len() * 2);
        }
        self.by_text.insert(Box::from(text), Arc::clone(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_are_one_and_unused_ones_go() {
        let mut interner = Interner::default();
        let json = |number: usize| format!(r#"{{"app":"web-{number}"}}"#);
        let kept = interner.labels(Some(&json(0))).unwrap();
        assert!(Arc::ptr_eq(&kept, &interner.labels(Some(&json(0))).unwrap()));
        for number in 1..1000 {
            interner.labels(Some(&json(number))).unwrap();
        }
        assert!(interner.labels.by_text.len() <= FIRST_SWEEP);
        assert!(Arc::ptr_eq(&kept, &interner.labels(Some(&json(0))).unwrap()));
    }
}
