//! From a change in a cache to keys in the queue. Handlers run in the cache's task: they only map
//! and enqueue.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::Predicate;
use super::ahead::Ahead;
use super::mapper::Mapper;
use crate::cache::{Delta, Entry, KindCache, Owner};
use crate::context::{Follows, Memories};
use crate::key::Key;
use crate::kind::Kind;
use crate::queue::Queue;
use crate::trigger::{EventKind, Trigger};

pub(crate) fn trigger(kind: &Kind, delta: &Delta) -> Trigger {
    if delta.initial {
        Trigger::Initial
    } else {
        Trigger::Event { change: delta.change, kind: kind.clone(), key: delta.key().clone() }
    }
}

/// What changes of the primary itself lead to.
pub(super) struct Primary {
    pub(super) kind: Kind,
    pub(super) queue: Queue<Key>,
    pub(super) filter: Option<Predicate>,
    pub(super) background: Option<Predicate>,
    pub(super) memories: Arc<Memories>,
    pub(super) follows: Arc<Follows>,
    /// Reconciles read the kind from another cache as well.
    pub(super) ahead: Option<Ahead>,
}

/// Changes of the primary itself.
pub(super) fn primary(source: Primary) -> impl Fn(&Delta) + Send + Sync + 'static {
    move |delta| {
        let Primary { kind, queue, filter, background, memories, follows, ahead } = &source;
        let gone = delta.change == EventKind::Deleted;
        // Of what is gone nothing is kept for a namesake, whatever the filter says.
        if !gone && filter.as_ref().is_some_and(|filter| !filter.passes(delta)) {
            return;
        }
        let (key, trigger) = (delta.key().clone(), trigger(kind, delta));
        if gone && queue.strike_off(&key) {
            // No worker comes to forget it while another process leads.
            follows.ended(&key, &BTreeSet::new(), true);
            return memories.forget(&key);
        }
        if gone {
            // Nor does a namesake that is made at once wait for the end of its backoff.
            queue.forget(&key);
        }
        let heard = || ahead.iter().for_each(|ahead| ahead.heard(&key, kind, delta.object()));
        if delta.initial {
            heard();
            return queue.add_low(key, trigger);
        }
        let trigger = match (&delta.old, &delta.new) {
            (Some(old), Some(new)) => {
                // Of a key that is well nothing is to be mended, and whole objects need no look.
                if queue.was_cut_short(&key) && is_a_new_wish(old, new) {
                    queue.mended(&key);
                }
                let (from, to) = (&old.header.resource_version, &new.header.resource_version);
                memories.filter_own_step(&key, from, to, trigger)
            }
            _ => Some(trigger),
        };
        let Some(trigger) = trigger else { return };
        heard();
        if background.as_ref().is_some_and(|background| background.passes(delta)) {
            queue.add_low(key, trigger);
        } else {
            queue.add(key, trigger);
        }
    }
}

/// Whether somebody wants something else of the object: whatever it failed for may be put right.
///
/// Of a kind without a generation (`ConfigMap`, `Secret`) everything is compared that a generation
/// would count: all but the metadata and the status, which controllers write, this one too. A key
/// that fails and writes there each time is not to be mended by itself.
fn is_a_new_wish(old: &Entry, new: &Entry) -> bool {
    let (before, after) = (&old.header, &new.header);
    before.generation != after.generation
        || before.deletion_timestamp != after.deletion_timestamp
        || (after.generation.is_none() && wish(old) != wish(new))
}

/// What the object says beside its metadata and its status; `None` if it cannot be read.
fn wish(entry: &Entry) -> Option<Value> {
    let mut object = entry.value().ok()?;
    object.as_object_mut()?.retain(|field, _| field != "metadata" && field != "status");
    Some(object)
}

/// The keys that a change of another kind wakes.
pub(super) enum Finder {
    /// The one that controls the object, or every owner; the cache is that of the primaries.
    Owner { kind: Kind, primaries: KindCache, every: bool },
    /// Those that a function names.
    Mapped(Box<Mapper>),
}

impl Finder {
    fn primaries(&self) -> &KindCache {
        match self {
            Self::Owner { primaries, .. } => primaries,
            Self::Mapped(mapper) => mapper.primaries(),
        }
    }
}

/// Whether waking `key` leads to anything. What does not exist a worker only forgets; while none
/// works, because another process leads, the queue is not to be filled with it.
pub(super) fn is_worth_waking(key: &Key, primaries: &KindCache, queue: &Queue<Key>) -> bool {
    !queue.is_paused() || primaries.entry(key).is_some()
}

/// Changes of another kind. With `ahead` reconciles read that kind from another cache than the one
/// that tells of the changes, and are to find there what has woken them.
pub(super) fn secondary(
    kind: Kind,
    finder: Finder,
    filter: Option<Predicate>,
    queue: Queue<Key>,
    ahead: Option<Ahead>,
) -> impl Fn(&Delta) + Send + Sync + 'static {
    move |delta: &Delta| {
        if filter.as_ref().is_some_and(|filter| !filter.passes(delta)) {
            return;
        }
        let (gone, trigger) = (delta.change == EventKind::Deleted, trigger(&kind, delta));
        let sides = delta.old.iter().chain(&delta.new);
        let keys: BTreeSet<Key> = match &finder {
            Finder::Owner { kind, primaries, every } => {
                let owned = |entry: &Arc<Entry>| owner_keys(entry, *every, kind, primaries, gone);
                sides.flat_map(owned).collect()
            }
            Finder::Mapped(mapper) => {
                mapper.map(sides.cloned().collect(), &trigger).into_iter().collect()
            }
        };
        // The first list of another kind says nothing that the first list of primaries does not.
        for key in keys {
            if !is_worth_waking(&key, finder.primaries(), &queue) {
                continue;
            }
            ahead.iter().for_each(|ahead| ahead.heard(&key, &kind, delta.object()));
            if delta.initial {
                queue.add_low(key, trigger.clone());
            } else {
                queue.add(key, trigger.clone());
            }
        }
    }
}

/// The keys of the primaries that control `child`, or own it.
///
/// A child of an earlier object of the same name wakes the present one only by going away, which
/// makes room for a new child.
fn owner_keys(
    child: &Entry,
    every: bool,
    owner: &Kind,
    primaries: &KindCache,
    gone: bool,
) -> Vec<Key> {
    let key_of = |reference: &Owner| {
        let group = reference.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        if reference.kind != owner.kind() || group != owner.group() {
            return None;
        }
        let namespace = child.header.key.namespace().filter(|_| owner.is_namespaced());
        let key = Key::new(namespace, &reference.name);
        let is_ours = primaries.entry(&key).is_some_and(|entry| entry.header.uid == reference.uid);
        (is_ours || gone).then_some(key)
    };
    let counts = |reference: &&Owner| every || reference.controller;
    child.header.owners.iter().filter(counts).filter_map(key_of).collect()
}
