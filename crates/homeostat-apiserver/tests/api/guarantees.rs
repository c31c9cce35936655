//! The guarantees of a watch as clients see them, each by name, over a random history. The same
//! guarantees of the store itself are property tests beside it; that the events of one commit come
//! together can only be seen there, because no request of the API writes two objects of a kind.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use homeostat_env::Env;
use jiff::Timestamp;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams,
};
use serde_json::{Value, json};

use super::{api, client, create};

/// What a watch tells: the word, the name, the revision, the value.
type Told = (&'static str, String, u64, Value);

fn told(word: &'static str, object: &DynamicObject) -> Told {
    let revision = object.metadata.resource_version.as_ref().unwrap().parse().unwrap();
    let name = object.metadata.name.clone().unwrap_or_default();
    (word, name, revision, object.data["data"]["n"].clone())
}

async fn watch(api: &Api<DynamicObject>, params: &WatchParams, from: u64) -> Vec<Told> {
    let stream = api.watch(params, &from.to_string()).await.unwrap();
    let events = stream.map_ok(|event| match event {
        WatchEvent::Added(object) => told("added", &object),
        WatchEvent::Modified(object) => told("modified", &object),
        WatchEvent::Deleted(object) => told("deleted", &object),
        WatchEvent::Bookmark(mark) => (
            "bookmark",
            String::new(),
            mark.metadata.resource_version.parse().unwrap(),
            json!(null),
        ),
        WatchEvent::Error(status) => panic!("{status:?}"),
    });
    events.try_collect().await.unwrap()
}

fn plain() -> WatchParams {
    WatchParams::default().timeout(1).disable_bookmarks()
}

/// A hundred writes of a few objects: where they began, and what each did.
async fn history(api: &Api<DynamicObject>) -> (u64, Vec<Told>) {
    let env = Env::simulated(7, Timestamp::UNIX_EPOCH);
    let begun = api.list(&ListParams::default()).await.unwrap();
    let begun = begun.metadata.resource_version.unwrap().parse().unwrap();
    let (mut live, mut done): (BTreeMap<String, Value>, Vec<Told>) = (BTreeMap::new(), Vec::new());
    for n in 0..100_u64 {
        let name = format!("map-{}", env.random_below(5));
        let app = if env.random_below(2) == 0 { "web" } else { "db" };
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"app": app}}, "data": {"n": n.to_string()},
        });
        let event = match live.get(&name) {
            None => told("added", &create(api, object.clone()).await),
            Some(last) if env.random_below(4) == 0 => {
                let last = last["data"]["n"].clone();
                api.delete(&name, &DeleteParams::default()).await.unwrap();
                let after = api.list(&ListParams::default()).await.unwrap();
                let revision = after.metadata.resource_version.unwrap().parse().unwrap();
                ("deleted", name.clone(), revision, last)
            }
            Some(_) => {
                let patch = Patch::Merge(&object);
                told("modified", &api.patch(&name, &PatchParams::default(), &patch).await.unwrap())
            }
        };
        if event.0 == "deleted" {
            live.remove(&name)
        } else {
            live.insert(name, object)
        };
        done.push(event);
    }
    (begun, done)
}

#[tokio::test(start_paused = true)]
async fn ordered_unique_and_reliable_a_watch_tells_every_write_once_and_in_order() {
    let maps = api(&client(), "", "ConfigMap");
    let (begun, done) = history(&maps).await;
    let told = watch(&maps, &plain(), begun).await;
    assert!(told.windows(2).all(|pair| pair[0].2 < pair[1].2));
    assert_eq!(told, done);
}

#[tokio::test(start_paused = true)]
async fn resumable_a_watch_goes_on_after_any_revision_it_has_told() {
    let maps = api(&client(), "", "ConfigMap");
    let (_, done) = history(&maps).await;
    for at in (0..done.len()).step_by(7) {
        assert_eq!(watch(&maps, &plain(), done[at].2).await, done[at + 1..]);
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarkable_nothing_is_missed_after_a_bookmark() {
    let client = client();
    let maps = api(&client, "", "ConfigMap");
    let (begun, _) = history(&maps).await;
    // What others write moves the bookmark, too.
    create(
        &api(&client, "", "Secret"),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
    )
    .await;
    let first = watch(&maps, &WatchParams::default().timeout(1), begun).await;
    let (word, _, bookmark, _) = first.last().unwrap();
    assert_eq!(*word, "bookmark");
    assert!(*bookmark > first[first.len() - 2].2);
    for map in maps.list(&ListParams::default()).await.unwrap() {
        maps.delete(&map.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
    }
    let (_, more) = history(&maps).await;
    let told = watch(&maps, &plain(), *bookmark).await;
    let cleared = told.iter().take_while(|event| event.0 == "deleted").count();
    assert!(cleared > 0);
    assert_eq!(told[cleared..], more);
}

#[tokio::test(start_paused = true)]
async fn filtered_a_watch_of_a_selection_is_the_history_of_that_selection() {
    let maps = api(&client(), "", "ConfigMap");
    let (begun, _) = history(&maps).await;
    let mut selected: BTreeMap<String, Value> = BTreeMap::new();
    for (word, name, _, value) in watch(&maps, &plain().labels("app=web"), begun).await {
        // Nothing is added twice, changed before it was added, or deleted when not there.
        assert_eq!(selected.contains_key(&name), word != "added", "{word} {name}");
        if word == "deleted" {
            selected.remove(&name)
        } else {
            selected.insert(name, value)
        };
    }
    let web = maps.list(&ListParams::default().labels("app=web")).await.unwrap();
    let listed: BTreeMap<String, Value> = web
        .iter()
        .map(|map| (map.metadata.name.clone().unwrap(), map.data["data"]["n"].clone()))
        .collect();
    assert_eq!(selected, listed);
}

#[tokio::test(start_paused = true)]
async fn created_and_previous_a_new_object_is_added_and_a_deleted_one_comes_as_it_last_was() {
    let maps = api(&client(), "", "ConfigMap");
    let (begun, _) = history(&maps).await;
    let mut live: BTreeMap<String, (u64, Value)> = BTreeMap::new();
    for (word, name, revision, value) in watch(&maps, &plain(), begun).await {
        match (word, live.get(&name).cloned()) {
            ("added", None) => drop(live.insert(name, (revision, value))),
            ("modified", Some((before, _))) => {
                assert!(before < revision);
                live.insert(name, (revision, value));
            }
            ("deleted", Some((before, last))) => {
                assert!(before < revision, "a deletion has a revision of its own");
                assert_eq!(last, value);
                live.remove(&name);
            }
            other => panic!("{other:?}"),
        }
    }
}
