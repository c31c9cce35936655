//! From a change in a cache to keys in the queue. Handlers run in the cache's task: they only map
//! and enqueue.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::Predicate;
use crate::cache::{Delta, Entry, Informer};
use crate::context::Memories;
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::queue::Queue;
use crate::trigger::{EventKind, Trigger};

/// A kind besides the primary and what its changes mean.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) kind: Kind,
    pub(super) role: Role,
}

type Map = Arc<dyn Fn(&Entry) -> Vec<Key> + Send + Sync>;

/// What a change of a kind wakes.
#[derive(Clone)]
pub(super) enum Role {
    /// Its controller.
    Owned,
    /// The keys a function names.
    Watched(Map),
    /// Nothing.
    Read,
}

impl Role {
    pub(super) fn mapped<X: Object>(map: impl Fn(&X) -> Vec<Key> + Send + Sync + 'static) -> Self {
        Self::Watched(Arc::new(move |entry| match entry.decode::<X>() {
            Ok(object) => map(&object),
            Err(error) => {
                tracing::warn!(error = error.chain(), "a watched object wakes nobody");
                Vec::new()
            }
        }))
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owned => "Owned",
            Self::Watched(_) => "Watched",
            Self::Read => "Read",
        })
    }
}

fn trigger(kind: &Kind, delta: &Delta) -> Trigger {
    if delta.initial {
        Trigger::Initial
    } else {
        Trigger::Event { change: delta.change, kind: kind.clone(), key: delta.key().clone() }
    }
}

/// Changes of the primary itself.
pub(super) fn primary(
    kind: Kind,
    queue: Queue<Key>,
    filter: Option<Predicate>,
    memories: Arc<Memories>,
) -> impl Fn(&Delta) + Send + Sync + 'static {
    move |delta| {
        if filter.as_ref().is_some_and(|filter| !filter.passes(delta)) {
            return;
        }
        let (key, trigger) = (delta.key().clone(), trigger(&kind, delta));
        if delta.initial {
            return queue.add_low(key, trigger);
        }
        let trigger = match (&delta.old, &delta.new) {
            (Some(old), Some(new)) => {
                let (from, to) = (&old.header.resource_version, &new.header.resource_version);
                memories.filter_own_step(&key, from, to, trigger)
            }
            _ => Some(trigger),
        };
        if let Some(trigger) = trigger {
            queue.add(key, trigger);
        }
    }
}

/// Changes of another kind; `primaries` is the cache of the primary kind.
pub(super) fn secondary(
    source: Source,
    owner: Kind,
    primaries: Informer,
    queue: Queue<Key>,
) -> Option<impl Fn(&Delta) + Send + Sync + 'static> {
    let Source { kind, role } = source;
    if matches!(role, Role::Read) {
        return None;
    }
    Some(move |delta: &Delta| {
        let gone = delta.change == EventKind::Deleted;
        let sides = delta.old.iter().chain(&delta.new);
        let keys: BTreeSet<Key> = match &role {
            Role::Owned => sides.filter_map(|e| owner_key(e, &owner, &primaries, gone)).collect(),
            Role::Watched(map) => sides.flat_map(|entry| map(entry)).collect(),
            Role::Read => return,
        };
        // The first list of another kind says nothing that the first list of primaries does not.
        for key in keys {
            if delta.initial {
                queue.add_low(key, trigger(&kind, delta));
            } else {
                queue.add(key, trigger(&kind, delta));
            }
        }
    })
}

/// The key of the primary that controls `child`.
///
/// A child of an earlier object of the same name wakes the present one only by going away, which
/// makes room for a new child.
fn owner_key(child: &Entry, owner: &Kind, primaries: &Informer, gone: bool) -> Option<Key> {
    let reference = child.header.controller()?;
    let group = reference.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    if reference.kind != owner.kind() || group != owner.group() {
        return None;
    }
    let namespace = child.header.key.namespace.clone().filter(|_| owner.is_namespaced());
    let key = Key { namespace, name: Arc::from(reference.name.as_str()) };
    let is_ours = primaries.entry(&key).is_some_and(|entry| entry.header.uid == reference.uid);
    (is_ours || gone).then_some(key)
}
