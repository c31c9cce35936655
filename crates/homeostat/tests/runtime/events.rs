//! Events on their way: names that the API takes, an API that is away or has no time, a stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::kube::api::{Api, DeleteParams, ListParams, PostParams};
use homeostat::{Context, Controller, EventType, Namespaces, Outcome, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::json;

use crate::cluster::{Cluster, config, object, on_cluster};
use crate::faults::{Fault, faulty, is};
use crate::namespaces::another;

async fn tell<K>(_: Arc<K>, context: Context<K>) -> Result<Outcome>
where
    K: homeostat::AnyObject,
{
    context.event(EventType::Normal, "Told", "once");
    Ok(Outcome::Done)
}

/// The names of those about whom something is told.
fn about(events: &[Event]) -> Vec<&str> {
    let told = events.iter().filter(|event| event.reason.as_deref() == Some("Told"));
    told.filter_map(|event| event.regarding.as_ref()?.name.as_deref()).collect()
}

/// A cluster whose API has no time for events while the flag is up.
fn without_events(cluster: &mut Cluster) -> Arc<AtomicBool> {
    let away = Arc::new(AtomicBool::new(true));
    let flag = away.clone();
    cluster.client = faulty(&cluster.client, move |request| {
        let event = is(request, "POST", "/events");
        (event && flag.load(Ordering::SeqCst)).then_some(Fault::Unavailable)
    });
    away
}

#[test]
fn an_object_whose_name_is_none_for_an_event_has_events_all_the_same() {
    on_cluster(async |cluster| {
        let name = format!("system:{}:A", cluster.namespace);
        let roles: Api<ClusterRole> = Api::all(cluster.client.clone());
        let wish = json!({ "metadata": { "name": name, "labels": { "told": cluster.namespace } } });
        roles.create(&PostParams::default(), &object(wish)).await.unwrap();
        let controller = Controller::new(tell::<ClusterRole>);
        let controller = controller.labels(&format!("told={}", cluster.namespace));
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        cluster.runs(&running.journal(), 1).await;
        cluster.quiet().await;
        let events: Api<Event> = Api::namespaced(cluster.client.clone(), "default");
        let told = events.list(&ListParams::default()).await.unwrap().items;
        let told = about(&told).into_iter().filter(|about| *about == name).count();
        assert_eq!((told, running.recorder().dropped()), (1, 0));
        running.stop().await.unwrap();
        roles.delete(&name, &DeleteParams::default()).await.unwrap();
    });
}

#[test]
fn an_event_outlives_a_minute_without_an_api() {
    on_cluster(async |mut cluster| {
        let away = without_events(&mut cluster);
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let running = cluster.start(Controller::new(tell::<ConfigMap>).concurrency(1)).await;
        cluster.runs(&running.journal(), 2).await;
        let happened = cluster.env.now() + Duration::from_secs(2);
        let minute = if cluster.is_virtual { 60 } else { 12 };
        cluster.env.sleep(Duration::from_secs(minute)).await;
        away.store(false, Ordering::SeqCst);
        let told = cluster.until::<Event>("both events", |all| about(all).len() == 2).await;
        assert_eq!((about(&told), running.recorder().dropped()), (vec!["a", "b"], 0));
        let in_time = |event: &Event| event.event_time.as_ref().unwrap().0 <= happened;
        assert!(told.iter().all(in_time), "when it happened, not when it was written: {told:?}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_stop_writes_the_events_that_waited_for_the_api() {
    on_cluster(async |mut cluster| {
        let away = without_events(&mut cluster);
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let running = cluster.start(Controller::new(tell::<ConfigMap>).concurrency(1)).await;
        cluster.runs(&running.journal(), 2).await;
        // Long enough for its pauses to be longer than what a stop waits for.
        let long = if cluster.is_virtual { 40 } else { 16 };
        cluster.env.sleep(Duration::from_secs(long)).await;
        away.store(false, Ordering::SeqCst);
        running.stop().await.unwrap();
        assert_eq!(about(&cluster.list::<Event>("").await), ["a", "b"]);
    });
}

#[test]
fn an_event_that_gets_no_answer_does_not_hold_back_the_others_for_ever() {
    on_cluster(async |mut cluster| {
        assert!(cluster.is_virtual, "it takes minutes, in which nothing else is seen elsewhere");
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let tries = AtomicUsize::new(0);
        cluster.client = faulty(&cluster.client, move |request| {
            let event = is(request, "POST", "/events");
            (event && tries.fetch_add(1, Ordering::SeqCst) < 12).then_some(Fault::Hang)
        });
        let running = cluster.start(Controller::new(tell::<ConfigMap>).concurrency(1)).await;
        cluster.runs(&running.journal(), 2).await;
        cluster.env.sleep(Duration::from_secs(200)).await;
        let told = cluster.list::<Event>("").await;
        assert_eq!((about(&told), running.recorder().dropped()), (vec!["b"], 1));
    });
}

#[test]
fn a_namespace_that_takes_no_events_holds_back_those_of_no_other() {
    for fault in [Fault::Unavailable, Fault::Hang, Fault::AwayForADay] {
        on_cluster(async |mut cluster| {
            let full = another(&cluster).await;
            let there: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &full);
            for number in 0..3 {
                let config = config(&format!("a-{number}"), "1");
                there.create(&PostParams::default(), &config).await.unwrap();
            }
            let closed = format!("/namespaces/{full}/events");
            cluster.client = faulty(&cluster.client, move |request| {
                is(request, "POST", &closed).then_some(fault)
            });
            let both = Namespaces::new([&*cluster.namespace, &*full]);
            let controller = Controller::new(tell::<ConfigMap>).concurrency(1).namespaces(&both);
            let running = cluster.start_manager(cluster.manager().with(controller)).await;
            cluster.runs(&running.journal(), 3).await;
            let before = cluster.env.now();
            cluster.create(&config("b", "1")).await;
            let told = |all: &[Event]| about(all).contains(&"b");
            cluster.until::<Event>("an event", told).await;
            let waited = cluster.env.now().duration_since(before);
            assert!(waited.as_secs() < 5, "{waited}");
            if cluster.is_virtual {
                // One after the other they are given up, each after a minute and a half.
                cluster.env.sleep(Duration::from_secs(300)).await;
                assert_eq!(running.recorder().dropped(), 3);
            }
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn a_controller_whose_name_events_cannot_carry_is_refused_at_the_start() {
    on_cluster(async |cluster| {
        let long = "x".repeat(64);
        for name in ["two words", "web:config", "-web", "Example.com/web", "a/b/c", "", &long] {
            let controller = Controller::new(tell::<ConfigMap>).named(name);
            let error = cluster.manager().with(controller).start().await.unwrap_err();
            assert!(error.is_terminal(), "{error}");
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
        }
        cluster.create(&config("a", "1")).await;
        let name = format!("example.com/{}", &long[1..]);
        let running = cluster.start(Controller::new(tell::<ConfigMap>).named(&name)).await;
        let told = |all: &[Event]| {
            all.iter().any(|event| event.reporting_controller.as_deref() == Some(&*name))
        };
        cluster.until::<Event>("an event of the longest name", told).await;
        running.stop().await.unwrap();
    });
}
