//! The metrics of one controller, found once: a reconcile counts without asking for them by name.
//! They are there from the start, so that a rate can be taken of the first error.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::{Busy, Metrics, of, queue};
use crate::journal::Ending;
use crate::outcome::Outcome;

/// What is counted of the reconciles of one controller and of its queue.
#[derive(Debug)]
pub(crate) struct ControllerMetrics {
    done: Counter,
    again: Counter,
    later: Counter,
    failed: Counter,
    errors: Counter,
    terminal_errors: Counter,
    times: Histogram,
    active: Gauge,
    waited: Histogram,
    worked: Histogram,
    /// Reconciles that panicked.
    pub(crate) panics: Counter,
    /// Reconciles over their time limit.
    pub(crate) timeouts: Counter,
    /// Loops that were found.
    pub(crate) hot_loops: Counter,
    /// Keys that had to wait after a failure.
    pub(crate) retries: Counter,
}

impl ControllerMetrics {
    /// Those of the controller of that name.
    pub(crate) fn new(all: &Metrics, controller: &str) -> Self {
        let result = |result: &str| {
            let [controller] = of(controller);
            all.reconciles.get_or_create_owned(&[controller, ("result", result.to_owned())])
        };
        let (name, queue_name) = (of(controller), queue::of(controller));
        Self {
            done: result("success"),
            again: result("requeue"),
            later: result("requeue_after"),
            failed: result("error"),
            errors: all.errors.get_or_create_owned(&name),
            terminal_errors: all.terminal_errors.get_or_create_owned(&name),
            times: all.times.get_or_create_owned(&name),
            active: all.active.get_or_create_owned(&name),
            waited: all.queue.waited.get_or_create_owned(&queue_name),
            worked: all.queue.worked.get_or_create_owned(&queue_name),
            panics: all.panics.get_or_create_owned(&name),
            timeouts: all.timeouts.get_or_create_owned(&name),
            hot_loops: all.hot_loops.get_or_create_owned(&name),
            retries: all.queue.retries.get_or_create_owned(&queue_name),
        }
    }

    /// One more worker is busy, until the guard is dropped.
    pub(crate) fn busy(&self) -> Busy {
        Busy::new(&self.active)
    }

    /// A reconcile has ended.
    pub(crate) fn ended(&self, ending: &Ending, took: Duration) {
        self.times.observe(took.as_secs_f64());
        let result = match ending {
            Ending::Ok(Outcome::Done) => &self.done,
            Ending::Ok(Outcome::Requeue) | Ending::Conflict(_) | Ending::NotLeader => &self.again,
            Ending::Ok(_) => &self.later,
            Ending::Failed(_) | Ending::Terminal(_) => &self.failed,
        };
        result.inc();
        if matches!(ending, Ending::Failed(_) | Ending::Terminal(_)) {
            self.errors.inc();
        }
        if matches!(ending, Ending::Terminal(_)) {
            self.terminal_errors.inc();
        }
    }

    /// A key was ready for `waited` and then with a worker for `worked`.
    pub(crate) fn worked(&self, waited: Duration, worked: Duration) {
        self.waited.observe(waited.as_secs_f64());
        self.worked.observe(worked.as_secs_f64());
    }
}
