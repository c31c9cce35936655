//! What a controller declares, made real: a cache for each of its kinds, and what their changes
//! wake. The caches of several namespaces are started here; whoever launches the controller starts
//! the others, and runs the tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::Predicate;
use super::ahead::Ahead;
use super::everything::Everything;
use super::launch::World;
use super::lookup::Lookup;
use super::mapper::Mapper;
use super::reach::{Following, Reach};
use super::related::{Indexed, Related, Role};
use super::source::{self, Finder};
use crate::cache::{Informer, KindCache, Scope};
use crate::context::{Follows, Memories};
use crate::key::Key;
use crate::kind::Kind;
use crate::queue::Queue;

/// What a controller was told about the kinds it deals with.
pub(super) struct Declaration {
    /// The name of the controller.
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    pub(super) filter: Option<Predicate>,
    pub(super) background: Option<Predicate>,
    /// Which primaries, and how much of them.
    pub(super) scope: Scope,
    pub(super) reach: Reach,
    pub(super) related: Vec<Related>,
    pub(super) indexes: Vec<(Kind, Indexed)>,
}

/// The caches of a controller.
pub(super) struct Declared {
    pub(super) primaries: KindCache,
    pub(super) everything: Everything,
    /// Every one of them; what nobody holds stops.
    pub(super) all: Vec<KindCache>,
    /// Those that reconciles read.
    pub(super) caches: BTreeMap<Kind, KindCache>,
    pub(super) uncached: BTreeSet<Kind>,
    /// Where reconciles read the kind of the primaries from another cache than theirs.
    pub(super) ahead: Option<Ahead>,
    /// What the caches call the indexes.
    pub(super) indexes: Arc<BTreeMap<(Kind, String), String>>,
    pub(super) memories: Arc<Memories>,
    pub(super) follows: Arc<Follows>,
    /// What must be in sync before anything runs.
    pub(super) needed: Vec<Informer>,
    /// What the start waits for besides; it may fail for one namespace and work for others.
    pub(super) hoped_for: Vec<Informer>,
    /// What runs beside the workers.
    pub(super) tasks: Vec<BoxFuture<'static, ()>>,
}

impl Declaration {
    /// Makes the caches and connects them with the queue.
    pub(super) fn realize(
        mut self,
        world: &World,
        client: &kube::Client,
        queue: &Queue<Key>,
    ) -> Declared {
        self.cache_what_is_indexed();
        let Self { name, kind, filter, background, scope, reach, related, indexes } = self;
        let memories = Arc::new(Memories::new(world.env.clone()));
        let follows = Follows::new(world.caches.clone(), queue.clone());
        let mut tasks: Vec<BoxFuture<'static, ()>> = Vec::new();

        let primaries = reach.cache(&world.caches, &kind, scope);
        let everything = Everything { primaries: primaries.clone(), filter: filter.clone() };
        let mut all = vec![(kind.clone(), primaries.clone())];
        let mut caches = BTreeMap::from([(kind.clone(), primaries.clone())]);
        let mut uncached = BTreeSet::new();
        let mut wakers = Vec::new();
        for Related { kind: other, role, filter, scope, .. } in related {
            if matches!(role, Role::Known) {
                uncached.insert(other);
                continue;
            }
            let cache = reach.cache(&world.caches, &other, scope);
            keep_the_better(&mut caches, &other, &cache);
            all.push((other.clone(), cache.clone()));
            wakers.push((other, role, filter, cache));
        }
        let names = Arc::new(names(&name, &indexes));
        let read = caches.get(&kind).unwrap_or(&primaries).clone();
        let ahead = Ahead::of(&primaries, &read, &memories);
        primaries.on_event(source::primary(source::Primary {
            ahead: ahead.clone(),
            kind: kind.clone(),
            queue: queue.clone(),
            filter,
            background,
            memories: Arc::clone(&memories),
            follows: Arc::clone(&follows),
        }));
        let lookup = Lookup {
            env: world.env.clone(),
            client: client.clone(),
            kind: kind.clone(),
            primaries: primaries.clone(),
            indexed: read,
            indexes: Arc::clone(&names),
        };
        for (other, role, filter, cache) in wakers {
            let ahead = caches.get(&other).and_then(|read| Ahead::of(&cache, read, &memories));
            let finder = match role {
                Role::Owned { every } => {
                    let (kind, primaries) = (kind.clone(), primaries.clone());
                    Finder::Owner { kind, primaries, every }
                }
                Role::Watched(map) => {
                    let mapper = Mapper::new(other.clone(), map, queue.clone(), lookup.clone());
                    let failures = world.metrics.map_failures(&name);
                    let mapper = mapper.ahead(ahead.clone()).counting(failures);
                    tasks.push(mapper.clone().run().boxed());
                    Finder::Mapped(Box::new(mapper))
                }
                Role::Read | Role::Known => continue,
            };
            cache.on_event(source::secondary(other, finder, filter, queue.clone(), ahead));
        }
        for (kind, cache) in &caches {
            let (kind, follows) = (kind.clone(), Arc::clone(&follows));
            cache.on_event(move |delta| follows.wake(&kind, delta));
        }
        for (kind, index) in indexes {
            let actual = actual_name(&name, &index);
            for (_, cache) in all.iter().filter(|(other, _)| *other == kind) {
                cache.index(&actual, &index.extract);
            }
        }

        let all: Vec<KindCache> = all.into_iter().map(|(_, cache)| cache).collect();
        let (each, one): (Vec<KindCache>, Vec<KindCache>) =
            all.iter().cloned().partition(KindCache::is_each);
        let needed = one.iter().flat_map(KindCache::informers).collect();
        let mut hoped_for = Vec::new();
        if let Reach::Several(namespaces) = reach {
            let related = each.into_iter().skip(usize::from(primaries.is_each())).collect();
            let mut following = Following {
                namespaces,
                caches: world.caches.clone(),
                kind,
                everything: everything.clone(),
                related,
                follows: Arc::clone(&follows),
                queue: queue.clone(),
                known: BTreeSet::new(),
            };
            hoped_for = following.begin();
            tasks.push(following.run().boxed());
        }
        Declared {
            primaries,
            everything,
            ahead,
            all,
            caches,
            uncached,
            indexes: names,
            memories,
            follows,
            needed,
            hoped_for,
            tasks,
        }
    }

    /// An index of a kind that nothing else caches as a whole is a reason to do so.
    fn cache_what_is_indexed(&mut self) {
        for (kind, _) in &self.indexes {
            let cached = |other: &Related| {
                let whole = !other.scope.metadata_only && !matches!(other.role, Role::Known);
                other.kind == *kind && whole
            };
            let is_primary = *kind == self.kind && !self.scope.metadata_only;
            if !is_primary && !self.related.iter().any(cached) {
                self.related.push(Related::read(kind.clone()));
            }
        }
    }
}

/// Of two caches of a kind, reconciles read the one that knows more.
fn keep_the_better(caches: &mut BTreeMap<Kind, KindCache>, kind: &Kind, cache: &KindCache) {
    if caches.get(kind).is_none_or(|kept| kept.worth() < cache.worth()) {
        caches.insert(kind.clone(), cache.clone());
    }
}

/// What the caches call the indexes.
fn names(controller: &str, indexes: &[(Kind, Indexed)]) -> BTreeMap<(Kind, String), String> {
    let named = |(kind, index): &(Kind, Indexed)| {
        ((kind.clone(), index.name.clone()), actual_name(controller, index))
    };
    indexes.iter().map(named).collect()
}

/// Caches are shared, and another controller may mean something else by the same name.
fn actual_name(controller: &str, index: &Indexed) -> String {
    let Indexed { name, is_field, .. } = index;
    if *is_field { name.clone() } else { format!("{controller}/{name}") }
}
