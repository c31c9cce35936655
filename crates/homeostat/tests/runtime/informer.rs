//! Informers on a real API: what is written is seen, in order, and can be waited for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::cache::{Caches, Expect, Informer, Scope, SourceState, revision, selector};
use homeostat::kube::api::{Api, DeleteParams, Patch, PatchParams};
use homeostat::{Key, Kind};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::cluster::{Cluster, config, object, on_cluster, on_threads, secret};

const LIMIT: Duration = Duration::from_secs(20);

async fn follow(cluster: &Cluster, labels: Option<&str>) -> (Caches, Informer) {
    let caches = Caches::new(cluster.client.clone(), cluster.env.clone());
    let namespace = Some(cluster.namespace.clone());
    let scope = Scope { namespace, labels: labels.map(str::to_owned), ..Scope::default() };
    let informer = caches.informer(Kind::of::<ConfigMap>(), scope);
    informer.start();
    let synced = cluster.env.timeout(LIMIT, informer.wait_for_sync()).await;
    assert_eq!(synced, Ok(true), "{:?}", informer.state());
    (caches, informer)
}

fn version(object: &ConfigMap) -> Expect {
    Expect::Version(object.metadata.resource_version.clone().unwrap())
}

#[test]
fn what_was_written_can_be_waited_for_and_read() {
    on_cluster(async |cluster| {
        let before = cluster.create(&config("before", "1")).await;
        let (_caches, informer) = follow(&cluster, None).await;
        assert_eq!(
            informer.get::<ConfigMap>(&Key::of(&before)).unwrap().as_deref(),
            Some(&stripped(before))
        );

        let after = cluster.create(&config("after", "1")).await;
        let (key, uid) = (Key::of(&after), after.metadata.uid.clone().unwrap());
        informer.wait_for_object(&key, &uid, &version(&after), LIMIT).await.unwrap();
        assert_eq!(informer.get::<ConfigMap>(&key).unwrap().as_deref(), Some(&stripped(after)));

        let api: Api<ConfigMap> = cluster.api();
        let patch = Patch::Merge(json!({ "data": { "value": "2" } }));
        let changed = api.patch("after", &PatchParams::default(), &patch).await.unwrap();
        informer.wait_for_object(&key, &uid, &version(&changed), LIMIT).await.unwrap();
        let cached = informer.get::<ConfigMap>(&key).unwrap().unwrap();
        assert_eq!(cached.data.as_ref().unwrap()["value"], "2");

        api.delete("after", &DeleteParams::default()).await.unwrap();
        informer.wait_for_object(&key, &uid, &Expect::Deleted, LIMIT).await.unwrap();
        assert!(informer.get::<ConfigMap>(&key).unwrap().is_none());
    });
}

/// The cache does not keep managed fields.
fn stripped(mut object: ConfigMap) -> ConfigMap {
    object.metadata.managed_fields = None;
    object
}

#[test]
fn handlers_hear_of_every_change_in_order() {
    on_cluster(async |cluster| {
        let (_caches, informer) = follow(&cluster, None).await;
        let told = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&told);
        informer.on_event(move |delta| {
            if delta.key().name() == "x" {
                log.lock().unwrap().push(format!("{} {}", delta.change, delta.initial));
            }
        });
        let made = cluster.create(&config("x", "1")).await;
        let api: Api<ConfigMap> = cluster.api();
        let patch = Patch::Merge(json!({ "data": { "value": "2" } }));
        api.patch("x", &PatchParams::default(), &patch).await.unwrap();
        api.delete("x", &DeleteParams::default()).await.unwrap();
        let last = cluster.create(&config("last", "1")).await;
        let uid = last.metadata.uid.clone().unwrap();
        informer.wait_for_object(&Key::of(&last), &uid, &version(&last), LIMIT).await.unwrap();
        assert_eq!(*told.lock().unwrap(), ["added false", "updated false", "deleted false"]);
        let uid = made.metadata.uid.unwrap();
        let key = Key::namespaced(cluster.namespace.clone(), "x");
        informer.wait_for_object(&key, &uid, &Expect::Deleted, LIMIT).await.unwrap();
    });
}

#[test]
fn an_object_that_leaves_the_selection_is_told_as_deleted() {
    on_cluster(async |cluster| {
        let (_caches, informer) = follow(&cluster, Some("app in (web)")).await;
        let labelled = json!({ "metadata": { "name": "x", "labels": { "app": "web" } } });
        let made: ConfigMap = cluster.create(&object(labelled)).await;
        let (key, uid) = (Key::of(&made), made.metadata.uid.clone().unwrap());
        informer.wait_for_object(&key, &uid, &version(&made), LIMIT).await.unwrap();
        let web = selector::parse("app=web").unwrap();
        assert_eq!(informer.select::<ConfigMap>(None, &web).len(), 1);
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": "other" } } }));
        let api: Api<ConfigMap> = cluster.api();
        api.patch("x", &PatchParams::default(), &patch).await.unwrap();
        informer.wait_for_object(&key, &uid, &Expect::Deleted, LIMIT).await.unwrap();
    });
}

#[test]
fn a_kind_the_api_does_not_serve_is_a_pending_source() {
    on_cluster(async |cluster| {
        let caches = Caches::new(cluster.client.clone(), cluster.env.clone());
        let kind = Kind::new("nowhere.example.com", "v1", "Thing", "things", true);
        let informer = caches.informer(kind, Scope::default());
        informer.start();
        let state = informer.wait_for_state(|state| matches!(state, SourceState::Pending(_)));
        let state = cluster.env.timeout(LIMIT, state).await.unwrap();
        let SourceState::Pending(why) = state else { panic!("{state:?}") };
        assert!(why.contains("CustomResourceDefinition"), "{why}");
    });
}

#[test]
fn a_handler_that_blocks_holds_up_its_own_informer_alone_and_little_is_kept_for_it() {
    on_threads(async |cluster| {
        let caches = Caches::new(cluster.client.clone(), cluster.env.clone());
        let scope = || Scope::namespace(&cluster.namespace);
        let slow = caches.informer(Kind::of::<ConfigMap>(), scope());
        let well = caches.informer(Kind::of::<Secret>(), scope());
        let told = Arc::<Mutex<Vec<String>>>::default();
        let (log, (open, gate)) = (Arc::clone(&told), std::sync::mpsc::channel::<()>());
        let gate = Mutex::new(gate);
        slow.on_event(move |delta| {
            if log.lock().unwrap().is_empty() {
                // For as long as the other end is there.
                let _ = gate.lock().unwrap().recv();
            }
            log.lock().unwrap().push(delta.object().header.resource_version.clone());
        });
        slow.start();
        well.start();
        assert!(well.wait_for_sync().await);
        cluster.create(&config("a", "0")).await;
        let mut last = String::new();
        for value in 1..=500 {
            let patch = json!({ "data": { "value": value.to_string() } });
            let changed = cluster.patch::<ConfigMap>("a", patch).await;
            last = changed.metadata.resource_version.unwrap();
        }
        let secret = cluster.create(&secret("s", "1")).await;
        let (key, uid) = (Key::of(&secret), secret.metadata.uid.unwrap());
        let version = Expect::Version(secret.metadata.resource_version.unwrap());
        well.wait_for_object(&key, &uid, &version, LIMIT).await.unwrap();
        assert!(told.lock().unwrap().is_empty(), "it still blocks");
        // What it has not heard of is not in the cache either: it waits in the connection.
        assert!(slow.len() <= 1);
        drop(open);
        slow.wait_for_revision(&last, LIMIT).await.unwrap();
        let told = told.lock().unwrap();
        assert_eq!(told.last(), Some(&last), "and hears everything in the end");
        assert!(told.is_sorted_by(|a, b| revision::compare(a, b).is_some_and(|it| it.is_lt())));
        caches.stop();
    });
}
