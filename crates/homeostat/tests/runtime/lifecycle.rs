//! What a manager runs besides controllers, in which order things begin and end, and what it says
//! of its queues.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::manager::Runnable;
use homeostat::{Context, Controller, Error, Lease, Manager, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio::sync::Notify;

use crate::children::mirror;
use crate::cluster::{config, idle, on_cluster};
use crate::faults::{Fault, faulty, is};

#[test]
fn a_runnable_begins_with_full_caches_and_ends_within_the_grace() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let notes = order.clone();
        let runnable = Runnable::new("sweep", move |work| {
            let notes = notes.clone();
            async move {
                let cached: usize = work.caches().informers().iter().map(|one| one.len()).sum();
                notes.lock().unwrap().push(format!("begins with {cached}"));
                work.stopping().await;
                work.env().sleep(Duration::from_secs(1)).await;
                notes.lock().unwrap().push("ends".to_owned());
                Ok(())
            }
        });
        let controller = Controller::new(idle::<ConfigMap>).namespace(&cluster.namespace);
        let manager = cluster.manager().with(controller).with_runnable(runnable);
        let running = cluster.start_manager(manager).await;
        cluster.runs(&running.journal(), 1).await;
        assert!(running.health().to_string().contains("ok runnable sweep\n"));
        running.stop().await.unwrap();
        let order = order.lock().unwrap().clone();
        assert!(order[0] != "begins with 0" && order[1] == "ends", "{order:?}");
    });
}

#[test]
fn a_runnable_that_does_not_end_is_named_and_dropped() {
    on_cluster(async |cluster| {
        let stuck = Runnable::new("stuck", |_| std::future::pending::<Result<()>>());
        let manager = cluster.manager().with_runnable(stuck).grace(Duration::from_secs(2));
        let error = manager.start().await.unwrap().stop().await.unwrap_err();
        assert_eq!(error.to_string(), "stuck did not finish within 2s: dropped");
        let twice = || Runnable::new("twice", |_| async { Ok(()) });
        let manager = cluster.manager().with_runnable(twice()).with_runnable(twice());
        let error = manager.start().await.unwrap_err();
        assert!(error.to_string().contains("`twice`"), "{error}");
    });
}

#[test]
fn a_runnable_that_fails_or_panics_ends_the_manager_with_its_error() {
    on_cluster(async |cluster| {
        let fails = Runnable::new("feed", |_| async { Err(Error::transient("no more")) });
        let manager = cluster.manager().with_runnable(fails);
        let error = manager.run_until(std::future::pending()).await.unwrap_err();
        assert_eq!(error.to_string(), "feed failed: no more");

        async fn oh() -> Result<()> {
            panic!("oh")
        }
        let panics = Runnable::new("feed", |_| oh());
        let running = cluster.manager().with_runnable(panics).start().await.unwrap();
        assert_eq!(running.failed().await.to_string(), "feed failed: it panicked: oh");
        assert!(running.health().to_string().starts_with("not ok runnable feed: "));
        running.stop().await.unwrap();
    });
}

#[test]
fn leader_work_runs_in_each_term_and_writes_nothing_outside() {
    on_cluster(async |cluster| {
        let cut = Arc::new(AtomicBool::new(false));
        let flag = cut.clone();
        let client = faulty(&cluster.client, move |request| {
            let renews = is(request, "PATCH", "/leases/") || is(request, "GET", "/leases/");
            (renews && flag.load(Ordering::SeqCst)).then_some(Fault::Hang)
        });
        let terms = Arc::new(AtomicUsize::new(0));
        let (count, leaked) = (terms.clone(), Arc::new(Mutex::new(None)));
        let leak = leaked.clone();
        let work = Runnable::new("sweep", move |work| {
            count.fetch_add(1, Ordering::SeqCst);
            *leak.lock().unwrap() = Some(work.client().clone());
            async move {
                work.stopping().await;
                Ok(())
            }
        });
        let [duration, deadline, retry] = [3000, 2000, 500].map(Duration::from_millis);
        let lease = Lease::new("one").namespace(&cluster.namespace).identity("us");
        let manager = Manager::new(client, cluster.env.clone());
        let manager = manager.lease(lease.terms(duration, deadline, retry));
        let running = manager.with_runnable(work.while_leading()).start().await.unwrap();
        running.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(1)).await;
        assert_eq!(terms.load(Ordering::SeqCst), 1);
        cut.store(true, Ordering::SeqCst);
        cluster.env.sleep(Duration::from_secs(5)).await;
        assert!(!running.is_leading());
        let client = leaked.lock().unwrap().clone().unwrap();
        let api = homeostat::kube::Api::<ConfigMap>::namespaced(client, &cluster.namespace);
        let refused = api.create(&Default::default(), &config("late", "1")).await.unwrap_err();
        assert!(matches!(refused.into(), Error::NotLeader));
        cut.store(false, Ordering::SeqCst);
        running.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(1)).await;
        assert_eq!(terms.load(Ordering::SeqCst), 2);
        running.stop().await.unwrap();
    });
}

#[test]
fn queues_are_counted_under_the_names_that_dashboards_know() {
    on_cluster(async |cluster| {
        async fn moody(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            match config.metadata.name.as_deref() {
                Some("fails") => Err(Error::transient("no")),
                _ => {
                    context.env().sleep(Duration::from_secs(3600)).await;
                    Ok(Outcome::Done)
                }
            }
        }
        for name in ["fails", "slow"] {
            cluster.create(&config(name, "1")).await;
        }
        let running = cluster.start(Controller::new(moody)).await;
        cluster.runs(&running.journal(), 1).await;
        cluster.env.sleep(Duration::from_millis(500)).await;
        let text = running.metrics();
        let labels = "{name=\"configmap\",controller=\"configmap\"}";
        for line in [
            format!("workqueue_depth{labels} 0"),
            format!("workqueue_adds_total{labels} 2"),
            format!("workqueue_retries_total{labels} 1"),
            format!("workqueue_queue_duration_seconds_count{labels} 1"),
            format!("workqueue_work_duration_seconds_count{labels} 1"),
            format!("workqueue_unfinished_work_seconds{labels} 0."),
            format!("workqueue_longest_running_processor_seconds{labels} 0."),
        ] {
            assert!(text.contains(&line), "{line} is missing:\n{text}");
        }
    });
}

#[test]
fn a_kind_that_is_forbidden_is_said_in_words_until_it_is_allowed() {
    on_cluster(async |mut cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let forbidden = Arc::new(AtomicBool::new(true));
        let flag = forbidden.clone();
        cluster.client = faulty(&cluster.client, move |request| {
            let lists = is(request, "GET", "/secrets") && flag.load(Ordering::SeqCst);
            lists.then_some(Fault::Forbid)
        });
        let needs = Controller::new(mirror).owns::<Secret>().namespace(&cluster.namespace);
        let other = Controller::new(idle::<ConfigMap>).named("other").namespace(&cluster.namespace);
        let manager = cluster.manager().with(needs).with(other);
        let running = cluster.start_manager(manager).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(&*records[0].controller, "other", "it does not wait for the other's source");
        let words = running.health().to_string();
        assert!(words.contains("not ok source Secret: "), "{words}");
        assert!(words.contains("the verbs list and watch"), "{words}");
        forbidden.store(false, Ordering::SeqCst);
        cluster.until_recorded(&running.journal(), |all| all.len() >= 2).await;
        assert!(running.health().is_ready(), "{}", running.health());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_check_of_ones_own_is_part_of_the_readiness() {
    on_cluster(async |cluster| {
        let ill = Arc::new(AtomicBool::new(true));
        let flag = ill.clone();
        let check = move || flag.load(Ordering::SeqCst).then(|| "no connection".to_owned());
        let running = cluster.manager().with_check("database", check).start().await.unwrap();
        assert_eq!(running.health().to_string(), "not ok database: no connection\n");
        ill.store(false, Ordering::SeqCst);
        assert!(running.health().is_ready());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_check_may_come_later_and_one_that_panics_is_a_problem_in_words() {
    on_cluster(async |cluster| {
        let running = cluster.manager().with_check("shaky", || panic!("oh")).start().await.unwrap();
        assert_eq!(running.health().to_string(), "not ok shaky: the check panicked: oh\n");
        running.add_check("later", || Some("not yet".to_owned()));
        assert!(running.health().to_string().ends_with("not ok later: not yet\n"));
        running.stop().await.unwrap();
    });
}

#[test]
fn probes_are_answered_until_the_end_of_a_stop() {
    on_cluster(async |cluster| {
        let (begun, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, gate) = (Arc::clone(&begun), Arc::clone(&told));
        let slow = move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let (begun, gate) = (Arc::clone(&tell), Arc::clone(&gate));
            async move {
                begun.notify_one();
                gate.notified().await;
                Ok(Outcome::Done)
            }
        };
        cluster.create(&config("a", "1")).await;
        let controller = Controller::new(slow).namespace(&cluster.namespace);
        let manager = cluster.manager().with(controller).listen(([127, 0, 0, 1], 0).into());
        let running = cluster.start_manager(manager).await;
        let address = running.address().unwrap();
        begun.notified().await;
        let stopping = tokio::spawn(running.stop());
        // The reconcile has not finished, so neither has the stop.
        let alive = crate::health::ask(address, "/healthz").await;
        assert!(alive.starts_with("HTTP/1.1 200"), "{alive}");
        assert!(crate::health::ask(address, "/metrics").await.contains("active_workers"));
        assert!(!stopping.is_finished());
        told.notify_one();
        stopping.await.unwrap().unwrap();
        assert!(std::net::TcpStream::connect(address).is_err(), "and no longer");
    });
}

#[test]
fn the_journal_keeps_as_many_reconciles_as_the_manager_is_told() {
    on_cluster(async |cluster| {
        for name in ["a", "b", "c"] {
            cluster.create(&config(name, "1")).await;
        }
        let controller = Controller::new(idle::<ConfigMap>).namespace(&cluster.namespace);
        let manager = cluster.manager().with(controller).journal_capacity(2);
        let running = cluster.start_manager(manager).await;
        let journal = running.journal();
        cluster.until_recorded(&journal, |_| journal.total() == 3).await;
        let kept: Vec<_> =
            journal.records().iter().map(|record| record.key.name().to_owned()).collect();
        assert_eq!(kept, ["b", "c"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_runnable_that_wraps_the_lost_lease_runs_again_in_the_next_term() {
    on_cluster(async |cluster| {
        let cut = Arc::new(AtomicBool::new(false));
        let flag = cut.clone();
        let client = faulty(&cluster.client, move |request| {
            let lease = request.uri().path().contains("/leases/");
            (lease && flag.load(Ordering::SeqCst)).then_some(Fault::Hang)
        });
        let terms = Arc::new(AtomicUsize::new(0));
        let count = terms.clone();
        let work = Runnable::new("sweep", move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            // As one says it who adds words to what a refused write says.
            let refused = homeostat::kube::Error::Service(Box::new(Error::NotLeader));
            async { Err(Error::transient(refused)) }
        });
        let [duration, deadline, retry] = [3000, 2000, 500].map(Duration::from_millis);
        let lease = Lease::new("one").namespace(&cluster.namespace).identity("us");
        let manager = Manager::new(client, cluster.env.clone());
        let manager = manager.lease(lease.terms(duration, deadline, retry));
        let running = manager.with_runnable(work.while_leading()).start().await.unwrap();
        running.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(1)).await;
        assert_eq!(terms.load(Ordering::SeqCst), 1);
        assert!(running.health().is_ready(), "{}", running.health());
        cut.store(true, Ordering::SeqCst);
        cluster.env.sleep(Duration::from_secs(5)).await;
        cut.store(false, Ordering::SeqCst);
        running.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(1)).await;
        assert_eq!(terms.load(Ordering::SeqCst), 2);
        running.stop().await.unwrap();
    });
}
