//! One key's trouble is its own: panics, time-outs, objects that go, managers that stop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::journal::Record;
use homeostat::kube::Api;
use homeostat::{Backoff, Context, Controller, Manager, Namespaces, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use tokio::sync::Notify;

use crate::cluster::{config, endings, on_cluster};
use crate::contract::{failure, scripted};
use crate::faults::{Fault, faulty, is};
use crate::namespaces;

#[test]
fn a_panic_is_a_failure_of_its_key_alone() {
    on_cluster(async |cluster| {
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let reconcile = async |object: Arc<ConfigMap>, _: Context<ConfigMap>| {
            assert!(object.metadata.name.as_deref() != Some("a"), "a is bad");
            Ok(Outcome::Done)
        };
        let controller = Controller::new(reconcile).backoff(Backoff::default().exact());
        let running = cluster.start(controller.concurrency(1)).await;
        let records = cluster.runs(&running.journal(), 3).await;
        assert_eq!(
            endings(&records),
            [
                "failed: reconcile panicked: a is bad",
                "done",
                "failed: reconcile panicked: a is bad",
            ]
        );
        cluster.assert_apart(records[0].time, records[2].time, Duration::from_secs(1));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_reconcile_that_takes_too_long_is_dropped_and_tried_again() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let reconcile =
            async |_: Arc<ConfigMap>, _: Context<ConfigMap>| std::future::pending().await;
        let controller = Controller::new(reconcile);
        let limit = Duration::from_secs(1);
        let backoff = Backoff::default().exact();
        let running = cluster.start(controller.timeout(limit).backoff(backoff)).await;
        let records = cluster.runs(&running.journal(), 2).await;
        assert_eq!(endings(&records)[0], "failed: reconcile took longer than 1s");
        let line = "controller_runtime_reconcile_timeouts_total{controller=\"configmap\"} 2";
        assert!(running.metrics().contains(line), "{}", running.metrics());
        cluster.assert_apart(records[0].time, records[1].time, Duration::from_secs(2));
    });
}

#[test]
fn an_answer_that_stalls_after_its_header_costs_one_reconcile_its_time() {
    on_cluster(async |cluster| {
        async fn look(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            if config.data.as_ref().is_some_and(|data| data["value"] == "by itself") {
                let namespace = context.key().namespace().unwrap();
                Api::<Secret>::namespaced(context.client().clone(), namespace).get("x").await?;
            } else {
                context.get::<Secret>("x").await?;
            }
            Ok(Outcome::Done)
        }
        for (name, value) in [("a", "by the context"), ("b", "by itself")] {
            cluster.create(&config(name, value)).await;
        }
        let client = faulty(&cluster.client, |request| {
            is(request, "GET", "/secrets/x").then_some(Fault::Stall)
        });
        let manager = Manager::new(client, cluster.env.clone());
        let [request, whole] = [1, 3].map(Duration::from_secs);
        let controller = Controller::new(look).request_timeout(request).timeout(whole);
        let manager = manager.with(controller.namespace(&cluster.namespace));
        let running = cluster.start_manager(manager).await;
        let ended = |records: &[Arc<Record>], name: &str| {
            let of = records.iter().find(|record| record.key.name() == name);
            of.map(|record| record.result.to_string())
        };
        let both = |all: &[Arc<Record>]| ["a", "b"].iter().all(|name| ended(all, name).is_some());
        let records = cluster.until_recorded(&running.journal(), both).await;
        let said = ended(&records, "a").unwrap();
        assert!(said.contains("did not answer within 1s"), "{said}");
        assert_eq!(ended(&records, "b").unwrap(), "failed: reconcile took longer than 3s");
        running.stop().await.unwrap();
    });
}

#[test]
fn one_key_is_never_on_two_workers_and_others_run_beside_it() {
    on_cluster(async |cluster| {
        for name in ["a", "b", "c"] {
            cluster.create(&config(name, "1")).await;
        }
        let busy: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
        let most = Arc::new(AtomicUsize::new(0));
        let (shared, widest) = (busy.clone(), most.clone());
        let reconcile = move |object: Arc<ConfigMap>, context: Context<ConfigMap>| {
            let (busy, most) = (shared.clone(), widest.clone());
            async move {
                let name = object.metadata.name.clone().unwrap();
                {
                    let mut busy = busy.lock().unwrap();
                    *busy.entry(name.clone()).or_default() += 1;
                    assert_eq!(busy[&name], 1, "{name} runs twice");
                    let now: u32 = busy.values().sum();
                    most.fetch_max(now as usize, Ordering::SeqCst);
                }
                context.env().sleep(Duration::from_millis(500)).await;
                *busy.lock().unwrap().get_mut(&name).unwrap() -= 1;
                Ok(Outcome::Done)
            }
        };
        let running = cluster.start(Controller::new(reconcile)).await;
        for value in 0..5 {
            cluster
                .patch::<ConfigMap>("a", json!({ "data": { "value": value.to_string() } }))
                .await;
            cluster.env.sleep(Duration::from_millis(100)).await;
        }
        let records = cluster.runs(&running.journal(), 4).await;
        assert!(endings(&records).iter().all(|ending| ending == "done"), "{}", running.journal());
        assert!(most.load(Ordering::SeqCst) >= 3);
    });
}

#[test]
fn an_object_that_is_gone_is_not_reconciled_and_its_failures_are_forgotten() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(scripted(|_| failure())).await;
        let journal = running.journal();
        cluster.runs(&journal, 3).await;
        cluster.api::<ConfigMap>().delete("a", &Default::default()).await.unwrap();
        cluster.nothing_more().await;
        let before = journal.total();
        assert_eq!(before, 3);
        cluster.create(&config("a", "1")).await;
        let records = cluster.runs(&journal, 5).await;
        cluster.assert_apart(records[3].time, records[4].time, Duration::from_secs(1));
    });
}

#[test]
fn not_finding_the_primary_is_no_error() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let reconcile = async |_: Arc<ConfigMap>, context: Context<ConfigMap>| {
            let namespace = context.key().namespace().unwrap();
            let api: homeostat::kube::Api<ConfigMap> =
                homeostat::kube::Api::namespaced(context.client().clone(), namespace);
            api.delete("a", &Default::default()).await?;
            api.get("a").await?;
            Ok(Outcome::Done)
        };
        let controller = Controller::new(reconcile);
        let running = cluster.start(controller).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
        cluster.nothing_more().await;
        assert_eq!(running.journal().total(), 1);
    });
}

#[test]
fn a_stop_lets_a_running_reconcile_finish_and_starts_no_other() {
    on_cluster(async |cluster| {
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let reconcile = async |_: Arc<ConfigMap>, context: Context<ConfigMap>| {
            context.env().sleep(Duration::from_secs(2)).await;
            Ok(Outcome::Done)
        };
        let controller = Controller::new(reconcile);
        let running = cluster.start(controller.concurrency(1)).await;
        let journal = running.journal();
        cluster.env.sleep(Duration::from_millis(200)).await;
        running.stop().await.unwrap();
        assert_eq!(endings(&journal.records()), ["done"]);
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 1);
    });
}

#[test]
fn a_stop_drops_what_does_not_finish_within_the_grace() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let reconcile =
            async |_: Arc<ConfigMap>, _: Context<ConfigMap>| std::future::pending().await;
        let controller = Controller::new(reconcile);
        let manager = cluster.manager().grace(Duration::from_secs(1));
        let running = manager.with(controller.namespace(&cluster.namespace)).start().await.unwrap();
        cluster.env.sleep(Duration::from_millis(200)).await;
        let error = running.stop().await.unwrap_err();
        assert!(error.to_string().contains("configmap"), "{error}");
    });
}

#[test]
fn a_namespace_with_many_objects_holds_up_no_other() {
    on_cluster(async |cluster| {
        cluster.create(&config("busy", "1")).await;
        let other = namespaces::another(&cluster).await;
        let (gate, opened) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (held, is_open) = (Arc::clone(&gate), Arc::clone(&opened));
        let wait = move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let (gate, is_open) = (Arc::clone(&held), Arc::clone(&is_open));
            async move {
                if !is_open.swap(true, Ordering::SeqCst) {
                    gate.notified().await;
                }
                Ok(Outcome::Done)
            }
        };
        let both = Namespaces::new([&*cluster.namespace, &*other]);
        let controller = Controller::new(wait).concurrency(1).namespaces(&both);
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        // The only worker is with the first object while all others come.
        for number in 0..20 {
            cluster.create(&config(&format!("many-{number}"), "1")).await;
        }
        let there: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &other);
        there.create(&Default::default(), &config("alone", "1")).await.unwrap();
        let queued = async {
            let depth = "workqueue_depth{name=\"configmap\",controller=\"configmap\"} 21\n";
            while !running.metrics().contains(depth) {
                cluster.env.sleep(Duration::from_millis(50)).await;
            }
        };
        cluster.env.timeout(Duration::from_secs(30), queued).await.unwrap();
        gate.notify_one();
        let records = cluster.runs(&running.journal(), 22).await;
        let names: Vec<&str> = records.iter().map(|record| record.key.name()).collect();
        let turn = names.iter().position(|name| *name == "alone").unwrap();
        assert!(turn <= 2, "the first is with the worker, then they take turns: {names:?}");
        running.stop().await.unwrap();
    });
}
