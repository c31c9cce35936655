//! The whole store at one revision: objects and the recent past, in maps that share what is equal.
//!
//! A clone costs nothing and never changes, so readers hold one for as long as they like and no
//! writer waits for them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet, Vector};

use super::change::Change;
use super::{Key, Page, Range, StoreError, Stored};

/// Everything as it was after one commit.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(super) revision: u64,
    /// Nothing is known of the changes up to this one, whatever the resource.
    pub(super) floor: u64,
    /// The same for every resource that is not among those: of some of them everything was forgotten.
    /// Nobody watches one of them, so it judges only who begins to.
    pub(super) left_floor: u64,
    pub(super) resources: OrdMap<Arc<str>, Arc<Resource>>,
}

/// The objects of one resource.
#[derive(Debug, Clone, Default)]
pub(super) struct Resource {
    pub(super) objects: OrdSet<Entry>,
    /// The last changes, oldest first; their revisions never fall.
    pub(super) changes: Vector<Arc<Change>>,
    /// Every change after this revision is in `changes`.
    pub(super) floor: u64,
}

/// An object that is found by its key: one pointer, no second copy of the key.
#[derive(Debug, Clone)]
pub(super) struct Entry(pub(super) Arc<Stored>);

impl Borrow<Key> for Entry {
    fn borrow(&self) -> &Key {
        &self.0.key
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl Snapshot {
    /// Nothing at all, at a revision that is never 0.
    pub(super) fn empty() -> Self {
        Self { revision: 1, floor: 0, left_floor: 0, resources: OrdMap::new() }
    }

    /// The revision of the last commit; never 0.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object under `key`.
    #[must_use]
    pub fn get(&self, resource: &str, key: &Key) -> Option<Arc<Stored>> {
        self.resources.get(resource)?.objects.get(key).map(|entry| entry.0.clone())
    }

    /// The resources that hold at least one object, with how many.
    pub fn resources(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        let held = self.resources.iter().filter(|(_, resource)| !resource.objects.is_empty());
        held.map(|(name, resource)| (name, resource.objects.len()))
    }

    /// Every object of a resource, in the order of the keys.
    pub fn objects(&self, resource: &str) -> impl Iterator<Item = &Arc<Stored>> {
        let resource = self.resources.get(resource);
        resource.into_iter().flat_map(|resource| resource.objects.iter().map(|entry| &entry.0))
    }

    /// The objects of a resource, now or at an earlier revision.
    ///
    /// # Errors
    /// [`StoreError::Expired`] when `range.at` is older than the history.
    pub fn list(&self, resource: &str, range: &Range) -> Result<Page, StoreError> {
        let (revision, objects) = self.walk(resource, range)?;
        Ok(Page { revision, items: objects.cloned().collect() })
    }

    /// The same one by one, with the revision: whoever wants a few does not pay for all. Of the past, all
    /// that changed since is looked at first.
    ///
    /// # Errors
    /// As [`Snapshot::list`].
    pub(crate) fn walk<'a>(
        &'a self,
        resource: &str,
        range: &'a Range,
    ) -> Result<(u64, impl Iterator<Item = &'a Arc<Stored>> + use<'a>), StoreError> {
        let revision = range.at.unwrap_or(self.revision);
        let floor = self.floor_of(resource);
        let past = revision < self.revision;
        if past && revision < floor {
            return Err(StoreError::Expired { asked: revision, oldest: floor });
        }
        let within =
            |key: &Key| range.namespace.as_ref().is_none_or(|wanted| *wanted == key.namespace);
        let wanted = move |key: &Key| within(key) && range.after.as_ref().is_none_or(|it| key > it);
        let resource = self.resources.get(resource);
        // The past is the present with the later changes undone, newest first.
        let mut undone: BTreeMap<&Key, Option<&Arc<Stored>>> = BTreeMap::new();
        let changes = resource.filter(|_| past).map(|resource| resource.changes.iter().rev());
        for change in changes.into_iter().flatten() {
            if change.object.revision <= revision {
                break;
            }
            if wanted(&change.object.key) {
                undone.insert(&change.object.key, change.previous.as_ref());
            }
        }
        let start = match (&range.after, &range.namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, namespace) => {
                Bound::Included(Key::new(namespace.clone().unwrap_or_default(), ""))
            }
        };
        let present = resource.into_iter().flat_map(move |resource| {
            let objects = resource.objects.range::<_, Key>((start.clone(), Bound::Unbounded));
            objects.map(|entry| &entry.0).take_while(move |object| within(&object.key))
        });
        Ok((revision, merge(present, undone)))
    }

    /// The oldest revision from which the changes of a resource are all known.
    pub(super) fn floor_of(&self, resource: &str) -> u64 {
        self.resources.get(resource).map_or(self.left_floor, |it| it.floor).max(self.floor)
    }

    /// The changes of a resource after `revision`, oldest first: about `bytes` of them, at least
    /// one if there is any, and never a part of a commit.
    pub(super) fn changes(
        &self,
        resource: &str,
        revision: u64,
        bytes: usize,
    ) -> Result<Vec<Arc<Change>>, StoreError> {
        let floor = self.floor_of(resource);
        if revision < floor {
            return Err(StoreError::Expired { asked: revision, oldest: floor });
        }
        let Some(resource) = self.resources.get(resource) else { return Ok(Vec::new()) };
        let newest = resource.changes.last().map_or(0, |change| change.object.revision);
        if newest <= revision {
            return Ok(Vec::new());
        }
        let start = first_after(&resource.changes, revision);
        let (mut taken, mut size): (Vec<Arc<Change>>, usize) = (Vec::new(), 0);
        for change in resource.changes.focus().narrow(start..).into_iter() {
            let complete =
                taken.last().is_some_and(|last| last.object.revision < change.object.revision);
            if complete && size >= bytes {
                break;
            }
            size += change.object.body.len();
            taken.push(change.clone());
        }
        Ok(taken)
    }
}

/// Objects in the order of their keys, with some of them as they were, if they were at all.
fn merge<'a>(
    present: impl Iterator<Item = &'a Arc<Stored>>,
    undone: BTreeMap<&'a Key, Option<&'a Arc<Stored>>>,
) -> impl Iterator<Item = &'a Arc<Stored>> {
    let (mut present, mut undone) = (present.peekable(), undone.into_iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let Some((key, _)) = undone.peek() else { return present.next() };
            let order = present.peek().map_or(Ordering::Greater, |object| object.key.cmp(key));
            match order {
                Ordering::Less => return present.next(),
                Ordering::Equal => drop(present.next()),
                Ordering::Greater => {}
            }
            if let Some((_, Some(before))) = undone.next() {
                return Some(before);
            }
        }
    })
}

/// Where the changes after `revision` begin.
fn first_after(changes: &Vector<Arc<Change>>, revision: u64) -> usize {
    let after = |change: &Arc<Change>| {
        if change.object.revision <= revision { Ordering::Less } else { Ordering::Greater }
    };
    match changes.binary_search_by(after) {
        Ok(at) | Err(at) => at,
    }
}
