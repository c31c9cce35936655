//! The writers' side: the newest state, and how a commit makes the next one.
//!
//! Pure: commits in, snapshots out. What becomes of a snapshot (shown at once, or when it is on
//! disk) is not decided here.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::change::Change;
use super::forms::Forms;
use super::snapshot::{Entry, Resource, Snapshot};
use super::{Expect, Finished, Key, Limits, StoreError, Stored, Write};

/// One commit: what it did, under which revision.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The revision that all its changes share.
    pub revision: u64,
    /// Each change with its resource, in the order they were asked for.
    pub changes: Vec<(Arc<str>, Arc<Change>)>,
}

#[derive(Debug)]
pub(super) struct Head {
    pub(super) snapshot: Snapshot,
    limits: Limits,
    /// Every change that is kept, oldest first; some of them may be forgotten already.
    kept: VecDeque<(u64, Arc<str>)>,
    /// How many changes the resources really keep.
    known: usize,
    weight: usize,
    /// What somebody watches stays among the resources, with a floor of its own.
    watched: BTreeSet<Arc<str>>,
    /// What is made of changes.
    forms: Arc<Forms>,
    /// Where objects are encoded.
    scratch: Vec<u8>,
}

/// This part of the bytes that the past may take is kept of its forms, besides.
const FORMS_SHARE: usize = 4;
/// Not worth sweeping for fewer than these.
const SWEEP: usize = 1024;

impl Head {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            snapshot: Snapshot::empty(),
            limits,
            kept: VecDeque::new(),
            known: 0,
            weight: 0,
            watched: BTreeSet::new(),
            forms: Arc::new(Forms::with_room_for(limits.bytes / FORMS_SHARE)),
            scratch: Vec::new(),
        }
    }

    /// The bytes that the history holds, with what was made of it.
    pub(super) fn weight(&self) -> usize {
        self.weight + self.forms.bytes()
    }

    /// Begins at a state that was kept elsewhere, with no past.
    pub(super) fn begin_at(&mut self, revision: u64) {
        self.snapshot.revision = revision.max(1);
        self.snapshot.floor = revision;
    }

    /// An object of the state that [`Head::begin_at`] named.
    pub(super) fn restore(&mut self, resource: &str, object: Stored) {
        self.resource(resource).1.objects.insert(Entry(Arc::new(object)));
    }

    /// Does all of `writes` under one revision, or nothing.
    pub(super) fn commit(&mut self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        for (at, write) in writes.iter().enumerate() {
            self.check(write)?;
            let same = |other: &Write| other.resource == write.resource && other.key == write.key;
            if writes[..at].iter().any(same) {
                return Err(StoreError::Conflict);
            }
        }
        let revision = self.snapshot.revision + 1;
        let mut changes = Vec::with_capacity(writes.len());
        for Write { resource, key, draft, .. } in writes {
            let object = draft.map(|it| Stored::encode(&key, it, revision, &mut self.scratch));
            changes.extend(self.record(&resource, &key, object, revision));
        }
        self.snapshot.revision = revision;
        for (name, _) in &changes {
            self.forget(name);
        }
        Ok(Commit { revision, changes })
    }

    /// Makes an object of a finished text, under a revision of its own; `None` where there is one.
    pub(super) fn put_absent(&mut self, finished: Finished) -> Option<Commit> {
        if self.snapshot.get(finished.resource, &finished.key).is_some() {
            return None;
        }
        let revision = self.snapshot.revision + 1;
        let (resource, key) = (finished.resource, finished.key.clone());
        let object = finished.at(revision);
        let change = self.record(resource, &key, Some(object), revision)?;
        self.snapshot.revision = revision;
        self.forget(&change.0);
        Some(Commit { revision, changes: vec![change] })
    }

    fn check(&self, write: &Write) -> Result<(), StoreError> {
        let current = self.snapshot.get(&write.resource, &write.key);
        let met = match write.expect {
            Expect::Absent => current.is_none() && write.draft.is_some(),
            Expect::Revision(revision) => current.is_some_and(|it| it.revision == revision),
        };
        if met { Ok(()) } else { Err(StoreError::Conflict) }
    }

    /// A commit that was kept elsewhere, done again: the next revision, each key with its object or
    /// `None` where it was deleted.
    pub(super) fn replay(&mut self, revision: u64, changes: Vec<(String, Key, Option<Stored>)>) {
        for (resource, key, object) in changes {
            if let Some((name, _)) = self.record(&resource, &key, object, revision) {
                self.forget(&name);
            }
        }
        self.snapshot.revision = revision;
    }

    /// One change; `None` when there is nothing to delete.
    fn record(
        &mut self,
        resource: &str,
        key: &Key,
        object: Option<Stored>,
        revision: u64,
    ) -> Option<(Arc<str>, Arc<Change>)> {
        let forms = self.forms.clone();
        let (name, resource) = self.resource(resource);
        let change = match object {
            Some(object) => {
                let object = Arc::new(object);
                let previous = resource.objects.insert(Entry(object.clone()));
                Change::new(object, previous.map(|entry| entry.0), false, &forms)
            }
            None => {
                let previous = resource.objects.remove(key)?.0;
                Change::new(Arc::new(previous.at(revision)), Some(previous), true, &forms)
            }
        };
        let change = Arc::new(change);
        resource.changes.push_back(change.clone());
        self.weight += change.weight();
        self.known += 1;
        self.kept.push_back((revision, name.clone()));
        Some((name, change))
    }

    fn resource(&mut self, name: &str) -> (Arc<str>, &mut Resource) {
        let known = self.snapshot.resources.get_key_value(name).map(|(known, _)| known.clone());
        let name = known.unwrap_or_else(|| name.into());
        let floor = self.snapshot.left_floor;
        let new = || Arc::new(Resource { floor, ..Resource::default() });
        let resource = self.snapshot.resources.entry(name.clone()).or_insert_with(new);
        (name, Arc::make_mut(resource))
    }

    /// Lets go of the oldest changes until the rest is within the limits: those of `changed` by
    /// their number, those of all resources by their bytes.
    fn forget(&mut self, changed: &str) {
        let most = self.limits.changes;
        self.forget_while(changed, |resource| resource.changes.len() > most);
        while self.weight > self.limits.bytes {
            let Some((revision, name)) = self.kept.pop_front() else { break };
            let older = |change: &Arc<Change>| change.object.revision <= revision;
            self.forget_while(&name, |resource| resource.changes.front().is_some_and(older));
        }
        // The limit on numbers leaves names behind in `kept`: sweep when they are the most of it.
        if self.kept.len() > 2 * self.known + SWEEP {
            self.kept.retain(|(revision, name)| *revision > self.snapshot.floor_of(name));
        }
    }

    /// Somebody watches `name` from now on, and nobody those of `left` any more.
    pub(super) fn watch(&mut self, name: &str, left: &[Arc<str>]) {
        for name in left {
            self.watched.remove(name);
            self.leave(name);
        }
        if !self.watched.contains(name) {
            let (name, _) = self.resource(name);
            self.watched.insert(name);
        }
    }

    /// Lets go of all changes up to `revision`.
    pub(super) fn forget_until(&mut self, revision: u64) {
        while self.kept.front().is_some_and(|(at, _)| *at <= revision) {
            let Some((at, name)) = self.kept.pop_front() else { return };
            let older = |change: &Arc<Change>| change.object.revision <= at;
            self.forget_while(&name, |resource| resource.changes.front().is_some_and(older));
        }
    }

    /// Forgets the oldest changes of a resource. Of a commit that is half forgotten the rest is
    /// never shown: whoever asks for it is told that it is gone, because the floor is that commit.
    fn forget_while(&mut self, name: &str, more: impl Fn(&Resource) -> bool) {
        if !self.snapshot.resources.get(name).is_some_and(|resource| more(resource)) {
            return;
        }
        let Some(resource) = self.snapshot.resources.get_mut(name) else { return };
        let resource = Arc::make_mut(resource);
        while more(resource) {
            let Some(forgotten) = resource.changes.pop_front() else { break };
            self.weight -= forgotten.weight();
            self.known -= 1;
            resource.floor = forgotten.object.revision;
        }
        self.leave(name);
    }

    /// Lets go of a resource of which nothing is left but its name: of those there can be any number.
    fn leave(&mut self, name: &str) {
        let Some(resource) = self.snapshot.resources.get(name) else { return };
        let is_nothing = resource.objects.is_empty() && resource.changes.is_empty();
        if is_nothing && !self.watched.contains(name) {
            self.snapshot.left_floor = self.snapshot.left_floor.max(resource.floor);
            self.snapshot.resources.remove(name);
        }
    }
}
