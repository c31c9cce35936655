use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams,
};
use serde_json::{Value, json};

use super::{api, client, client_of, create};

fn config_map(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": app}},
    })
}

fn word(event: WatchEvent<DynamicObject>) -> String {
    match event {
        WatchEvent::Added(object) => format!("added {}", object.metadata.name.unwrap()),
        WatchEvent::Modified(object) => format!("modified {}", object.metadata.name.unwrap()),
        WatchEvent::Deleted(object) => format!("deleted {}", object.metadata.name.unwrap()),
        WatchEvent::Bookmark(mark) if mark.metadata.annotations.is_empty() => "bookmark".into(),
        WatchEvent::Bookmark(_) => "initial end".into(),
        WatchEvent::Error(status) => format!("error {}", status.code),
    }
}

async fn events(api: &Api<DynamicObject>, params: &WatchParams, from: &str) -> Vec<String> {
    let stream = api.watch(params, from).await.unwrap();
    stream.map_ok(word).try_collect().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_is_deleted_for_that_watcher() {
    let maps = api(&client(), "", "ConfigMap");
    let made = create(&maps, config_map("a", "web")).await;
    let from = made.metadata.resource_version.unwrap();
    let away = Patch::Merge(json!({"metadata": {"labels": {"app": "api"}}}));
    maps.patch("a", &PatchParams::default(), &away).await.unwrap();
    let back = Patch::Merge(json!({"metadata": {"labels": {"app": "web"}}}));
    maps.patch("a", &PatchParams::default(), &back).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let web = WatchParams::default().labels("app=web").timeout(1);
    assert_eq!(events(&maps, &web, &from).await, ["deleted a", "added a", "deleted a", "bookmark"]);
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_marked_bookmark() {
    let maps = api(&client(), "", "ConfigMap");
    create(&maps, config_map("a", "web")).await;
    create(&maps, config_map("b", "web")).await;
    let params = WatchParams::default().initial_events().timeout(1);
    let seen = events(&maps, &params, "").await;
    assert_eq!(seen, ["added a", "added b", "initial end", "bookmark"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_to_those_who_ask() {
    let maps = api(&client(), "", "ConfigMap");
    let seen = events(&maps, &WatchParams::default().timeout(150), "0").await;
    assert_eq!(seen, ["initial end", "bookmark", "bookmark", "bookmark"]);
    let plain = WatchParams::default().timeout(150).disable_bookmarks();
    assert_eq!(events(&maps, &plain, "0").await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_forgotten_is_an_expired_error_in_the_stream() {
    let client = client_of(|config| homeostat_apiserver::ServerConfig { history: 2, ..config });
    let maps = api(&client, "", "ConfigMap");
    let first = create(&maps, config_map("a", "web")).await.metadata.resource_version.unwrap();
    for name in ["b", "c", "d"] {
        create(&maps, config_map(name, "web")).await;
    }
    assert_eq!(events(&maps, &WatchParams::default().timeout(1), &first).await, ["error 410"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_is_told_and_no_change_is_skipped() {
    let client = client_of(|config| homeostat_apiserver::ServerConfig { history: 2, ..config });
    let maps = api(&client, "", "ConfigMap");
    let first = create(&maps, config_map("a", "web")).await.metadata.resource_version.unwrap();
    let plain = WatchParams::default().timeout(200).disable_bookmarks();
    let mut stream = maps.watch(&plain, &first).await.unwrap().map_ok(word).boxed();
    create(&maps, config_map("b", "web")).await;
    assert_eq!(stream.try_next().await.unwrap().unwrap(), "added b");
    let later = ["c", "d", "e", "f", "g"];
    for name in later {
        create(&maps, config_map(name, "web")).await;
    }
    let mut seen: Vec<String> = stream.try_collect().await.unwrap();
    assert_eq!(seen.pop().as_deref(), Some("error 410"));
    let expected = later.map(|name| format!("added {name}"));
    assert_eq!(seen, expected[..seen.len()], "in order, as far as it got");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_length_of_its_own_lasts_half_an_hour_or_more() {
    let maps = api(&client(), "", "ConfigMap");
    let seen = events(&maps, &WatchParams::default().timeout(0), "0").await;
    assert!(seen.len() >= 30, "one bookmark a minute, not {}", seen.len());
}

#[tokio::test(start_paused = true)]
async fn an_absurd_length_of_a_watch_is_cut_down() {
    let path = format!("/api/v1/configmaps?watch=1&resourceVersion=0&timeoutSeconds={}", i64::MAX);
    let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    assert_eq!(client().send(request).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_forgotten_an_hour_after_it_was_last_written() {
    let events = api(&client(), "", "Event");
    let event = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"namespace": "default"},
        })
    };
    create(&events, event("old")).await;
    create(&events, event("repeated")).await;
    tokio::time::advance(std::time::Duration::from_secs(3000)).await;
    let again = Patch::Merge(json!({"count": 2}));
    events.patch("repeated", &PatchParams::default(), &again).await.unwrap();
    tokio::time::advance(std::time::Duration::from_secs(601)).await;
    create(&events, event("new")).await;
    let left = events.list(&kube::api::ListParams::default()).await.unwrap();
    let left: Vec<_> = left.iter().filter_map(|event| event.metadata.name.as_deref()).collect();
    assert_eq!(left, ["new", "repeated"]);
}

#[tokio::test(start_paused = true)]
async fn whatever_happened_within_five_minutes_can_be_watched_however_much_it_was() {
    let maps = api(&client(), "", "ConfigMap");
    let made = create(&maps, config_map("a", "web")).await;
    let from = made.metadata.resource_version.unwrap();
    for count in 0..4200 {
        let patch = Patch::Merge(json!({"data": {"count": count.to_string()}}));
        maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    }
    let seen = events(&maps, &WatchParams::default().timeout(1), &from).await;
    assert_eq!(seen.iter().filter(|event| *event == "modified a").count(), 4200);
}

#[tokio::test(start_paused = true)]
async fn what_is_older_than_ten_minutes_is_forgotten_with_the_next_write() {
    let maps = api(&client(), "", "ConfigMap");
    let made = create(&maps, config_map("a", "web")).await;
    let from = made.metadata.resource_version.unwrap();
    create(&maps, config_map("b", "web")).await;
    for name in ["c", "d", "e"] {
        tokio::time::advance(Duration::from_secs(301)).await;
        create(&maps, config_map(name, "web")).await;
    }
    let seen = events(&maps, &WatchParams::default().timeout(1), &from).await;
    assert_eq!(seen, ["error 410"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_gone_after_an_hour_though_nobody_writes_anything() {
    let events = api(&client(), "", "Event");
    let about = json!({"kind": "Pod", "namespace": "default", "name": "p"});
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": about, "reason": "R", "message": "m", "type": "Normal"});
    create(&events, event).await;
    tokio::time::advance(Duration::from_secs(3599)).await;
    assert_eq!(events.list(&ListParams::default()).await.unwrap().items.len(), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(events.list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_first_objects_are_read_slowly_is_over_in_its_time() {
    let maps = api(&client(), "", "ConfigMap");
    for name in ["a", "b", "c", "d", "e"] {
        let mut map = config_map(name, "web");
        map["data"] = json!({"filling": "x".repeat(200_000)});
        create(&maps, map).await;
    }
    let params = WatchParams::default().initial_events().timeout(10);
    let mut stream = maps.watch(&params, "").await.unwrap().map_ok(word).boxed();
    assert_eq!(stream.try_next().await.unwrap().unwrap(), "added a");
    tokio::time::advance(Duration::from_secs(11)).await;
    let rest: Vec<String> = stream.try_collect().await.unwrap();
    assert_eq!(rest, ["added b"], "what was made already, and no more");
}
