//! The metrics of webhooks, under controller-runtime's names.

use std::time::Duration;

use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{Busy, Histograms, Label, SECONDS};

/// What is counted of the webhooks, by path.
#[derive(Clone)]
pub(crate) struct WebhookMetrics {
    requests: Family<[Label; 2], Counter>,
    in_flight: Family<[Label; 1], Gauge>,
    latency: Histograms,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        let latency: Histograms = Family::new_with_constructor(|| Histogram::new(SECONDS));
        Self { requests: Family::default(), in_flight: Family::default(), latency }
    }
}

impl WebhookMetrics {
    pub(super) fn register(&self, all: &mut Registry) {
        let name = |name: &str| format!("controller_runtime_webhook_{name}");
        all.register(name("requests"), "Questions by path and code", self.requests.clone());
        all.register(
            name("requests_in_flight"),
            "Questions without an answer yet",
            self.in_flight.clone(),
        );
        all.register(name("latency_seconds"), "How long answers took", self.latency.clone());
    }

    /// A question is being answered, until the guard is dropped.
    pub(crate) fn asked(&self, path: &str) -> Busy {
        Busy::new(&self.in_flight.get_or_create(&[("webhook", path.to_owned())]))
    }

    pub(crate) fn answered(&self, path: &str, code: StatusCode, took: Duration) {
        let labels = [("webhook", path.to_owned()), ("code", code.as_u16().to_string())];
        self.requests.get_or_create(&labels).inc();
        self.latency.get_or_create(&[("webhook", path.to_owned())]).observe(took.as_secs_f64());
    }
}
