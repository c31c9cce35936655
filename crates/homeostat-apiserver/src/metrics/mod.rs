//! What a server counts about itself, in a registry of its own: two servers in one process never
//! mix. The names and labels are kube-apiserver's, so that dashboards and alerts made for it work;
//! what is ours begins with `homeostat_`.

mod labels;
mod measure;
mod text;

use std::fmt;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry as Metered;

use crate::kinds::Kind;
use crate::registry::{Registry, convert};
use labels::{Answered, Asked, Plain};
pub(crate) use labels::{Sort, verb};
pub(crate) use measure::Measure;
pub(crate) use text::{CLASSIC, OPEN, classic};

/// The upper bounds of the times of requests, in seconds.
const SECONDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// The upper bounds of the sizes of answers.
const BYTES: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

type Label<const N: usize> = [(&'static str, String); N];
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Everything that is counted.
pub(crate) struct Metrics {
    registered: Metered,
    requests: Family<Answered, Counter>,
    durations: Histograms<Asked>,
    sizes: Histograms<Plain>,
    long: Family<Plain, Gauge>,
    reading: Gauge,
    writing: Gauge,
    watch_events: Family<Label<3>, Counter>,
    objects: Family<Label<2>, Gauge>,
    objects_by_name: Family<Label<1>, Gauge>,
    revision: Gauge,
    history: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registered: Metered::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            sizes: Family::new_with_constructor(|| Histogram::new(BYTES)),
            long: Family::default(),
            reading: Gauge::default(),
            writing: Gauge::default(),
            watch_events: Family::default(),
            objects: Family::default(),
            objects_by_name: Family::default(),
            revision: Gauge::default(),
            history: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        // Counters get `_total` from the encoder.
        let all = &mut self.registered;
        let name = |name: &str| format!("apiserver_{name}");
        all.register(
            name("request"),
            "Requests by what they asked and how they were answered",
            self.requests.clone(),
        );
        all.register(
            name("request_duration_seconds"),
            "How long requests took",
            self.durations.clone(),
        );
        all.register(
            name("response_sizes"),
            "The sizes of answers to reads in bytes",
            self.sizes.clone(),
        );
        all.register(
            name("longrunning_requests"),
            "Watches and connections that are open",
            self.long.clone(),
        );
        let busy: Family<Label<1>, Gauge> = Family::default();
        for (kind, gauge) in [("readOnly", &mut self.reading), ("mutating", &mut self.writing)] {
            *gauge = busy.get_or_create_owned(&[("request_kind", kind.to_owned())]);
        }
        all.register(name("current_inflight_requests"), "Requests under way", busy);
        all.register(name("watch_events"), "Events sent to watchers", self.watch_events.clone());
        all.register(name("resource_objects"), "Objects by resource", self.objects.clone());
        all.register(
            name("storage_objects"),
            "Objects by resource, under the older name",
            self.objects_by_name.clone(),
        );
        all.register(
            "homeostat_store_revision",
            "The revision that readers see",
            self.revision.clone(),
        );
        all.register(
            "homeostat_store_history_bytes",
            "Bytes kept for the past alone",
            self.history.clone(),
        );
    }

    /// The counter of the events sent to watchers of a kind.
    pub(crate) fn watch_events(&self, kind: &Kind) -> Counter {
        let Kind { group, version, plural, .. } = kind;
        let labels = [("group", group), ("version", version), ("resource", plural)];
        self.watch_events.get_or_create_owned(&labels.map(|(name, value)| (name, value.clone())))
    }

    /// Everything as text, as it is right now.
    pub(crate) fn text(&self, registry: &Registry) -> String {
        self.look(registry);
        text::open(&self.registered)
    }

    /// Looks up what nobody counts.
    fn look(&self, registry: &Registry) {
        let figures = registry.store.figures();
        self.revision.set(i64::try_from(figures.revision).unwrap_or(i64::MAX));
        self.history.set(i64::try_from(figures.history_bytes).unwrap_or(i64::MAX));
        let held = registry.store.snapshot();
        let held: std::collections::BTreeMap<&str, usize> =
            held.resources().map(|(name, count)| (&**name, count)).collect();
        self.objects.clear();
        self.objects_by_name.clear();
        for kind in registry.catalogue().all().iter().filter(|kind| kind.is_stored()) {
            let count = held.get(&*convert::resource(kind)).copied().unwrap_or(0);
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let labels = [("group", kind.group.clone()), ("resource", kind.plural.clone())];
            self.objects.get_or_create(&labels).set(count);
            self.objects_by_name.get_or_create(&[("resource", kind.resource())]).set(count);
        }
    }

    /// Forgets what was counted.
    pub(crate) fn reset(&self) {
        self.requests.clear();
        self.durations.clear();
        self.sizes.clear();
        self.watch_events.clear();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
