//! How many reconciles run at once: as many as are allowed, with no more workers than are needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homeostat::{Context, Controller, Outcome};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::runtime::Handle;
use tokio::sync::Barrier;

use crate::cluster::{config, on_cluster};

#[test]
fn as_many_reconciles_as_are_allowed_run_at_once() {
    on_cluster(async |cluster| {
        for number in 0..6 {
            cluster.create(&config(&number.to_string(), "1")).await;
        }
        let three = Arc::new(Barrier::new(3));
        let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let reconcile = move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let (three, busy, seen) = (three.clone(), busy.clone(), seen.clone());
            async move {
                seen.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Nobody leaves before three are there.
                three.wait().await;
                busy.fetch_sub(1, Ordering::SeqCst);
                Ok(Outcome::Done)
            }
        };
        let controller = Controller::new(reconcile).concurrency(3).namespace(&cluster.namespace);
        let running = cluster.start(controller).await;
        let six = cluster.runs(&running.journal(), 6).await;
        assert!(six.iter().all(|run| run.result.to_string() == "done"), "{}", running.journal());
        assert_eq!(most.load(Ordering::SeqCst), 3);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_limit_that_is_never_reached_costs_no_worker() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let done = async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Outcome::Done);
        let controller = Controller::new(done).concurrency(1000).namespace(&cluster.namespace);
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let running = cluster.start(controller).await;
        cluster.runs(&running.journal(), 1).await;
        let after = tasks();
        assert!(after < before + 50, "{before} tasks, then {after}");
        running.stop().await.unwrap();
    });
}
