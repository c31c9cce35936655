//! Several processes of one operator: one works, the others wait with warm caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use homeostat::controller::{Related, Source};
use homeostat::kube::api::{Api, DeleteParams, PostParams};
use homeostat::kube::{Client, ResourceExt};
use homeostat::{Context, Controller, EventType, Key, Kind, Lease, Manager, Outcome};
use homeostat::{Predicate, Result, Running};
use k8s_openapi::api::coordination::v1::Lease as LeaseObject;
use k8s_openapi::api::core::v1::{ConfigMap, Event as EventObject, Namespace, Secret};
use serde_json::json;

use crate::children::mirror;
use crate::cluster::{Cluster, config, endings, idle, object, on_cluster, secret, triggers};
use crate::faults::{Fault, faulty, is};

fn lease(cluster: &Cluster) -> Lease {
    let [duration, deadline, retry] = [3000, 2000, 500].map(Duration::from_millis);
    Lease::new("the-one").namespace(&cluster.namespace).terms(duration, deadline, retry)
}

async fn process(
    cluster: &Cluster,
    client: &Client,
    name: &str,
    controller: Controller<ConfigMap>,
) -> Running {
    let manager = Manager::new(client.clone(), cluster.env.clone());
    let manager = manager.lease(lease(cluster).identity(name));
    manager.with(controller.namespace(&cluster.namespace)).start().await.unwrap()
}

fn mirroring() -> Controller<ConfigMap> {
    Controller::new(mirror).owns::<Secret>()
}

async fn holder(cluster: &Cluster) -> (String, i32) {
    let spec = cluster.api::<LeaseObject>().get("the-one").await.unwrap().spec.unwrap();
    (spec.holder_identity.unwrap_or_default(), spec.lease_transitions.unwrap_or_default())
}

#[test]
fn one_works_and_the_other_takes_over_when_it_stops() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let first = process(&cluster, &cluster.client, "first", mirroring()).await;
        first.wait_until_leading().await;
        let second = process(&cluster, &cluster.client, "second", mirroring()).await;
        cluster.runs(&first.journal(), 1).await;
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "Mg==" } })).await;
        cluster.runs(&first.journal(), 2).await;
        assert_eq!((second.is_leading(), second.journal().total()), (false, 0));
        assert_eq!(holder(&cluster).await, ("first".to_owned(), 0));

        let before = cluster.env.now();
        first.stop().await.unwrap();
        second.wait_until_leading().await;
        cluster.runs(&second.journal(), 1).await;
        let waited = cluster.env.now().duration_since(before);
        assert!(waited.as_secs() < 3, "given back, not waited out: {waited}");
        assert_eq!(holder(&cluster).await, ("second".to_owned(), 1));
        second.stop().await.unwrap();
        assert_eq!(holder(&cluster).await.0, "");
    });
}

#[test]
fn a_leader_that_cannot_renew_writes_nothing_more_and_may_lead_again() {
    on_cluster(async |cluster| {
        async fn slow(primary: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let held = primary.data.as_ref().is_some_and(|data| data["value"] == "hold");
            if held && context.controller() == "cut-off" {
                // Outlives the lease, and then would write.
                context.env().sleep(Duration::from_secs(10)).await;
            }
            let name = context.controller().to_owned();
            context.apply(secret(&name, "1")).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "hold")).await;
        let cut = Arc::new(AtomicBool::new(false));
        let flag = cut.clone();
        let client = faulty(&cluster.client, move |request| {
            let renews = is(request, "PATCH", "/leases/") || is(request, "GET", "/leases/");
            (renews && flag.load(Ordering::SeqCst)).then_some(Fault::Hang)
        });
        let first = Controller::new(slow).named("cut-off");
        let first = process(&cluster, &client, "first", first).await;
        first.wait_until_leading().await;
        let second = Controller::new(slow).named("next");
        let second = process(&cluster, &cluster.client, "second", second).await;
        cut.store(true, Ordering::SeqCst);
        second.wait_until_leading().await;
        assert!(!first.is_leading(), "two lead");
        cluster.runs(&second.journal(), 1).await;
        let records = cluster.runs(&first.journal(), 1).await;
        assert_eq!(endings(&records), ["not the leader"]);
        let failures = "controller_runtime_reconcile_errors_total{controller=\"cut-off\"} 0";
        assert!(first.metrics().contains(failures), "{}", first.metrics());
        cluster.env.sleep(Duration::from_secs(15)).await;
        assert_eq!(first.journal().total(), 1);
        assert!(cluster.api::<Secret>().get_opt("cut-off").await.unwrap().is_none());

        // Reached again, and the other one gone: it leads and looks at everything anew.
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "go" } })).await;
        cut.store(false, Ordering::SeqCst);
        second.stop().await.unwrap();
        first.wait_until_leading().await;
        let records = cluster.runs(&first.journal(), 2).await;
        assert_eq!(endings(&records)[1], "done");
        assert!(cluster.api::<Secret>().get_opt("cut-off").await.unwrap().is_some());
        first.stop().await.unwrap();
    });
}

#[test]
fn writes_through_the_plain_client_stop_at_the_fence_too() {
    on_cluster(async |cluster| {
        async fn sneaky(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let client = context.client().clone();
            let namespace = context.key().namespace().unwrap().to_owned();
            let env = context.env().clone();
            // On a task of its own, which nobody gives up for us.
            let late = tokio::spawn(async move {
                env.sleep(Duration::from_secs(5)).await;
                let api = homeostat::kube::Api::<Secret>::namespaced(client, &namespace);
                api.create(&Default::default(), &secret("late", "1")).await
            });
            let refused = late.await.unwrap().unwrap_err();
            assert!(matches!(refused.into(), homeostat::Error::NotLeader));
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let cut = Arc::new(AtomicBool::new(false));
        let flag = cut.clone();
        let client = faulty(&cluster.client, move |request| {
            (is(request, "PATCH", "/leases/") && flag.load(Ordering::SeqCst)).then_some(Fault::Hang)
        });
        let running = process(&cluster, &client, "only", Controller::new(sneaky)).await;
        running.wait_until_leading().await;
        cut.store(true, Ordering::SeqCst);
        cluster.runs(&running.journal(), 1).await;
        cluster.env.sleep(Duration::from_secs(10)).await;
        assert!(cluster.api::<Secret>().get_opt("late").await.unwrap().is_none());
    });
}

#[test]
fn terms_that_leave_room_for_two_leaders_are_refused() {
    on_cluster(async |cluster| {
        let [second, two] = [1, 2].map(Duration::from_secs);
        for (duration, deadline, retry) in [(two, two, second / 4), (two, second, second)] {
            let lease = Lease::new("odd").terms(duration, deadline, retry);
            let error = cluster.manager().lease(lease).start().await.unwrap_err();
            assert!(error.to_string().contains("longer than the deadline"), "{error}");
        }
    });
}

#[test]
fn a_lease_that_nobody_can_reach_is_said_in_the_readiness() {
    on_cluster(async |cluster| {
        let cut = Arc::new(AtomicBool::new(false));
        let flag = cut.clone();
        let client = faulty(&cluster.client, move |request| {
            let lease = request.uri().path().contains("/leases");
            (lease && flag.load(Ordering::SeqCst)).then_some(Fault::Forbid)
        });
        let leads = process(&cluster, &client, "first", mirroring()).await;
        leads.wait_until_leading().await;
        let waits = process(&cluster, &client, "second", mirroring()).await;
        cluster.env.sleep(Duration::from_secs(5)).await;
        assert!(leads.health().is_ready() && waits.health().is_ready(), "{}", waits.health());
        cut.store(true, Ordering::SeqCst);
        cluster.env.sleep(Duration::from_secs(5)).await;
        for process in [&leads, &waits] {
            let words = process.health().to_string();
            assert!(words.contains("not ok lease the-one (following): not heard of"), "{words}");
            assert!(words.contains("a rule is missing"), "{words}");
        }
        cut.store(false, Ordering::SeqCst);
        // The lease has run out for both: either may have it.
        tokio::select! {
            biased;
            () = leads.wait_until_leading() => {}
            () = waits.wait_until_leading() => {}
        }
        cluster.env.sleep(Duration::from_secs(2)).await;
        assert!(leads.health().is_ready() && waits.health().is_ready(), "{}", waits.health());
        waits.stop().await.unwrap();
        leads.stop().await.unwrap();
    });
}

#[test]
fn a_stop_fits_the_time_that_a_pod_is_given_and_the_lease_is_free_after_it() {
    on_cluster(async |cluster| {
        async fn stuck(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.event(EventType::Normal, "Stuck", "for ever");
            std::future::pending().await
        }
        cluster.create(&config("a", "1")).await;
        // Nor do the events get through.
        let client = faulty(&cluster.client, |request| {
            is(request, "POST", "/events").then_some(Fault::Hang)
        });
        let running = process(&cluster, &client, "first", Controller::new(stuck)).await;
        running.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(1)).await;
        let before = cluster.env.instant();
        running.stop().await.unwrap_err();
        let took = cluster.env.instant() - before;
        assert!(took < Duration::from_secs(30), "{took:?}");
        assert_eq!(holder(&cluster).await.0, "");
    });
}

/// A client that may not read secrets.
fn without_secrets(cluster: &Cluster) -> Client {
    faulty(&cluster.client, |request| is(request, "GET", "/secrets").then_some(Fault::Forbid))
}

#[test]
fn who_cannot_fill_its_caches_lets_others_lead() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let blind = process(&cluster, &without_secrets(&cluster), "blind", mirroring()).await;
        let sighted = process(&cluster, &cluster.client, "sighted", mirroring()).await;
        let records = cluster.runs(&sighted.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done");
        cluster.env.sleep(Duration::from_secs(10)).await;
        assert_eq!((blind.is_leading(), sighted.is_leading()), (false, true));
        assert_eq!(holder(&cluster).await, ("sighted".to_owned(), 0));
        sighted.stop().await.unwrap();
        blind.stop().await.unwrap();
    });
}

#[test]
fn who_cannot_fill_all_its_caches_leads_when_nobody_else_does() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let manager = Manager::new(without_secrets(&cluster), cluster.env.clone());
        let other = Controller::new(idle::<ConfigMap>).named("other").namespace(&cluster.namespace);
        let manager = manager.with(mirroring().namespace(&cluster.namespace)).with(other);
        let began = cluster.env.now();
        let running = manager.lease(lease(&cluster).identity("only")).start().await.unwrap();
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(&*records[0].controller, "other");
        let waited = records[0].time.duration_since(began).as_secs_f64();
        assert!(waited >= 3.0, "others had no time to go first: {waited}");
        running.stop().await.unwrap();
    });
}

#[test]
fn the_lease_goes_last_after_reconciles_and_events() {
    on_cluster(async |cluster| {
        async fn slow(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.env().sleep(Duration::from_secs(5)).await;
            context.apply(secret("last", "1")).await?;
            context.event(EventType::Normal, "Finished", "at last");
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = process(&cluster, &cluster.client, "first", Controller::new(slow)).await;
        running.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(1)).await;
        drop(cluster.writes.take());
        running.stop().await.unwrap();
        let writes = cluster.writes.take();
        let last = |part: &str| writes.iter().rposition(|write| write.contains(part));
        let [made, told, given_back] = ["/secrets/", "/events", "/leases/"].map(last);
        assert!(made.is_some() && made < told && told < given_back, "{writes:#?}");
        assert_eq!(given_back, Some(writes.len() - 1), "{writes:#?}");
        assert_eq!(holder(&cluster).await.0, "");
    });
}

#[test]
fn a_worker_that_outlives_the_grace_writes_nothing_once_another_leads() {
    on_cluster(async |cluster| {
        async fn stubborn(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let (client, env) = (context.client().clone(), context.env().clone());
            let namespace = context.key().namespace().unwrap().to_owned();
            // On a task of its own: dropping the reconcile does not end it.
            drop(tokio::spawn(async move {
                env.sleep(Duration::from_secs(20)).await;
                let api = homeostat::kube::Api::<Secret>::namespaced(client, &namespace);
                let refused = api.create(&Default::default(), &secret("late", "1")).await;
                assert!(matches!(refused.unwrap_err().into(), homeostat::Error::NotLeader));
            }));
            std::future::pending().await
        }
        cluster.create(&config("a", "1")).await;
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let manager =
            manager.lease(lease(&cluster).identity("first")).grace(Duration::from_secs(1));
        let controller = Controller::new(stubborn).namespace(&cluster.namespace);
        let first = manager.with(controller).start().await.unwrap();
        first.wait_until_leading().await;
        let second = process(&cluster, &cluster.client, "second", Controller::new(idle)).await;
        cluster.env.sleep(Duration::from_secs(1)).await;
        let error = first.stop().await.unwrap_err();
        assert!(error.to_string().contains("did not finish within 1s"), "{error}");
        second.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(25)).await;
        assert!(cluster.get::<Secret>("late").await.is_none());
        second.stop().await.unwrap();
    });
}

#[test]
fn a_second_term_begins_with_a_look_at_everything_also_at_what_nobody_touched() {
    on_cluster(async |cluster| {
        for name in ["a", "a-left-out"] {
            cluster.create(&config(name, "1")).await;
        }
        let cut = Arc::new(AtomicBool::new(false));
        let flag = cut.clone();
        let client = faulty(&cluster.client, move |request| {
            let lease = request.uri().path().contains("/leases/");
            (lease && flag.load(Ordering::SeqCst)).then_some(Fault::Hang)
        });
        // What the filter leaves out is nobody's in the second term either.
        let ours = Predicate::new(|change| change.key().name() != "a-left-out");
        let controller = Controller::new(idle).filter(ours);
        let running = process(&cluster, &client, "only", controller).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
        cut.store(true, Ordering::SeqCst);
        cluster.env.sleep(Duration::from_secs(5)).await;
        assert!(!running.is_leading() && running.journal().total() == 1);
        cut.store(false, Ordering::SeqCst);
        running.wait_until_leading().await;
        let records = cluster.runs(&running.journal(), 2).await;
        assert_eq!((records[1].key.name(), &*triggers(&records[1])), ("a", "initial"));
        // Whatever else was to be looked at has been by now.
        cluster.create(&config("z", "1")).await;
        let records = cluster.runs(&running.journal(), 3).await;
        assert_eq!((records.len(), records[2].key.name()), (3, "z"));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_controller_without_lease_works_and_writes_whoever_leads() {
    on_cluster(async |cluster| {
        async fn note(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.apply(secret(context.controller(), "1")).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let first = process(&cluster, &cluster.client, "first", Controller::new(idle)).await;
        first.wait_until_leading().await;
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let here = |controller: Controller<ConfigMap>| controller.namespace(&cluster.namespace);
        let second = manager
            .lease(lease(&cluster).identity("second"))
            .with(here(Controller::new(note).named("always").without_lease()))
            .with(here(Controller::new(note).named("leading")))
            .start()
            .await
            .unwrap();
        let records = cluster.runs(&second.journal(), 1).await;
        assert_eq!((&*records[0].controller, &*endings(&records)[0]), ("always", "done"));
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        cluster.runs(&second.journal(), 2).await;
        assert!(!second.is_leading() && cluster.get::<Secret>("leading").await.is_none());
        first.stop().await.unwrap();
        second.wait_until_leading().await;
        cluster.until_one::<Secret>("leading", "the other's work", |_| true).await;
        second.stop().await.unwrap();
    });
}

#[test]
fn a_lease_in_a_namespace_that_is_not_there_is_said_in_the_readiness() {
    on_cluster(async |cluster| {
        let namespace = format!("{}-later", cluster.namespace);
        let manager = cluster.manager().lease(lease(&cluster).namespace(&namespace));
        let running = manager.start().await.unwrap();
        cluster.env.sleep(Duration::from_secs(5)).await;
        let words = running.health().to_string();
        assert!(words.contains("not ok lease the-one (following): not written for"), "{words}");
        assert!(words.contains(&namespace), "{words}");

        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let wish = object(json!({ "metadata": { "name": namespace } }));
        namespaces.create(&PostParams::default(), &wish).await.unwrap();
        running.wait_until_leading().await;
        assert!(running.health().is_ready(), "{}", running.health());
        running.stop().await.unwrap();
        namespaces.delete(&namespace, &DeleteParams::default()).await.unwrap();
    });
}

#[test]
fn who_may_read_the_lease_but_not_write_it_is_not_ready() {
    on_cluster(async |cluster| {
        let client = faulty(&cluster.client, |request| {
            let writes = request.method() != "GET" && request.uri().path().contains("/leases");
            writes.then_some(Fault::Forbid)
        });
        let reader = process(&cluster, &client, "reader", mirroring()).await;
        cluster.env.sleep(Duration::from_secs(5)).await;
        let words = reader.health().to_string();
        assert!(words.contains("not ok lease the-one (following): not written for"), "{words}");
        assert!(words.contains("a rule is missing"), "{words}");

        // Somebody else works: what this one may not do is not needed.
        let leader = process(&cluster, &cluster.client, "leader", mirroring()).await;
        leader.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(5)).await;
        assert!(leader.health().is_ready() && reader.health().is_ready(), "{}", reader.health());
        leader.stop().await.unwrap();
        cluster.env.sleep(Duration::from_secs(5)).await;
        assert!(!reader.health().is_ready(), "{}", reader.health());
        reader.stop().await.unwrap();
    });
}

#[test]
fn a_process_that_does_not_lead_remembers_only_what_is_there() {
    on_cluster(async |cluster| {
        let first = process(&cluster, &cluster.client, "first", Controller::new(idle)).await;
        first.wait_until_leading().await;
        cluster.create(&config("a", "1")).await;
        // Woken by one cache, it reads another; and it is told of what is not there.
        let owned = Related::owned(Kind::of::<Secret>()).labels("child=yes");
        let named = |event: &EventObject| vec![Key::namespaced(event.namespace().unwrap(), "none")];
        let (told, inbox) = tokio::sync::mpsc::channel(1);
        let second = Controller::new(idle).relates(owned).reads::<Secret>();
        let second = second.watches::<EventObject>(named);
        let second = second.watches_source(Source::channel("outside", inbox));
        let second = process(&cluster, &cluster.client, "second", second).await;
        cluster.env.sleep(Duration::from_secs(3)).await;
        let owned_by = |owner: &ConfigMap, name: &str| {
            json!({ "metadata": { "name": name, "labels": { "child": "yes" }, "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(),
                "uid": owner.uid(), "controller": true,
            }] } })
        };
        let a = cluster.get::<ConfigMap>("a").await.unwrap();
        for round in 0..40 {
            let name = format!("gone-{round}");
            let gone = cluster.create(&config(&name, "1")).await;
            for (owner, child) in [(&a, "of-a"), (&gone, "of-gone")] {
                let child = format!("{child}-{round}");
                cluster.create::<Secret>(owned_by(owner, &child)).await;
            }
            cluster.api::<ConfigMap>().delete(&name, &<_>::default()).await.unwrap();
            for child in ["of-a", "of-gone"] {
                let child = format!("{child}-{round}");
                drop(cluster.api::<Secret>().delete(&child, &<_>::default()).await);
            }
        }
        let unknown = Key::namespaced(&*cluster.namespace, "unknown");
        told.send(unknown).await.unwrap();
        let event = json!({ "metadata": { "name": "e" }, "involvedObject": {
            "namespace": cluster.namespace }, "reason": "x" });
        cluster.create::<EventObject>(event).await;
        cluster.env.sleep(Duration::from_secs(3)).await;
        let there = cluster.list::<ConfigMap>("").await.len();
        let metrics = second.metrics();
        let labels = "{name=\"configmap\",controller=\"configmap\"}";
        let ready = format!("workqueue_depth{labels} {there}\n");
        assert!(metrics.contains(&ready), "{ready}:\n{metrics}");
        let unseen = "homeostat_unseen_writes{controller=\"configmap\"} ";
        let unseen = metrics.split_once(unseen).unwrap().1.lines().next().unwrap();
        assert!(unseen.parse::<usize>().unwrap() <= 16, "{unseen} expectations");

        first.stop().await.unwrap();
        second.wait_until_leading().await;
        cluster.env.sleep(Duration::from_secs(3)).await;
        assert_eq!(second.journal().total(), there as u64, "{}", second.journal());
        second.stop().await.unwrap();
    });
}

#[test]
fn a_lease_is_held_in_the_name_of_its_host_and_keeps_what_others_label_it_with() {
    on_cluster(async |cluster| {
        let running = cluster.manager().lease(lease(&cluster)).start().await.unwrap();
        running.wait_until_leading().await;
        let (holder, _) = holder(&cluster).await;
        let uid = holder.strip_prefix(&format!("{}_", cluster.env.host())).unwrap();
        assert_eq!((uid.len(), uid.split('-').count()), (36, 5), "{holder}");
        let label = json!({ "metadata": { "labels": { "team": "blue" } } });
        let renewed_at = |lease: &LeaseObject| lease.spec.clone().unwrap().renew_time;
        let before = renewed_at(&cluster.patch::<LeaseObject>("the-one", label).await);
        let renewed = |lease: &LeaseObject| renewed_at(lease) > before;
        let after = cluster.until_one::<LeaseObject>("the-one", "a renewal", renewed).await;
        assert_eq!(after.labels()["team"], "blue");
        running.stop().await.unwrap();
    });
}
