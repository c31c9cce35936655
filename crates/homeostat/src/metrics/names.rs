//! The names of all metrics, as dashboards and alerts have them: one that is missing or new here is a
//! change that users see.

use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;

use super::{ControllerMetrics, Metrics, SourceMetrics, of};
use crate::queue::Queue;
use crate::{Env, Kind};

/// Those of controller-runtime and client-go first, then ours.
const NAMES: [&str; 37] = [
    "controller_runtime_active_workers gauge",
    "controller_runtime_max_concurrent_reconciles gauge",
    "controller_runtime_reconcile counter",
    "controller_runtime_reconcile_errors counter",
    "controller_runtime_reconcile_panics counter",
    "controller_runtime_reconcile_time_seconds histogram",
    "controller_runtime_reconcile_timeouts counter",
    "controller_runtime_terminal_reconcile_errors counter",
    "controller_runtime_webhook_latency_seconds histogram",
    "controller_runtime_webhook_requests counter",
    "controller_runtime_webhook_requests_in_flight gauge",
    "leader_election_master_status gauge",
    "rest_client_request_duration_seconds histogram",
    "rest_client_requests counter",
    "workqueue_adds counter",
    "workqueue_depth gauge",
    "workqueue_longest_running_processor_seconds gauge",
    "workqueue_queue_duration_seconds histogram",
    "workqueue_retries counter",
    "workqueue_unfinished_work_seconds gauge",
    "workqueue_work_duration_seconds histogram",
    "homeostat_cache_objects gauge",
    "homeostat_events_dropped counter",
    "homeostat_hot_loops counter",
    "homeostat_known_children gauge",
    "homeostat_map_failures counter",
    "homeostat_queue_waiting gauge",
    "homeostat_source_failures counter",
    "homeostat_source_lists counter",
    "homeostat_source_panics counter",
    "homeostat_source_silent_seconds gauge",
    "homeostat_source_skipped_objects counter",
    "homeostat_source_synced gauge",
    "homeostat_source_unreadable_objects gauge",
    "homeostat_source_watches counter",
    "homeostat_stale_reads counter",
    "homeostat_unseen_writes gauge",
];

#[test]
fn every_metric_has_its_name_and_there_is_no_other() {
    let sources = SourceMetrics::default();
    let metrics = Metrics::new("127.0.0.1:6443", sources.clone());
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    // A family shows once it has something to show.
    ControllerMetrics::new(&metrics, "c");
    metrics.queue.read("c", &Queue::new(env), std::iter::empty());
    drop((metrics.map_failures("c"), metrics.source_panics("c"), metrics.stale("c")));
    metrics.request(&Method::GET, Some(StatusCode::OK), Duration::ZERO);
    drop(metrics.webhook.asked("/validate"));
    metrics.webhook.answered("/validate", StatusCode::OK, Duration::ZERO);
    let kind = Kind::new("", "v1", "Pod", "pods", true);
    sources.of(&kind);
    let Metrics { workers, waiting, leads, unseen_writes, known_children, .. } = &metrics;
    let SourceMetrics { objects, unreadable, synced, silent, .. } = &sources;
    let gauges = [
        workers,
        waiting,
        leads,
        unseen_writes,
        known_children,
        objects,
        unreadable,
        synced,
        silent,
    ];
    for gauge in gauges {
        drop(gauge.get_or_create(&of("c")));
    }
    let text = metrics.text();
    let mut shown: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let mut expected = NAMES.to_vec();
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(shown, expected, "{text}");
    let sent = "rest_client_requests_total{method=\"GET\",code=\"200\",host=\"127.0.0.1:6443\"} 1";
    assert!(text.contains(sent), "{text}");
}
