//! What the store holds: one version of one object, its key, and what selectors may ask of it.

use std::cmp::Ordering;

use bytes::Bytes;
use serde_json::{Value, json};

use super::pairs::Pairs;

/// Where an object lives among those of its resource; ordered as `namespace/name` is, byte by byte,
/// which is the order of etcd's keys and so of every list: `a-b/x` comes before `a/x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Empty for objects of the cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of `name` in `namespace` (empty for objects of the cluster).
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        // Mostly both are of one namespace.
        if self.namespace == other.namespace {
            return self.name.cmp(&other.name);
        }
        let (one, two) = (self.namespace.bytes(), other.namespace.bytes());
        one.chain(*b"/").cmp(two.chain(*b"/"))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One version of one object, as committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The revision of the commit; for a deletion, of the deletion.
    pub revision: u64,
    /// Where it lives.
    pub key: Key,
    /// The `apiVersion` it is written in.
    pub api_version: String,
    /// The labels.
    pub labels: Pairs,
    /// What field selectors of its kind can ask for.
    pub fields: Pairs,
    /// The object as JSON, `metadata.resourceVersion` included.
    pub body: Bytes,
}

impl Stored {
    /// The object, decoded.
    #[must_use]
    pub fn value(&self) -> Value {
        // The bytes were encoded by this store from a Value: they always decode.
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Whether its deletion was asked for; most objects are not even decoded for that.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        const FIELD: &str = "deletionTimestamp";
        memchr::memmem::find(&self.body, FIELD.as_bytes()).is_some()
            && !self.value()["metadata"][FIELD].is_null()
    }

    /// Writes the revision into the object and encodes it, once.
    pub(super) fn encode(key: &Key, draft: Draft, revision: u64, scratch: &mut Vec<u8>) -> Self {
        let Draft { mut value, fields } = draft;
        if let Some(object) = value.as_object_mut() {
            let metadata = object.entry("metadata").or_insert_with(|| json!({}));
            metadata["resourceVersion"] = revision.to_string().into();
        }
        Self::of(revision, key, value, fields, scratch)
    }

    /// `scratch` is written to first, so that what is kept takes no more than it has to.
    fn of(
        revision: u64,
        key: &Key,
        mut value: Value,
        fields: Pairs,
        scratch: &mut Vec<u8>,
    ) -> Self {
        let labels = value.get("metadata").and_then(|metadata| metadata.get("labels"));
        let labels = labels.and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let labels =
            labels.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect();
        let api_version =
            value.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        type_first(&mut value);
        scratch.clear();
        // A value can always be written, and memory never refuses.
        let _ = serde_json::to_writer(&mut *scratch, &value);
        let body = Bytes::copy_from_slice(scratch);
        Self { revision, key: key.clone(), api_version, labels, fields, body }
    }

    /// The same object at the same revision, in another form.
    pub(crate) fn with_value(&self, value: Value) -> Self {
        Self::of(self.revision, &self.key, value, self.fields.clone(), &mut Vec::new())
    }

    /// Its uid; nothing else is decoded.
    #[must_use]
    pub fn uid(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(serde::Deserialize)]
        struct Metadata {
            uid: String,
        }
        let read = serde_json::from_slice(&self.body);
        read.map_or_else(|_| String::new(), |object: Object| object.metadata.uid)
    }

    /// The same object shown at a later revision.
    #[must_use]
    pub fn at(&self, revision: u64) -> Self {
        if let Some(body) = self.renumbered(revision) {
            return Self { revision, body, ..self.clone() };
        }
        let draft = Draft { value: self.value(), fields: self.fields.clone() };
        Self::encode(&self.key, draft, revision, &mut Vec::new())
    }

    /// The bytes with another revision in the place of its own, when there is no doubt which place that
    /// is: `metadata` always names it, so where it is named once, it is there. Texts cannot hold what is
    /// looked for, their quotation marks are escaped.
    fn renumbered(&self, revision: u64) -> Option<Bytes> {
        let own = format!("\"resourceVersion\":\"{}\"", self.revision);
        let mut places = memchr::memmem::find_iter(&self.body, own.as_bytes());
        let (Some(place), None) = (places.next(), places.next()) else { return None };
        let number = format!("\"resourceVersion\":\"{revision}\"");
        let (before, after) = (&self.body[..place], &self.body[place + own.len()..]);
        Some([before, number.as_bytes(), after].concat().into())
    }
}

/// An object about to be committed: everything but its revision.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The object; its `metadata.resourceVersion` is overwritten.
    pub value: Value,
    /// What field selectors of its kind can ask for.
    pub fields: Pairs,
}

/// Puts `kind` and `apiVersion` where lists expect to find them.
fn type_first(value: &mut Value) {
    let Some(object) = value.as_object_mut() else { return };
    let mut names = object.keys();
    if names.next().is_some_and(|name| name == "kind")
        && names.next().is_some_and(|name| name == "apiVersion")
    {
        return;
    }
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.shift_remove(name) {
            object.shift_insert(0, name.to_owned(), value);
        }
    }
}
