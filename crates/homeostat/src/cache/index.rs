//! Finding objects by the values of a field: kept beside the objects, changed with them.
//!
//! A function that panics on one object harms no other; but who looks something up is told, since
//! what is missing might be what is looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::Entry;
use super::scan::Fields;
use crate::contained::contained;
use crate::key::Key;

/// Which values an object is found by.
pub(crate) type Extract = Arc<dyn Fn(&Entry) -> Vec<String> + Send + Sync>;

/// One index: a flat set of values and the keys that have them.
pub(super) struct Index {
    extract: Extract,
    found: BTreeSet<(Arc<str>, Key)>,
    /// The objects on which `extract` panicked, and what it said.
    broken: BTreeMap<Key, String>,
}

impl Index {
    pub(super) fn new(extract: Extract) -> Self {
        Self { extract, found: BTreeSet::new(), broken: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, entry: &Entry) {
        let key = &entry.header.key;
        match contained(|| (self.extract)(entry)) {
            Ok(values) => {
                self.found.extend(values.into_iter().map(|value| (Arc::from(value), key.clone())));
            }
            Err(said) => {
                tracing::error!(%key, said, "an index panicked");
                self.broken.insert(key.clone(), said);
            }
        }
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        let key = &entry.header.key;
        if self.broken.remove(key).is_some() {
            return;
        }
        match contained(|| (self.extract)(entry)) {
            Ok(values) => values.into_iter().for_each(|value| {
                self.found.remove(&(Arc::from(value), key.clone()));
            }),
            // It did not when the object came; under which values it is, only a search can tell.
            Err(_) => self.found.retain(|(_, other)| other != key),
        }
    }

    /// An object that may be missing under any value, and why.
    pub(super) fn broken(&self) -> Option<(&Key, &str)> {
        self.broken.iter().next().map(|(key, said)| (key, said.as_str()))
    }

    /// The keys that have `value`, in order.
    pub(super) fn find(&self, value: &str) -> impl Iterator<Item = &Key> + use<'_> {
        let value: Arc<str> = Arc::from(value);
        let first = (Arc::clone(&value), Key::cluster(""));
        let same = self.found.range(first..).take_while(move |(other, _)| *other == value);
        same.map(|(_, key)| key)
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("found", &self.found.len()).finish_non_exhaustive()
    }
}

/// The values at a path such as `spec.nodeName`; lists on the way are followed into every element.
pub(crate) fn field(path: &str) -> Extract {
    let path: Vec<String> =
        path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect();
    Arc::new(move |entry| {
        let mut found = Vec::new();
        collect(&entry.json(), &path, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    })
}

/// Whoever makes an object decides how deep its lists are, so none of them is worth a call.
fn collect(json: &str, path: &[String], found: &mut Vec<String>) {
    let mut left = vec![(json, path)];
    while let Some((json, path)) = left.pop() {
        if json.starts_with('[') {
            let elements: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            left.extend(elements.into_iter().rev().map(|element| (element.get(), path)));
        } else if let Some((step, rest)) = path.split_first() {
            let fields = Fields::of(json).unwrap_or_default();
            left.extend(fields.get(step).map(|value| (value, rest)));
        } else {
            match json.as_bytes().first() {
                Some(b'"') => found.extend(serde_json::from_str::<String>(json)),
                Some(b'{') | None => {}
                Some(_) => found.push(json.to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_through_objects_and_lists_to_plain_values() {
        let object = json!({
            "spec": { "nodeName": "n\"1", "ports": [{ "port": 80 }, { "port": 443 }, {}] },
            "on": true, "none": null, "deep": "lists",
        })
        .to_string()
        .replace("\"lists\"", &format!("{}1{},[2]]", "[".repeat(5000), "]".repeat(4999)));
        let values = |path: &str| {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            let mut found = Vec::new();
            collect(&object, &path, &mut found);
            found
        };
        assert_eq!(values("spec.nodeName"), ["n\"1"]);
        assert_eq!(values("spec.ports.port"), ["80", "443"]);
        assert_eq!(values("on"), ["true"]);
        assert_eq!(values("deep"), ["1", "2"]);
        assert!(values("none").is_empty() && values("spec").is_empty() && values("a.b").is_empty());
    }
}
