//! What a manager says about itself: readiness and metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::cache::SourceState;
use homeostat::kube::api::{Api, ApiResource, DeleteParams};
use homeostat::kube::{CustomResource, CustomResourceExt};
use homeostat::prometheus_client::metrics::gauge::Gauge;
use homeostat::{Context, Controller, Error, Lease, Manager, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::children::mirror;
use crate::cluster::{config, idle, on_cluster};
use crate::faults::{Fault, faulty, is, late};

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "later.homeostat.dev", version = "v1", kind = "Later", namespaced)]
struct LaterSpec {}

#[test]
fn a_missing_definition_is_said_in_words_until_it_is_there() {
    on_cluster(async |cluster| {
        let mirror = Controller::new(mirror).owns::<Secret>().namespace(&cluster.namespace);
        let manager = cluster.manager().with(mirror).with(Controller::new(idle::<Later>));
        let running = manager.start().await.unwrap();
        let health = running.health();
        assert!(!health.is_ready());
        let lines = health.to_string();
        assert!(lines.contains("ok source ConfigMap\n"), "{lines}");
        assert!(lines.contains("not ok source Later.later.homeostat.dev: "), "{lines}");
        assert!(lines.contains("is its CustomResourceDefinition installed?"), "{lines}");

        homeostat::crd::install::<Later>(&cluster.client).await.unwrap();
        let informer = running.caches().informers().into_iter();
        let later = informer.filter(|one| one.kind().kind() == "Later").collect::<Vec<_>>();
        let limit = Duration::from_secs(120);
        assert!(cluster.env.timeout(limit, later[0].wait_for_sync()).await.unwrap());
        assert!(running.health().is_ready(), "{}", running.health());
        running.stop().await.unwrap();
        // A real cluster is there for the next run too.
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        definitions.delete(Later::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}

#[test]
fn an_api_that_is_away_for_a_moment_leaves_the_process_ready_and_one_that_stays_away_does_not() {
    on_cluster(async |cluster| {
        assert!(cluster.is_virtual, "it takes minutes, which only the embedded cluster has");
        let away = Arc::new(AtomicBool::new(false));
        let flag = away.clone();
        let client = faulty(&cluster.client, move |request| {
            let refused = is(request, "GET", "/configmaps") && flag.load(Ordering::SeqCst);
            refused.then_some(Fault::Unavailable)
        });
        let manager = Manager::new(client, cluster.env.clone());
        let running = manager.with(Controller::new(idle::<ConfigMap>)).start().await.unwrap();
        let source = running.caches().informers().remove(0);
        for _ in 0..2 {
            away.store(true, Ordering::SeqCst);
            source.wait_for_state(|state| matches!(state, SourceState::Pending(_))).await;
            cluster.env.sleep(Duration::from_secs(100)).await;
            let words = running.health().to_string();
            assert!(
                words.starts_with("ok source ConfigMap (not followed for the moment: "),
                "{words}"
            );
            away.store(false, Ordering::SeqCst);
            source.wait_for_state(|state| *state == SourceState::Synced).await;
            assert_eq!(running.health().to_string(), "ok source ConfigMap\n");
        }
        away.store(true, Ordering::SeqCst);
        source.wait_for_state(|state| matches!(state, SourceState::Pending(_))).await;
        cluster.env.sleep(Duration::from_secs(121)).await;
        let words = running.health().to_string();
        assert!(words.starts_with("not ok source ConfigMap: "), "{words}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_source_that_hears_nothing_is_not_ready_until_it_does() {
    on_cluster(async |cluster| {
        assert!(cluster.is_virtual, "it takes hours, which only the embedded cluster has");
        let mute = Arc::new(AtomicBool::new(false));
        let (flag, day) = (mute.clone(), Duration::from_secs(24 * 3600));
        // Watches are opened and say nothing, as behind a proxy that has lost their server.
        let client = late(&cluster.client, &cluster.env, day, move |request| {
            is(request, "GET", "/configmaps") && flag.load(Ordering::SeqCst)
        });
        let manager = Manager::new(client, cluster.env.clone());
        let running = manager.with(Controller::new(idle::<ConfigMap>)).start().await.unwrap();
        cluster.env.sleep(Duration::from_secs(40 * 60)).await;
        assert!(running.health().is_ready(), "quiet is not dead: {}", running.health());
        mute.store(true, Ordering::SeqCst);
        cluster.env.sleep(Duration::from_secs(40 * 60)).await;
        let words = running.health().to_string();
        assert!(words.contains("not ok source ConfigMap: nothing heard for "), "{words}");
        mute.store(false, Ordering::SeqCst);
        cluster.env.sleep(Duration::from_secs(20 * 60)).await;
        assert!(running.health().is_ready(), "{}", running.health());
        running.stop().await.unwrap();
    });
}

#[test]
fn reconciles_requests_queues_caches_and_the_lease_are_counted() {
    on_cluster(async |cluster| {
        async fn moody(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            match config.metadata.name.as_deref() {
                Some("bad") => Err(Error::terminal("no")),
                Some("panics") => panic!("oh"),
                Some("later") => Ok(Outcome::RequeueAfter(Duration::from_secs(3600))),
                _ => mirror(config, context).await,
            }
        }
        for name in ["good", "bad", "panics", "later"] {
            cluster.create(&config(name, "MQ==")).await;
        }
        let manager = cluster.manager().lease(Lease::new("one").namespace(&cluster.namespace));
        let own = Gauge::<i64>::default();
        own.set(7);
        manager.metrics().register(|all| all.register("lucky_number", "Mine", own.clone()));
        let controller = Controller::new(moody).owns::<Secret>().namespace(&cluster.namespace);
        let running = manager.with(controller).start().await.unwrap();
        cluster.runs(&running.journal(), 4).await;
        let text = running.metrics();
        for line in [
            "controller_runtime_reconcile_total{controller=\"configmap\",result=\"requeue_after\"} 1",
            "controller_runtime_terminal_reconcile_errors_total{controller=\"configmap\"} 1",
            "controller_runtime_reconcile_panics_total{controller=\"configmap\"} 1",
            "controller_runtime_max_concurrent_reconciles{controller=\"configmap\"} 4",
            "leader_election_master_status{name=\"one\"} 1",
            // The child; the lists and watches of two caches; the lease and events.
            "rest_client_requests_total{method=\"PATCH\",code=\"201\",host=\"\"} 1",
            "rest_client_requests_total{method=\"GET\",code=\"200\",host=\"\"} ",
            "rest_client_requests_total{method=\"POST\",code=\"201\",host=\"\"} ",
            "rest_client_request_duration_seconds_count{verb=\"PATCH\"} ",
            "homeostat_source_synced{kind=\"Secret\"} 1",
            "homeostat_source_lists_total{kind=\"Secret\"} 1",
            "homeostat_source_failures_total{kind=\"Secret\"} 0",
            "homeostat_source_silent_seconds{kind=\"Secret\"} 0",
            "homeostat_source_unreadable_objects{kind=\"Secret\"} 0",
            "homeostat_cache_objects{kind=\"Secret\"} 1",
            // The one that panics and the one that comes later.
            "homeostat_queue_waiting{controller=\"configmap\"} 2",
            "controller_runtime_reconcile_errors_total{controller=\"configmap\"} 2",
            "controller_runtime_active_workers{controller=\"configmap\"} 0",
            "lucky_number 7",
        ] {
            assert!(text.contains(line), "{line} is missing:\n{text}");
        }
        assert!(text.contains("controller_runtime_reconcile_time_seconds_bucket{"), "{text}");
        running.stop().await.unwrap();
    });
}

#[test]
fn probes_and_scrapers_are_answered_over_http() {
    on_cluster(async |cluster| {
        // A socket is not on virtual time: nothing here waits for anything but the socket.
        let manager = cluster.manager().listen(([127, 0, 0, 1], 0).into());
        let running = manager.with(Controller::new(mirror)).start().await.unwrap();
        let address = running.address().unwrap();
        let ask = async |path: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        assert!(ask("/healthz").await.starts_with("HTTP/1.1 200 OK"));
        let ready = ask("/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 200 OK") && ready.contains("ok source ConfigMap"));
        let metrics = ask("/metrics").await;
        assert!(metrics.contains("application/openmetrics-text") && metrics.ends_with("# EOF\n"));
        // Of the process there, where a scraper looks, and not in what a seed repeats.
        let cpu = "\nprocess_cpu_seconds_total ";
        assert!(metrics.contains(cpu) && !running.metrics().contains("process_"), "{metrics}");
        assert!(ask("/nothing").await.starts_with("HTTP/1.1 404"));
        let taken = cluster.manager().listen(address).start().await.unwrap_err();
        assert!(taken.to_string().contains("cannot be listened on"), "{taken}");
        running.stop().await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "early.homeostat.dev", version = "v1", kind = "Early", namespaced)]
struct EarlySpec {}

/// Asks over a socket, and stops virtual time as long as that takes.
pub async fn ask(address: SocketAddr, path: &'static str) -> String {
    let ask = move || {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

#[test]
fn an_api_that_has_no_time_at_the_start_is_waited_for_and_probes_are_answered_meanwhile() {
    on_cluster(async |cluster| {
        let refused = Arc::new(AtomicUsize::new(0));
        let (tries, told) = (Arc::clone(&refused), Arc::new(Notify::new()));
        let tell = Arc::clone(&told);
        let client = faulty(&cluster.client, move |request| {
            let first = is(request, "PATCH", "/customresourcedefinitions/")
                && tries.fetch_add(1, Ordering::SeqCst) < 3;
            first.then(|| tell.notify_one());
            first.then_some(Fault::Unavailable)
        });
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let controller = Controller::new(idle::<Early>).namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone()).listen(address);
        let starting = tokio::spawn(manager.with_crd::<Early>().with(controller).start());
        told.notified().await;
        assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        let ready = ask(address, "/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("start: under way"), "{ready}");

        let running = starting.await.unwrap().unwrap();
        assert_eq!(refused.load(Ordering::SeqCst), 4);
        assert!(ask(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        running.stop().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        definitions.delete(Early::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "early.homeostat.dev", version = "v1", kind = "Earlier", namespaced)]
struct EarlierSpec {}

#[test]
fn an_api_that_is_away_for_minutes_at_the_start_is_named_by_the_readiness_and_ends_nothing() {
    on_cluster(async |cluster| {
        assert!(cluster.is_virtual, "it takes minutes, which only the embedded cluster has");
        let (env, minute) = (cluster.env.clone(), Duration::from_secs(60));
        let began = env.instant();
        let client = faulty(&cluster.client, move |_| {
            (env.instant() < began + 2 * minute).then_some(Fault::Unavailable)
        });
        let controller = Controller::new(idle::<Earlier>).namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone()).with_crd::<Earlier>();
        let running = manager.with(controller).start().await.unwrap();
        let words = running.health().to_string();
        assert!(!running.health().is_ready() && words.contains("not ok source Earlier"), "{words}");
        let named = "not ok definition earliers.early.homeostat.dev: not installed yet: ";
        assert!(words.contains(named) && words.contains("not yet"), "{words}");

        let informer = running.caches().informers().remove(0);
        let synced = cluster.env.timeout(2 * minute, informer.wait_for_sync());
        assert!(synced.await.unwrap());
        cluster.create(&Earlier::new("a", EarlierSpec {})).await;
        cluster.runs(&running.journal(), 1).await;
        assert_eq!(running.health().to_string(), "ok source Earlier.early.homeostat.dev\n");
        running.stop().await.unwrap();
    });
}

/// A definition that nobody can install.
struct Nowhere;

impl CustomResourceExt for Nowhere {
    fn crd() -> CustomResourceDefinition {
        let mut definition = Early::crd();
        definition.spec.scope = "Nowhere".to_owned();
        definition
    }
    fn crd_name() -> &'static str {
        Early::crd_name()
    }
    fn api_resource() -> ApiResource {
        Early::api_resource()
    }
    fn shortnames() -> &'static [&'static str] {
        &[]
    }
}

#[test]
fn a_definition_that_is_invalid_is_an_error_at_once() {
    on_cluster(async |cluster| {
        let (before, manager) = (cluster.env.now(), cluster.manager().with_crd::<Nowhere>());
        let error = manager.start().await.unwrap_err();
        assert!(error.chain().contains("spec.scope"), "{error}");
        let took = cluster.env.now().duration_since(before);
        assert!(took.as_secs() < 5, "{took}");
    });
}
