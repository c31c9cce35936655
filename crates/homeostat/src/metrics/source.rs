//! The metrics of sources: what was listed, what failed, what was left out, kind by kind.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{Counters, Gauges};
use crate::kind::Kind;

/// What is counted of the sources of one set of caches; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct SourceMetrics {
    lists: Counters<1>,
    watches: Counters<1>,
    failures: Counters<1>,
    skipped: Counters<1>,
    /// Read when somebody asks.
    pub(crate) objects: Gauges,
    pub(crate) unreadable: Gauges,
    pub(crate) synced: Gauges,
    pub(crate) silent: Gauges,
    /// The kinds that were read of when somebody asked last.
    read_of: Arc<Mutex<BTreeSet<String>>>,
}

/// What is counted of one source as it happens.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceCounts {
    /// Lists that were begun: the first, and one for each gap that a watch could not bridge.
    pub(crate) lists: Counter,
    /// Watches that the server has opened.
    pub(crate) watches: Counter,
    /// How often it did not work.
    pub(crate) failures: Counter,
    /// Objects that could not be read.
    pub(crate) skipped: Counter,
}

impl SourceMetrics {
    /// What was read of kinds that nobody follows any more is not shown any longer.
    pub(crate) fn show_only(&self, followed: BTreeSet<String>) {
        let mut read_of = self.read_of.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in read_of.difference(&followed) {
            for gauges in [&self.objects, &self.unreadable, &self.synced, &self.silent] {
                gauges.remove(&[("kind", gone.clone())]);
            }
        }
        *read_of = followed;
    }

    /// Those of one kind.
    pub(crate) fn of(&self, kind: &Kind) -> SourceCounts {
        let of = |family: &Counters<1>| family.get_or_create_owned(&[("kind", kind.to_string())]);
        SourceCounts {
            lists: of(&self.lists),
            watches: of(&self.watches),
            failures: of(&self.failures),
            skipped: of(&self.skipped),
        }
    }

    pub(super) fn register(&self, all: &mut Registry) {
        let name = |name: &str| format!("homeostat_source_{name}");
        let counted: [(&str, &str, &Family<_, Counter>); 4] = [
            ("lists", "Lists that were begun, the first included", &self.lists),
            ("watches", "Watches that were opened", &self.watches),
            ("failures", "How often a source did not work", &self.failures),
            ("skipped_objects", "Objects that could not be read", &self.skipped),
        ];
        for (what, help, family) in counted {
            all.register(name(what), help, family.clone());
        }
        all.register("homeostat_cache_objects", "Objects in the cache", self.objects.clone());
        all.register(
            name("unreadable_objects"),
            "Objects whose newest version could not be read: the cache has an older one, or none",
            self.unreadable.clone(),
        );
        all.register(name("synced"), "1 while the cache follows the API", self.synced.clone());
        all.register(
            name("silent_seconds"),
            "How long the quietest watch has said nothing",
            self.silent.clone(),
        );
    }
}
