//! What a manager counts, in a registry of its own: nothing is global, two managers never mix.
//!
//! The names are those of Go's controller-runtime where it has them, so that dashboards and alerts
//! made for it work; what is ours begins with `homeostat_`. What the system counts is in `process`.

mod controller;
#[cfg(test)]
mod names;
pub(crate) mod process;
mod queue;
mod shifts;
mod source;
mod webhook;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub(crate) use controller::ControllerMetrics;
pub(crate) use queue::QueueMetrics;
pub(crate) use shifts::Shifts;
pub(crate) use source::{SourceCounts, SourceMetrics};
pub(crate) use webhook::WebhookMetrics;

/// The upper bounds of the histogram of reconcile times, in seconds.
const SECONDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

type Label = (&'static str, String);
type Counters<const N: usize> = Family<[Label; N], Counter>;
type Gauges = Family<[Label; 1], Gauge>;
type Histograms = Family<[Label; 1], Histogram, fn() -> Histogram>;

/// The metrics of one manager; cheap to clone.
///
/// ```
/// use homeostat::prometheus_client::metrics::counter::Counter;
/// use homeostat::{Manager, Metrics};
///
/// fn count_orders(manager: &Manager) -> Counter {
///     let orders: Counter = Counter::default();
///     let shown = orders.clone();
///     manager.metrics().register(|registry| registry.register("orders", "Orders seen", shown));
///     orders
/// }
/// # homeostat_testing::on_cluster(async |cluster| {
/// #     let manager = cluster.manager();
/// #     count_orders(&manager).inc();
/// #     let running = manager.start().await.unwrap();
/// #     assert!(running.metrics().contains("orders_total 1"));
/// #     running.stop().await.unwrap();
/// # });
/// ```
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    reconciles: Counters<2>,
    errors: Counters<1>,
    terminal_errors: Counters<1>,
    panics: Counters<1>,
    timeouts: Counters<1>,
    times: Histograms,
    active: Gauges,
    hot_loops: Counters<1>,
    /// The host that requests go to; empty when it is not known.
    host: Arc<str>,
    requests: Counters<3>,
    request_times: Histograms,
    pub(crate) workers: Gauges,
    pub(crate) queue: QueueMetrics,
    pub(crate) webhook: WebhookMetrics,
    pub(crate) waiting: Gauges,
    pub(crate) leads: Gauges,
    pub(crate) sources: SourceMetrics,
    pub(crate) events_dropped: Counter,
    map_failures: Counters<1>,
    source_panics: Counters<1>,
    stale: Counters<1>,
    pub(crate) unseen_writes: Gauges,
    pub(crate) known_children: Gauges,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new("", SourceMetrics::default())
    }
}

impl Metrics {
    /// The metrics of a manager whose requests go to `host` and whose sources are counted in `sources`.
    pub(crate) fn new(host: &str, sources: SourceMetrics) -> Self {
        let times: Histograms = Family::new_with_constructor(|| Histogram::new(SECONDS));
        let request_times: Histograms = Family::new_with_constructor(|| Histogram::new(SECONDS));
        let metrics = Self {
            registry: Arc::default(),
            reconciles: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            times,
            request_times,
            active: Family::default(),
            hot_loops: Family::default(),
            host: Arc::from(host),
            requests: Family::default(),
            workers: Family::default(),
            queue: QueueMetrics::default(),
            webhook: WebhookMetrics::default(),
            waiting: Family::default(),
            leads: Family::default(),
            sources,
            events_dropped: Counter::default(),
            map_failures: Family::default(),
            source_panics: Family::default(),
            stale: Family::default(),
            unseen_writes: Family::default(),
            known_children: Family::default(),
        };
        metrics.register_all();
        metrics
    }

    /// How often a map of that controller had no answer.
    pub(crate) fn map_failures(&self, controller: &str) -> Counter {
        self.map_failures.get_or_create_owned(&of(controller))
    }

    /// How often a source of that controller outside the API panicked.
    pub(crate) fn source_panics(&self, controller: &str) -> Counter {
        self.source_panics.get_or_create_owned(&of(controller))
    }

    /// How often a reconcile of that controller waited for a cache in vain.
    pub(crate) fn stale(&self, controller: &str) -> Counter {
        self.stale.get_or_create_owned(&of(controller))
    }

    fn register_all(&self) {
        // Counters get `_total` from the encoder.
        let all = &mut *self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |name: &str| format!("controller_runtime_{name}");
        all.register(name("reconcile"), "Reconciles by their result", self.reconciles.clone());
        all.register(name("reconcile_errors"), "Reconciles that failed", self.errors.clone());
        all.register(
            name("terminal_reconcile_errors"),
            "Reconciles that failed for good",
            self.terminal_errors.clone(),
        );
        all.register(name("reconcile_panics"), "Reconciles that panicked", self.panics.clone());
        all.register(
            name("reconcile_timeouts"),
            "Reconciles over their time limit",
            self.timeouts.clone(),
        );
        all.register(
            name("reconcile_time_seconds"),
            "How long reconciles took",
            self.times.clone(),
        );
        all.register(
            name("max_concurrent_reconciles"),
            "How many workers there are",
            self.workers.clone(),
        );
        all.register(name("active_workers"), "How many workers are busy", self.active.clone());
        all.register(
            "homeostat_hot_loops",
            "Objects found to be reconciled or written without end",
            self.hot_loops.clone(),
        );
        all.register(
            "rest_client_requests",
            "Requests by method, answer and host, each try",
            self.requests.clone(),
        );
        all.register(
            "rest_client_request_duration_seconds",
            "How long requests took until they were answered, each try",
            self.request_times.clone(),
        );
        self.queue.register(all);
        self.webhook.register(all);
        all.register("homeostat_queue_waiting", "Keys that wait for a time", self.waiting.clone());
        all.register(
            "leader_election_master_status",
            "1 while this process holds the lease",
            self.leads.clone(),
        );
        self.sources.register(all);
        all.register(
            "homeostat_map_failures",
            "How often a map had no answer and was asked again",
            self.map_failures.clone(),
        );
        all.register(
            "homeostat_source_panics",
            "How often a source outside the API panicked and was asked again",
            self.source_panics.clone(),
        );
        all.register(
            "homeostat_stale_reads",
            "How often a reconcile waited for a cache in vain",
            self.stale.clone(),
        );
        all.register(
            "homeostat_unseen_writes",
            "Writes that the caches may not show yet",
            self.unseen_writes.clone(),
        );
        all.register(
            "homeostat_known_children",
            "Children that are remembered as they were applied",
            self.known_children.clone(),
        );
        all.register(
            "homeostat_events_dropped",
            "Events that were lost",
            self.events_dropped.clone(),
        );
    }

    /// Adds metrics of your own to what [`crate::Running::metrics`] shows.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Everything, as OpenMetrics text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a string fails only if a metric of the user's does.
        if encode(&mut text, &registry).is_err() {
            tracing::warn!("some metrics could not be written");
        }
        text
    }

    /// A request was answered with `code`, or not at all.
    pub(crate) fn request(
        &self,
        method: &http::Method,
        code: Option<http::StatusCode>,
        took: Duration,
    ) {
        self.request_times
            .get_or_create(&[("verb", method.to_string())])
            .observe(took.as_secs_f64());
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.as_u16().to_string());
        let (method, host) = (method.to_string(), self.host.to_string());
        let labels = [("method", method), ("code", code), ("host", host)];
        self.requests.get_or_create(&labels).inc();
    }
}

/// Somebody at work; whoever is abandoned counts as idle too.
#[derive(Debug)]
pub(crate) struct Busy(Gauge);

impl Busy {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The label of a controller.
pub(crate) fn of(controller: &str) -> [Label; 1] {
    [("controller", controller.to_owned())]
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
