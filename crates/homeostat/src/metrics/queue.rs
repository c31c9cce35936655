//! The metrics of work queues, under the names that client-go gave them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Label;
use crate::key::Key;
use crate::queue::Queue;

/// The upper bounds of the histograms, in seconds: those of client-go.
const SECONDS: [f64; 12] =
    [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];

type Times = Family<[Label; 2], Histogram, fn() -> Histogram>;
type Seconds = Family<[Label; 2], Gauge<f64, AtomicU64>>;

/// What is counted of the queues of all controllers.
#[derive(Clone)]
pub(crate) struct QueueMetrics {
    depth: Family<[Label; 2], Gauge>,
    adds: Family<[Label; 2], Counter>,
    pub(super) retries: Family<[Label; 2], Counter>,
    pub(super) waited: Times,
    pub(super) worked: Times,
    unfinished: Seconds,
    longest: Seconds,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        let times = || Times::new_with_constructor(|| Histogram::new(SECONDS));
        Self {
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            waited: times(),
            worked: times(),
            unfinished: Family::default(),
            longest: Family::default(),
        }
    }
}

impl QueueMetrics {
    pub(super) fn register(&self, all: &mut Registry) {
        let name = |name: &str| format!("workqueue_{name}");
        all.register(name("depth"), "Keys that are ready", self.depth.clone());
        all.register(name("adds"), "How often a key became ready", self.adds.clone());
        all.register(
            name("retries"),
            "How often a key had to wait after a failure",
            self.retries.clone(),
        );
        all.register(
            name("queue_duration_seconds"),
            "How long keys were ready before a worker took them",
            self.waited.clone(),
        );
        all.register(
            name("work_duration_seconds"),
            "How long workers had a key",
            self.worked.clone(),
        );
        all.register(
            name("unfinished_work_seconds"),
            "How long the keys that are with a worker have been there, together",
            self.unfinished.clone(),
        );
        all.register(
            name("longest_running_processor_seconds"),
            "How long the longest of them has been there",
            self.longest.clone(),
        );
    }

    /// Takes the readings that are not counted as they happen.
    pub(crate) fn read(
        &self,
        controller: &str,
        queue: &Queue<Key>,
        unfinished: impl Iterator<Item = Duration>,
    ) {
        let labels = of(controller);
        let depth = i64::try_from(queue.len()).unwrap_or(i64::MAX);
        self.depth.get_or_create(&labels).set(depth);
        self.adds.get_or_create(&labels).inner().store(queue.adds(), Ordering::Relaxed);
        let count = |(sum, longest): (f64, f64), time: Duration| {
            (sum + time.as_secs_f64(), longest.max(time.as_secs_f64()))
        };
        let (sum, longest) = unfinished.fold((0.0, 0.0), count);
        self.unfinished.get_or_create(&labels).set(sum);
        self.longest.get_or_create(&labels).set(longest);
    }
}

/// The labels of a queue: its name is that of its controller.
pub(super) fn of(controller: &str) -> [Label; 2] {
    [("name", controller.to_owned()), ("controller", controller.to_owned())]
}
