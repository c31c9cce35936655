//! What readers and handlers of a cache may rely on, on a scripted server and virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

use super::{
    Caches, Delta, Entry, Expect, Form, Informer, Maker, Scan, Scope, SourceState, Store, selector,
    share,
};
use crate::watch::script::{Answer, End, Script, event, object, refused, streamed};
use crate::{Env, Key, Kind};

const LIMIT: Duration = Duration::from_secs(5);

fn kind() -> Kind {
    Kind::of::<ConfigMap>()
}

fn informer(answers: impl IntoIterator<Item = Answer>) -> Informer {
    let env = Env::simulated(3, Timestamp::UNIX_EPOCH);
    let caches = Caches::new(Script::new(&env, answers).client(), env);
    caches.informer(kind(), Scope::default())
}

fn entry(value: &Value) -> Entry {
    Entry::parse(&kind(), &value.to_string(), false).unwrap()
}

fn with(name: &str, revision: u64, more: &Value) -> Value {
    let mut value = object(name, revision);
    for (field, set) in more.as_object().unwrap() {
        value["metadata"][field] = set.clone();
    }
    value
}

fn said(deltas: &[Delta]) -> Vec<String> {
    deltas
        .iter()
        .map(|delta| {
            let header = &delta.object().header;
            format!("{} {} {}", delta.change, header.key.name(), header.resource_version)
        })
        .collect()
}

#[test]
fn a_restored_server_may_give_another_version_the_number_of_one_of_before() {
    let version = |value: &str| {
        let mut object = object("a", 9);
        object["data"] = json!({ "value": value });
        entry(&object)
    };
    let mut store = Store::default();
    store.apply(version("old"));
    for (new_history, expected) in [(false, vec![]), (true, vec!["updated a 9"])] {
        store.begin_list(new_history);
        assert!(store.apply(version("old")).is_empty(), "nothing has changed");
        assert_eq!(said(&store.apply(version("new"))), expected);
    }
}

#[test]
fn an_entry_keeps_everything_but_managed_fields() {
    let text = r#"{"data":{"k":"a\"b é 😀"},"metadata":{"name":"n","namespace":"ns",
        "uid":"u","resourceVersion":"5","generation":2,"deletionTimestamp":"2026-01-02T03:04:05Z",
        "managedFields":[{"manager":"m","fieldsV1":{"f:data":{}}}],"finalizers":["f"],
        "annotations":{"note":"x"},"labels":{"app":"web"},"ownerReferences":[{"apiVersion":"v1",
        "kind":"Pod","name":"p","uid":"up","controller":true}]},"immutable":false}"#;
    let entry = Entry::parse(&kind(), text, false).unwrap();
    let header = &entry.header;
    assert_eq!(header.key, Key::namespaced("ns", "n"));
    assert_eq!((&*header.uid, &*header.resource_version), ("u", "5"));
    assert_eq!((header.generation, header.is_being_deleted()), (Some(2), true));
    assert_eq!(&*header.controller().unwrap().uid, "up");
    assert_eq!(header.labels["app"], "web");
    assert_eq!(entry.annotations()["note"], "x");

    let mut expected: Value = serde_json::from_str(text).unwrap();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    expected["apiVersion"] = "v1".into();
    expected["kind"] = "ConfigMap".into();
    assert_eq!(entry.value().unwrap(), expected);

    let kept = Entry::parse(&kind(), text, true).unwrap();
    assert!(kept.value().unwrap()["metadata"]["managedFields"].is_array());
}

#[test]
fn alike_objects_share_their_labels_and_owners() {
    let alike = |name| {
        let more = json!({ "labels": { "app": "web" }, "ownerReferences": [{ "uid": "o" }] });
        serde_json::to_string(&with(name, 1, &more)).unwrap()
    };
    let mut maker = Maker::new(Form::new(&kind(), false), None);
    let mut read = |json: &str| maker.entry(&Scan::of(json).unwrap()).unwrap().header;
    let (a, b) = (read(&alike("a")), read(&alike("b")));
    assert!(Arc::ptr_eq(&a.labels, &b.labels));
    assert!(Arc::ptr_eq(&a.owners, &b.owners));
}

#[test]
fn what_a_manager_applied_is_known_without_its_managed_fields() {
    let child = |fields: Value| {
        let ours = json!({ "manager": "us", "operation": "Apply", "fieldsV1": fields });
        let theirs = json!({ "manager": "them", "operation": "Update", "fieldsV1": { "f:x": {} } });
        with("a", 1, &json!({ "managedFields": [ours, theirs] }))
    };
    let (whole, robbed) = (child(json!({ "f:a": {}, "f:b": {} })), child(json!({ "f:a": {} })));
    let header = entry(&whole).header;
    assert!(header.share("us").is_some());
    assert_eq!(header.share("us"), share::of("us", &whole));
    assert_ne!(header.share("us"), share::of("us", &robbed));
    assert_eq!(header.share("them"), None, "an update is no apply");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_lately_is_not_decoded_again() {
    let informer = informer([streamed(&[object("a", 1)], 10, &[], End::Open)]);
    informer.start();
    informer.wait_for_sync().await;
    let read = || informer.get::<ConfigMap>(&Key::namespaced("default", "a")).unwrap().unwrap();
    assert!(Arc::ptr_eq(&read(), &read()));
}

#[tokio::test(start_paused = true)]
async fn few_objects_stay_decoded() {
    let objects: Vec<Value> = (0..100).map(|n| object(&format!("a-{n:02}"), n + 1)).collect();
    let informer = informer([streamed(&objects, 200, &[], End::Open)]);
    informer.start();
    informer.wait_for_sync().await;
    let read = |object: &Value| {
        let key = Key::namespaced("default", object["metadata"]["name"].as_str().unwrap());
        Arc::downgrade(&informer.get::<ConfigMap>(&key).unwrap().unwrap())
    };
    let decoded: Vec<_> = objects.iter().map(read).collect();
    let kept = decoded.iter().filter(|one| one.strong_count() > 0).count();
    assert_eq!(kept, 32);
}

#[tokio::test(start_paused = true)]
async fn what_a_transform_removes_is_not_cached() {
    let env = Env::simulated(3, Timestamp::UNIX_EPOCH);
    let mut large = with("a", 1, &json!({ "labels": { "app": "web" } }));
    large["data"] = json!({ "large": "x".repeat(1000), "small": "y" });
    let script = Script::new(&env, [streamed(&[large], 10, &[], End::Open)]);
    let caches = Caches::new(script.client(), env)
        .with_transform(kind(), |object| {
            object["data"].as_object_mut().unwrap().remove("large");
        })
        .with_transform(kind(), |object| object["data"]["small"] = "z".into());
    let informer = caches.informer(kind(), Scope::default());
    informer.start();
    informer.wait_for_sync().await;
    let cached = informer.entry(&Key::namespaced("default", "a")).unwrap();
    assert_eq!(cached.value().unwrap()["data"], json!({ "small": "z" }));
    assert_eq!(cached.header.labels["app"], "web");
}

#[test]
fn a_list_becomes_exact_deltas() {
    let mut store = Store::default();
    store.begin_list(false);
    for name in ["a", "b", "c"] {
        store.apply(entry(&object(name, 1)));
    }
    assert!(store.end_list("5").is_empty());
    store.begin_list(false);
    assert!(store.apply(entry(&object("a", 1))).is_empty(), "unchanged");
    assert_eq!(said(&store.apply(entry(&object("b", 7)))), ["updated b 7"]);
    assert_eq!(said(&store.apply(entry(&object("d", 8)))), ["added d 8"]);
    assert_eq!(said(&store.end_list("9")), ["deleted c 1"]);
    assert_eq!(store.revision(), Some("9"));
}

#[test]
fn an_older_version_never_replaces_a_newer_one() {
    let mut store = Store::default();
    store.apply(entry(&object("a", 10)));
    assert!(store.apply(entry(&object("a", 9))).is_empty());
    assert!(store.delete(entry(&object("a", 9))).is_none());
    assert_eq!(store.get(&Key::namespaced("default", "a")).unwrap().header.resource_version, "10");
}

#[test]
fn an_object_made_anew_in_a_gap_is_a_deletion_and_an_addition() {
    let mut store = Store::default();
    store.apply(entry(&object("a", 1)));
    let deltas = store.apply(entry(&with("a", 2, &json!({ "uid": "other" }))));
    assert_eq!(said(&deltas), ["deleted a 1", "added a 2"]);
}

#[test]
fn the_owner_index_follows_every_change() {
    let owned = |uid: &str, revision| {
        with("a", revision, &json!({ "ownerReferences": [{ "uid": uid, "name": "o" }] }))
    };
    let mut store = Store::default();
    store.apply(entry(&owned("one", 1)));
    assert_eq!(store.by_owner("one").count(), 1);
    store.apply(entry(&owned("two", 2)));
    assert_eq!((store.by_owner("one").count(), store.by_owner("two").count()), (0, 1));
    store.delete(entry(&owned("two", 3)));
    assert_eq!(store.by_owner("two").count(), 0);
}

#[test]
fn a_namespace_lists_its_own_objects_only() {
    let mut store = Store::default();
    for namespace in ["a", "ab", "b"] {
        store.apply(entry(&with("x", 1, &json!({ "namespace": namespace }))));
    }
    let listed: Vec<_> = store.iter(Some("a")).map(|e| e.header.key.to_string()).collect();
    assert_eq!(listed, ["a/x"]);
    assert_eq!(store.iter(None).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn every_waiter_wakes_when_the_cache_is_in_sync() {
    let informer = informer([refused(500, "later"), streamed(&[], 10, &[], End::Open)]);
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let informer = informer.clone();
            tokio::spawn(async move { informer.wait_for_sync().await })
        })
        .collect();
    informer.start();
    informer.start();
    for waiter in waiters {
        assert!(waiter.await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_is_told_what_is_there_and_a_panicking_one_harms_nobody() {
    let items = [object("a", 1), object("b", 2)];
    let informer = informer([streamed(&items, 10, &[event("ADDED", &object("c", 11))], End::Open)]);
    informer.on_event(|_| panic!("a bug in a handler"));
    informer.start();
    informer.wait_for_revision("11", LIMIT).await.unwrap();
    let told = Arc::<Mutex<Vec<(String, bool)>>>::default();
    let (log, (done, finished)) = (Arc::clone(&told), tokio::sync::oneshot::channel());
    let done = Mutex::new(Some(done));
    informer.on_event(move |delta| {
        let mut log = log.lock().unwrap();
        log.push((delta.key().name().to_owned(), delta.initial));
        if log.len() == 3 {
            done.lock().unwrap().take().unwrap().send(()).unwrap();
        }
    });
    finished.await.unwrap();
    let expected = ["a", "b", "c"].map(|name| (name.to_owned(), true));
    assert_eq!(*told.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn typed_reads_get_list_and_select() {
    let labelled = with("b", 2, &json!({ "labels": { "app": "web" } }));
    let misfit = json!({ "metadata": object("z", 3)["metadata"], "data": 5 });
    let items = [labelled, misfit, object("a", 1)];
    let informer = informer([streamed(&items, 10, &[], End::Open)]);
    informer.start();
    informer.wait_for_sync().await;
    let key = |name| Key::namespaced("default", name);
    let a = informer.get::<ConfigMap>(&key("a")).unwrap().unwrap();
    assert_eq!(a.metadata.name.as_deref(), Some("a"));
    assert!(informer.get::<ConfigMap>(&key("none")).unwrap().is_none());
    assert!(informer.get::<ConfigMap>(&key("z")).unwrap_err().is_terminal());
    let names = |all: Vec<Arc<ConfigMap>>| -> Vec<String> {
        all.iter().map(|one| one.metadata.name.clone().unwrap()).collect()
    };
    let listed = names(informer.list(Some("default")));
    assert_eq!(listed, ["a", "b"], "in the order of keys; the misfit is left out");
    let web = selector::parse("app in (web)").unwrap();
    assert_eq!(names(informer.select(None, &web)), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_index_finds_objects_by_a_field_and_follows_every_change() {
    let on = |name: &str, revision, node: &str| {
        let mut object = object(name, revision);
        object["spec"] = json!({ "nodeName": node });
        object
    };
    let lines = [
        event("MODIFIED", &on("b", 11, "two")),
        event("DELETED", &on("c", 12, "one")),
        event("ADDED", &on("d", 13, "one")),
    ];
    let items = [on("a", 1, "one"), on("b", 2, "one"), on("c", 3, "one")];
    let informer = informer([streamed(&items, 10, &lines, End::Open)]);
    informer.index_field("spec.nodeName");
    informer.start();
    informer.wait_for_revision("13", LIMIT).await.unwrap();
    informer.index("revision", |entry| vec![entry.header.resource_version.clone()]);
    let names = |name: &str, value: &str| -> Vec<String> {
        let found = informer.by_index(name, value).unwrap();
        found.iter().map(|entry| entry.header.key.name().to_owned()).collect()
    };
    assert_eq!(names("spec.nodeName", "one"), ["a", "d"]);
    assert_eq!(names("spec.nodeName", "two"), ["b"]);
    assert_eq!(names("revision", "13"), ["d"], "a late index knows what is there");
    assert!(informer.by_index("other", "x").unwrap_err().is_terminal());
}

#[tokio::test(start_paused = true)]
async fn a_kind_known_only_at_run_time_is_read_as_a_dynamic_object() {
    let mut widget = object("a", 1);
    widget["spec"] = json!({ "size": 3 });
    let env = Env::simulated(3, Timestamp::UNIX_EPOCH);
    let script = Script::new(&env, [streamed(&[widget], 10, &[], End::Open)]);
    let kind = Kind::new("example.com", "v1", "Widget", "widgets", true);
    let informer = Caches::new(script.client(), env).informer(kind, Scope::default());
    informer.start();
    informer.wait_for_sync().await;
    let widget = informer.get::<DynamicObject>(&Key::namespaced("default", "a")).unwrap().unwrap();
    assert_eq!(widget.types.as_ref().unwrap().api_version, "example.com/v1");
    assert_eq!(widget.data["spec"]["size"], 3);
}

#[tokio::test(start_paused = true)]
async fn one_object_is_followed_by_name_and_metadata_alone_on_request() {
    let env = Env::simulated(3, Timestamp::UNIX_EPOCH);
    let script = Script::new(&env, [streamed(&[object("a", 1)], 10, &[], End::Open)]);
    let scope = Scope::object(&Key::namespaced("default", "a")).metadata_only();
    let informer = Caches::new(script.client(), env).informer(kind(), scope);
    informer.start();
    informer.wait_for_sync().await;
    let asked = &script.asked()[0];
    assert_eq!(asked.get("fieldSelector"), Some("metadata.name=a"));
    assert_eq!(asked.accept, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let key = Key::namespaced("default", "a");
    let meta = informer.get::<PartialObjectMeta<ConfigMap>>(&key).unwrap().unwrap();
    assert_eq!(meta.metadata.name.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_group_follows_what_it_is_told_to_and_tells_what_it_leaves() {
    let env = Env::simulated(3, Timestamp::UNIX_EPOCH);
    let script = Script::new(
        &env,
        [
            streamed(&[object("a", 1)], 10, &[], End::Open),
            streamed(&[object("b", 2)], 10, &[], End::Open),
            streamed(&[object("c", 3)], 10, &[], End::Open),
        ],
    );
    let group = Caches::new(script.client(), env).group(kind());
    let told = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&told);
    group.on_event(move |delta| {
        log.lock().unwrap().push(format!("{} {}", delta.change, delta.key().name()));
    });
    let only = |name: &str| Scope::object(&Key::namespaced("default", name));
    let names = || -> Vec<String> {
        group.entries().iter().map(|entry| entry.header.key.name().to_owned()).collect()
    };
    group.follow([only("a")]);
    assert!(group.wait_for_sync().await);
    group.follow([only("a"), only("b")]);
    assert!(group.wait_for_sync().await);
    assert_eq!(names(), ["a", "b"]);
    group.follow([only("b"), only("c")]);
    assert!(group.wait_for_sync().await);
    assert_eq!(names(), ["b", "c"]);
    assert_eq!(*told.lock().unwrap(), ["added a", "added b", "deleted a", "added c"]);
    assert!(group.get::<ConfigMap>(&Key::namespaced("default", "a")).unwrap().is_none());
    assert_eq!(script.asked().len(), 3, "what stays is not asked for again");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_write_ends_when_the_cache_shows_it_or_when_time_is_up() {
    let lines = [event("MODIFIED", &object("a", 11)), event("DELETED", &object("b", 12))];
    let items = [object("a", 1), object("b", 2)];
    let informer = informer([streamed(&items, 10, &lines, End::Open)]);
    informer.start();
    let key = |name| Key::namespaced("default", name);
    let version = |version: &str| Expect::Version(version.to_owned());
    informer.wait_for_object(&key("a"), "uid-a", &version("11"), LIMIT).await.unwrap();
    informer.wait_for_sync().await;
    informer.wait_for_object(&key("b"), "uid-b", &Expect::Deleted, LIMIT).await.unwrap();
    informer.wait_for_object(&key("b"), "uid-b", &version("12"), LIMIT).await.unwrap();
    let late = informer.wait_for_object(&key("a"), "uid-a", &version("99"), LIMIT).await;
    assert!(late.unwrap_err().is_conflict());
    assert!(informer.wait_for_revision("99", LIMIT).await.unwrap_err().is_conflict());
}

#[tokio::test(start_paused = true)]
async fn informers_are_shared_and_stop_with_their_last_handle() {
    let env = Env::simulated(3, Timestamp::UNIX_EPOCH);
    let script = Script::new(&env, (0..100).map(|_| refused(500, "no")));
    let caches = Caches::new(script.client(), env.clone());
    let first = caches.informer(kind(), Scope::default());
    let second = caches.informer(kind(), Scope::default());
    let other = caches.informer(kind(), Scope::namespace("default"));
    assert_eq!(caches.informers().len(), 2);
    first.start();
    second.start();
    env.sleep(Duration::from_secs(60)).await;
    let asked = script.asked().len();
    assert!(asked > 1);
    drop((first, second));
    env.sleep(Duration::from_secs(600)).await;
    assert_eq!(script.asked().len(), asked);
    caches.stop();
    assert_eq!(other.state(), SourceState::Stopped);
    assert!(!other.wait_for_sync().await);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_does_not_slow_another() {
    let env = Env::simulated(3, Timestamp::UNIX_EPOCH);
    let well = Script::new(&env, [streamed(&[object("a", 1)], 10, &[], End::Open)]);
    let ill = Script::new(&env, (0..100).map(|_| refused(403, "no")));
    let (well, ill) =
        (Caches::new(well.client(), env.clone()), Caches::new(ill.client(), env.clone()));
    let ill = ill.informer(kind(), Scope::default());
    let well = well.informer(kind(), Scope::default());
    ill.start();
    well.start();
    let start = env.instant();
    assert!(well.wait_for_sync().await);
    assert_eq!(env.instant(), start);
    assert!(!ill.is_synced());
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_panics_is_pending_in_words_and_begins_again() {
    let lines = streamed(&[object("a", 1)], 10, &[], End::Panic);
    let well = streamed(&[object("a", 1), object("b", 11)], 12, &[], End::Open);
    let informer = informer([lines, well]);
    let told = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&told);
    informer.on_event(move |delta| log.lock().unwrap().push(delta.key().name().to_owned()));
    informer.start();
    let pending = |state: &SourceState| matches!(state, SourceState::Pending(_));
    let SourceState::Pending(why) = informer.wait_for_state(pending).await else { panic!() };
    assert!(why.contains("its informer panicked: the line is cursed"), "{why}");
    informer.wait_for_state(|state| *state == SourceState::Synced).await;
    assert_eq!(*told.lock().unwrap(), ["a", "b"], "handlers are still told, and nothing twice");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_hears_of_changes_until_it_is_dropped() {
    let (env, changes) =
        (Env::simulated(3, Timestamp::UNIX_EPOCH), (11..14).map(|n| object("a", n)));
    let lines: Vec<String> = changes.map(|object| event("MODIFIED", &object)).collect();
    let script = Script::new(&env, [streamed(&[object("a", 1)], 10, &lines, End::Open)]);
    let caches = Caches::new(script.client(), env.clone());
    let informer = caches.informer(kind(), Scope::default());
    let told = Arc::<Mutex<Vec<String>>>::default();
    let held = Arc::new(());
    let (log, witness) = (Arc::clone(&told), Arc::downgrade(&held));
    let subscription = informer.subscribe(move |delta| {
        let _ = &held;
        log.lock().unwrap().push(delta.object().header.resource_version.clone());
    });
    informer.start();
    subscription.joined().await;
    informer.wait_for_revision("13", LIMIT).await.unwrap();
    assert_eq!(*told.lock().unwrap(), ["1", "11", "12", "13"]);
    drop(subscription);
    informer.subscribe(|_| {}).joined().await;
    assert!(witness.upgrade().is_none(), "what nobody holds any more is let go of");
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_begins_again_is_not_taken_back_by_a_server_that_lags_behind() {
    let lines = streamed(&[object("a", 1), object("b", 9)], 10, &[], End::Panic);
    let lags = || streamed(&[object("a", 1)], 5, &[], End::Open);
    let well = streamed(&[object("a", 1), object("b", 9)], 12, &[], End::Open);
    let informer = informer([lines, lags(), well]);
    let told = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&told);
    informer.on_event(move |delta| {
        log.lock().unwrap().push(format!("{:?} {}", delta.change, delta.key().name()));
    });
    informer.start();
    informer.wait_for_revision("12", LIMIT).await.unwrap();
    assert_eq!(*told.lock().unwrap(), ["Added a", "Added b"], "nothing was deleted");
}
