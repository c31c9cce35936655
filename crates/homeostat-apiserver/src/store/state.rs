//! The state behind the lock: maps of objects, a ring of changes per resource, one counter.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Change, Draft, Expect, Key, Page, Range, StoreError, Stored};

#[derive(Debug)]
pub(super) struct State {
    revision: u64,
    committed: watch::Sender<u64>,
    history: usize,
    resources: BTreeMap<String, Resource>,
}

#[derive(Debug)]
struct Resource {
    objects: BTreeMap<Key, Arc<Stored>>,
    /// The last changes, oldest first; their revisions rise strictly.
    changes: VecDeque<Change>,
    /// Every change after this revision is in `changes`.
    floor: u64,
    changed: watch::Sender<u64>,
}

impl Default for Resource {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            changes: VecDeque::new(),
            floor: 0,
            changed: watch::Sender::new(0),
        }
    }
}

impl State {
    pub(super) fn new(history: usize) -> Self {
        Self {
            revision: 1,
            committed: watch::Sender::new(1),
            history: history.max(1),
            resources: BTreeMap::new(),
        }
    }

    pub(super) fn committed(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn get(&self, resource: &str, key: &Key) -> Option<Arc<Stored>> {
        self.resources.get(resource)?.objects.get(key).cloned()
    }

    pub(super) fn resources(&self) -> Vec<String> {
        let held = self.resources.iter().filter(|(_, resource)| !resource.objects.is_empty());
        held.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn list(&self, resource: &str, range: &Range) -> Result<Page, StoreError> {
        let revision = range.at.unwrap_or(self.revision);
        let Some(resource) = self.resources.get(resource) else {
            return Ok(Page { revision, items: Vec::new() });
        };
        let wanted = |key: &Key| {
            range.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
                && range.after.as_ref().is_none_or(|after| key > after)
        };
        let start = match (&range.namespace, &range.after) {
            (Some(namespace), None) => Key::new(namespace.clone(), ""),
            (_, Some(after)) => after.clone(),
            (None, None) => Key::new("", ""),
        };
        let present = resource
            .objects
            .range(start..)
            .take_while(|(key, _)| {
                range.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            })
            .filter(|(key, _)| wanted(key));
        if revision >= self.revision {
            return Ok(Page {
                revision,
                items: present.map(|(_, object)| object.clone()).collect(),
            });
        }
        if revision < resource.floor {
            return Err(StoreError::Expired { asked: revision, oldest: resource.floor });
        }
        // The past is the present with the later changes undone, newest first.
        let mut past: BTreeMap<&Key, &Arc<Stored>> = present.collect();
        for change in resource.changes.iter().rev() {
            if change.object.revision <= revision {
                break;
            }
            if !wanted(&change.object.key) {
                continue;
            }
            match &change.previous {
                Some(previous) => past.insert(&change.object.key, previous),
                None => past.remove(&change.object.key),
            };
        }
        Ok(Page { revision, items: past.into_values().cloned().collect() })
    }

    pub(super) fn put(
        &mut self,
        name: &str,
        key: &Key,
        expect: Expect,
        draft: Draft,
    ) -> Result<Arc<Stored>, StoreError> {
        let previous = self.get(name, key);
        let met = match expect {
            Expect::Absent => previous.is_none(),
            Expect::Revision(revision) => {
                previous.as_ref().is_some_and(|stored| stored.revision == revision)
            }
        };
        if !met {
            return Err(StoreError::Conflict);
        }
        self.revision += 1;
        let stored = Arc::new(encode(key, draft, self.revision));
        let resource = self.resources.entry(name.to_owned()).or_default();
        resource.objects.insert(key.clone(), stored.clone());
        let change = Change { object: stored.clone(), previous, deleted: false };
        resource.record(change, self.history);
        self.committed.send_replace(self.revision);
        Ok(stored)
    }

    pub(super) fn delete(
        &mut self,
        name: &str,
        key: &Key,
        revision: u64,
    ) -> Result<Arc<Stored>, StoreError> {
        let resource = self.resources.get_mut(name).ok_or(StoreError::Conflict)?;
        let previous = match resource.objects.get(key) {
            Some(stored) if stored.revision == revision => stored.clone(),
            _ => return Err(StoreError::Conflict),
        };
        self.revision += 1;
        resource.objects.remove(key);
        let draft = Draft { value: previous.value(), fields: previous.fields.clone() };
        let last = Arc::new(encode(key, draft, self.revision));
        let change = Change { object: last.clone(), previous: Some(previous), deleted: true };
        resource.record(change, self.history);
        self.committed.send_replace(self.revision);
        Ok(last)
    }

    pub(super) fn subscribe(&mut self, name: &str) -> watch::Receiver<u64> {
        self.resources.entry(name.to_owned()).or_default().changed.subscribe()
    }

    /// At most `limit` changes of a resource after `revision`, oldest first.
    pub(super) fn changes(
        &self,
        name: &str,
        revision: u64,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        let Some(resource) = self.resources.get(name) else { return Ok(Vec::new()) };
        if revision < resource.floor {
            return Err(StoreError::Expired { asked: revision, oldest: resource.floor });
        }
        let start = resource.changes.partition_point(|change| change.object.revision <= revision);
        Ok(resource.changes.iter().skip(start).take(limit).cloned().collect())
    }
}

impl Resource {
    fn record(&mut self, change: Change, history: usize) {
        let revision = change.object.revision;
        self.changes.push_back(change);
        while self.changes.len() > history {
            if let Some(forgotten) = self.changes.pop_front() {
                self.floor = forgotten.object.revision;
            }
        }
        self.changed.send_replace(revision);
    }
}

/// Puts `kind` and `apiVersion` where lists expect to find them.
pub(crate) fn type_first(value: &mut Value) {
    let Some(object) = value.as_object_mut() else { return };
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.shift_remove(name) {
            object.shift_insert(0, name.to_owned(), value);
        }
    }
}

/// Writes the revision into the object and encodes it, once.
fn encode(key: &Key, draft: Draft, revision: u64) -> Stored {
    let Draft { mut value, fields } = draft;
    if let Some(object) = value.as_object_mut() {
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        metadata["resourceVersion"] = revision.to_string().into();
    }
    let labels = value
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .map(|labels| {
            labels
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect()
        })
        .unwrap_or_default();
    let api_version =
        value.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    type_first(&mut value);
    Stored {
        revision,
        key: key.clone(),
        api_version,
        labels,
        fields,
        body: Bytes::from(value.to_string()),
    }
}
