use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use serde_json::json;

use super::client;

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("key".into(), value.into())])),
        ..ConfigMap::default()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_created_can_be_read_listed_updated_and_deleted() {
    let api: Api<ConfigMap> = Api::default_namespaced(client());
    let made = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert!(made.uid().is_some_and(|uid| uid.len() == 36));
    assert_eq!(api.get("a").await.unwrap().metadata, made.metadata);

    let mut next = made.clone();
    next.data = Some(BTreeMap::from([("key".into(), "2".into())]));
    let updated = api.replace("a", &PostParams::default(), &next).await.unwrap();
    assert_ne!(updated.resource_version(), made.resource_version());

    let listed = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let kube::Error::Api(missing) = api.get("a").await.unwrap_err() else { panic!() };
    assert_eq!((missing.code, missing.reason.as_str()), (404, "NotFound"));
    assert_eq!(missing.message, "configmaps \"a\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_stale_update_is_a_conflict_and_writes_nothing() {
    let api: Api<ConfigMap> = Api::default_namespaced(client());
    let old = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let mut newer = old.clone();
    newer.data = Some(BTreeMap::from([("key".into(), "2".into())]));
    api.replace("a", &PostParams::default(), &newer).await.unwrap();
    let error = api.replace("a", &PostParams::default(), &old).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.reason == "Conflict"));
}

#[tokio::test(start_paused = true)]
async fn an_update_that_changes_nothing_keeps_the_revision() {
    let api: Api<ConfigMap> = Api::default_namespaced(client());
    let made = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let same = api.replace("a", &PostParams::default(), &made).await.unwrap();
    assert_eq!(same.resource_version(), made.resource_version());
    let patch = Patch::Merge(json!({"data": {"key": "1"}}));
    let same = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(same.resource_version(), made.resource_version());
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_every_change_after_its_revision_in_order() {
    let client = client();
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let start = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let made = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"key": "2"}}));
    api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();

    let mut events = Vec::new();
    let stream = api.watch(&WatchParams::default().timeout(5), &start).await.unwrap();
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.try_next().await.unwrap() {
        events.push(match event {
            WatchEvent::Added(object) => ("added", object.resource_version()),
            WatchEvent::Modified(object) => ("modified", object.resource_version()),
            WatchEvent::Deleted(object) => ("deleted", object.resource_version()),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => panic!("{status:?}"),
        });
    }
    let words: Vec<&str> = events.iter().map(|(word, _)| *word).collect();
    assert_eq!(words, ["added", "modified", "deleted"]);
    let revisions: Vec<u64> =
        events.iter().map(|(_, revision)| revision.as_ref().unwrap().parse().unwrap()).collect();
    assert!(revisions.is_sorted() && revisions[0] < revisions[1] && revisions[1] < revisions[2]);
    assert_eq!(revisions[0].to_string(), made.resource_version().unwrap());
}

#[tokio::test(start_paused = true)]
async fn pages_show_the_state_of_the_first_one() {
    let api: Api<ConfigMap> = Api::default_namespaced(client());
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    api.delete("c", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &config_map("d", "1")).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let second = api.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    let names: Vec<String> = second.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["c"]);
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
}
