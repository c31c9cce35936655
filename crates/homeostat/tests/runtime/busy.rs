//! A server that has no time: whoever asks leaves it alone for as long as it says, be it in a header
//! below which there is plain text, as kube-apiserver's flow control has it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::kube::CustomResource;
use homeostat::kube::api::{Api, DeleteParams, PostParams};
use homeostat::kube::{Client, CustomResourceExt};
use homeostat::manager::Runnable;
use homeostat::{Context, Controller, Error, EventType, Lease, Manager, Outcome, Result};
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::budget::{PodDisruptionBudget, budget};
use crate::children::mirror;
use crate::cluster::{Cluster, config, idle, on_cluster};
use crate::faults::{Fault, faulty, is};

/// When requests of one sort came. The first is turned away for three seconds.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Vec<Instant>>>);

impl Times {
    fn of(cluster: &Cluster, method: Method, part: &'static str) -> (Client, Self) {
        Self::with(cluster, method, part, Fault::Busy)
    }

    fn with(cluster: &Cluster, method: Method, part: &'static str, fault: Fault) -> (Client, Self) {
        let (times, env) = (Self::default(), cluster.env.clone());
        let log = times.clone();
        let client = faulty(&cluster.client, move |request| {
            let mut log = log.0.lock().unwrap();
            let matches = is(request, method.as_str(), part);
            matches.then(|| log.push(env.instant()));
            (matches && log.len() == 1).then_some(fault)
        });
        (client, times)
    }

    /// Asserts that the second came when it should.
    fn assert_heeded(&self) {
        let times = self.0.lock().unwrap();
        let waited = times[1] - times[0];
        let told = Duration::from_secs(3);
        assert!(waited >= told && waited < told * 2, "{waited:?}");
    }
}

#[test]
fn an_informer_waits() {
    on_cluster(async |cluster| {
        let (client, times) = Times::of(&cluster, Method::GET, "/configmaps");
        cluster.create(&config("a", "1")).await;
        let manager = Manager::new(client, cluster.env.clone());
        let controller = Controller::new(idle::<ConfigMap>).namespace(&cluster.namespace);
        let running = cluster.start_manager(manager.with(controller)).await;
        cluster.runs(&running.journal(), 1).await;
        times.assert_heeded();
        running.stop().await.unwrap();
    });
}

#[test]
fn a_runnable_waits_whoever_leads() {
    on_cluster(async |cluster| {
        let (client, times) = Times::of(&cluster, Method::POST, "/configmaps");
        let namespace = cluster.namespace.clone();
        let work = Runnable::new("import", move |work| {
            let configs: Api<ConfigMap> = Api::namespaced(work.client().clone(), &namespace);
            async move {
                configs.create(&PostParams::default(), &config("a", "1")).await?;
                Ok(())
            }
        });
        let manager = Manager::new(client, cluster.env.clone()).with_runnable(work);
        let running = cluster.start_manager(manager).await;
        cluster.until_one::<ConfigMap>("a", "what was turned away once", |_| true).await;
        times.assert_heeded();
        running.stop().await.unwrap();
    });
}

#[test]
fn a_key_that_failed_for_it_waits() {
    #[derive(Debug, thiserror::Error)]
    #[error("no copy was made")]
    struct NoCopy(#[from] Error);
    async fn in_words(source: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
        mirror(source, context).await.map_err(|error| Error::transient(NoCopy(error)))
    }
    for controller in [|| Controller::new(mirror), || Controller::new(in_words)] {
        on_cluster(async |cluster| {
            let (client, times) = Times::with(&cluster, Method::PATCH, "/secrets/", Fault::Away);
            cluster.create(&config("a", "MQ==")).await;
            let manager = Manager::new(client, cluster.env.clone());
            let controller = controller().owns::<Secret>().namespace(&cluster.namespace);
            let running = cluster.start_manager(manager.with(controller)).await;
            let records = cluster.runs(&running.journal(), 2).await;
            times.assert_heeded();
            let next = records[0].next.unwrap();
            cluster.assert_apart(records[0].time, next, Duration::from_secs(3));
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn nobody_waits_for_a_server_that_says_tomorrow_longer_than_five_minutes() {
    on_cluster(async |cluster| {
        let day = Fault::AwayForADay;
        let (client, _) = Times::with(&cluster, Method::PATCH, "/secrets/", day);
        cluster.create(&config("a", "MQ==")).await;
        let manager = Manager::new(client, cluster.env.clone());
        let controller = Controller::new(mirror).owns::<Secret>().namespace(&cluster.namespace);
        let running = cluster.start_manager(manager.with(controller)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let next = records[0].next.unwrap();
        cluster.assert_apart(records[0].time, next, Duration::from_secs(300));
        if cluster.is_virtual {
            cluster.until_one::<Secret>("a", "the copy", |_| true).await;
        }
        running.stop().await.unwrap();
    });
}

#[test]
fn a_mark_waits_no_longer_than_five_minutes_either() {
    on_cluster(async |cluster| {
        let hopeless = async |_: Arc<PodDisruptionBudget>, _: Context<PodDisruptionBudget>| {
            Err(Error::terminal("hopeless"))
        };
        let (client, _) = Times::with(&cluster, Method::PATCH, "/status", Fault::AwayForADay);
        cluster.create(&budget("a", 1)).await;
        let manager = Manager::new(client, cluster.env.clone());
        let controller = Controller::new(hopeless).marks_status(true).namespace(&cluster.namespace);
        let running = cluster.start_manager(manager.with(controller)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let next = records[0].next.unwrap();
        cluster.assert_apart(records[0].time, next, Duration::from_secs(300));
        running.stop().await.unwrap();
    });
}

#[test]
fn the_lease_waits() {
    on_cluster(async |cluster| {
        let (client, times) = Times::of(&cluster, Method::GET, "/leases/");
        let manager = Manager::new(client, cluster.env.clone());
        let running = manager.lease(Lease::new("one").namespace(&cluster.namespace));
        let running = cluster.start_manager(running).await;
        running.wait_until_leading().await;
        times.assert_heeded();
        running.stop().await.unwrap();
    });
}

#[test]
fn an_event_waits() {
    on_cluster(async |cluster| {
        async fn tell(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.event(EventType::Normal, "Told", "once");
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let (client, times) = Times::of(&cluster, Method::POST, "/events");
        let manager = Manager::new(client, cluster.env.clone());
        let controller = Controller::new(tell).namespace(&cluster.namespace);
        let running = cluster.start_manager(manager.with(controller)).await;
        let told = |all: &[Event]| all.iter().any(|one| one.reason.as_deref() == Some("Told"));
        cluster.until::<Event>("the event", told).await;
        times.assert_heeded();
        running.stop().await.unwrap();
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "busy.homeostat.dev", version = "v1", kind = "Patient", namespaced)]
struct PatientSpec {}

#[test]
fn the_installation_of_a_definition_waits() {
    on_cluster(async |cluster| {
        let (client, times) = Times::of(&cluster, Method::PATCH, "/customresourcedefinitions/");
        let manager = Manager::new(client, cluster.env.clone()).with_crd::<Patient>();
        let running = cluster.start_manager(manager).await;
        times.assert_heeded();
        running.stop().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        definitions.delete(Patient::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}
