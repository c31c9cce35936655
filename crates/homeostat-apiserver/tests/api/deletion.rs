use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::{api, client, cluster_api, create, refusal};

fn config_map(name: &str, metadata: Value) -> Value {
    let mut metadata = metadata;
    metadata["name"] = name.into();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_the_object_until_it_is_removed() {
    let maps = api(&client(), "", "ConfigMap");
    create(&maps, config_map("a", json!({"finalizers": ["example.com/hold"]}))).await;
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let going = maps.get("a").await.unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());

    let more = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold", "b.c/d"]}}));
    let refused = maps.patch("a", &PatchParams::default(), &more).await;
    assert_eq!(refusal(refused), (422, "Invalid".into()));

    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("a", &PatchParams::default(), &none).await.unwrap();
    assert_eq!(refusal(maps.get("a").await), (404, "NotFound".into()));
}

#[tokio::test(start_paused = true)]
async fn a_delete_with_another_uid_is_a_conflict() {
    let maps = api(&client(), "", "ConfigMap");
    create(&maps, config_map("a", json!({}))).await;
    let preconditions = Preconditions { uid: Some("other".into()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    assert_eq!(refusal(maps.delete("a", &params).await), (409, "Conflict".into()));
    maps.get("a").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn propagation_is_left_to_the_garbage_collector_as_a_finalizer() {
    let client = client();
    let maps = api(&client, "", "ConfigMap");
    create(&maps, config_map("a", json!({}))).await;
    maps.delete("a", &DeleteParams::foreground()).await.unwrap();
    let going = maps.get("a").await.unwrap();
    assert_eq!(going.metadata.finalizers, Some(vec!["foregroundDeletion".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_its_labels() {
    let maps = api(&client(), "", "ConfigMap");
    create(&maps, config_map("a", json!({"labels": {"app": "web"}}))).await;
    create(&maps, config_map("b", json!({"labels": {"app": "api"}}))).await;
    let web = ListParams::default().labels("app=web");
    maps.delete_collection(&DeleteParams::default(), &web).await.unwrap();
    let left = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let maps = api(&client(), "", "ConfigMap");
    let made = create(&maps, config_map("a", json!({}))).await;
    maps.delete("a", &DeleteParams::default().dry_run()).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"x": "y"}}));
    let shown = maps.patch("a", &PatchParams::default().dry_run(), &patch).await.unwrap();
    assert_eq!(shown.data["data"]["x"], "y");
    let kept = maps.get("a").await.unwrap();
    assert_eq!(kept.metadata.resource_version, made.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_never_deleted_across_namespaces() {
    let client = client();
    let maps = api(&client, "", "ConfigMap");
    create(&maps, config_map("a", json!({}))).await;
    let everywhere = cluster_api(&client, "", "ConfigMap");
    let all = everywhere.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    assert_eq!(refusal(all.map(|_| ())), (405, "MethodNotAllowed".into()));
    assert!(maps.get_opt("a").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_longest_grace_can_still_be_shortened() {
    let pods = api(&client(), "", "Pod");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": i64::MAX,
            "containers": [{"name": "main", "image": "busybox"}]},
    });
    create(&pods, pod).await;
    pods.delete("a", &DeleteParams::default()).await.unwrap();
    pods.delete("a", &DeleteParams::default().grace_period(5)).await.unwrap();
    let going = pods.get("a").await.unwrap();
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(5));
    pods.delete("a", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(refusal(pods.get("a").await), (404, "NotFound".into()));
}

#[tokio::test(start_paused = true)]
async fn the_last_generation_there_is_does_no_harm() {
    let accounts = api(&client(), "", "ServiceAccount");
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "old", "generation": i64::MAX, "finalizers": ["example.com/hold"]},
    });
    create(&accounts, account).await;
    let params = kube::api::DeleteParams::foreground();
    let deleted = accounts.delete("old", &params).await.unwrap();
    assert!(deleted.left().is_some_and(|account| account.metadata.deletion_timestamp.is_some()));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_do_without_comes_back() {
    let client = client();
    let ranges = cluster_api(&client, "networking.k8s.io", "ServiceCIDR");
    let services = api(&client, "", "Service");
    for (objects, name) in [(&ranges, "kubernetes"), (&services, "kubernetes")] {
        let before = objects.get(name).await.unwrap();
        objects.delete(name, &DeleteParams::default()).await.unwrap();
        let after = objects.get(name).await.unwrap();
        assert_ne!(before.metadata.uid, after.metadata.uid);
        assert_eq!(before.data["spec"]["cidrs"], after.data["spec"]["cidrs"]);
    }
    let first = services.get("kubernetes").await.unwrap();
    assert_eq!(first.data["spec"]["clusterIP"], "127.96.0.1");
}
