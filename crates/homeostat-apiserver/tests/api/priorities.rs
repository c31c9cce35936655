use std::collections::BTreeSet;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use super::{client, cluster_api, create};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

#[tokio::test(start_paused = true)]
async fn every_cluster_has_levels_of_priority_and_schemas_that_find_theirs() {
    let client = client();
    let all = ListParams::default();
    let levels = cluster_api(&client, GROUP, "PriorityLevelConfiguration");
    let levels: BTreeSet<String> = levels
        .list(&all)
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|l| l.metadata.name)
        .collect();
    assert!(levels.contains("exempt") && levels.contains("catch-all"), "{levels:?}");
    let schemas = cluster_api(&client, GROUP, "FlowSchema").list(&all).await.unwrap().items;
    assert_eq!(schemas.len(), 11);
    for schema in schemas {
        let level = schema.data["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap();
        assert!(levels.contains(level), "{level}");
        let condition = &schema.data["status"]["conditions"][0];
        assert_eq!(
            (&condition["type"], &condition["status"]),
            (&"Dangling".into(), &"False".into())
        );
        assert_eq!(schema.metadata.generation, Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn priorities_that_are_removed_come_back() {
    let client = client();
    for kind in ["FlowSchema", "PriorityLevelConfiguration"] {
        let api = cluster_api(&client, GROUP, kind);
        let before = api.get("exempt").await.unwrap();
        api.delete("exempt", &DeleteParams::default()).await.unwrap();
        let after = api.get("exempt").await.unwrap();
        assert_ne!(before.metadata.uid, after.metadata.uid);
        assert_eq!(before.data["spec"], after.data["spec"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_edited_default_is_set_back_unless_its_annotation_says_otherwise() {
    let client = client();
    let levels = cluster_api(&client, GROUP, "PriorityLevelConfiguration");
    let before = levels.get("workload-low").await.unwrap().data["spec"].clone();
    let more = json!({"spec": {"limited": {"nominalConcurrencyShares": 7}}});
    let edit = |patch| {
        let levels = levels.clone();
        async move {
            let params = PatchParams::default();
            levels.patch("workload-low", &params, &Patch::Merge(patch)).await.unwrap();
            levels.get("workload-low").await.unwrap()
        }
    };
    assert_eq!(edit(more.clone()).await.data["spec"], before);
    let by_hand = json!({"apf.kubernetes.io/autoupdate-spec": "false"});
    edit(json!({"metadata": {"annotations": by_hand}})).await;
    assert_eq!(edit(more).await.data["spec"]["limited"]["nominalConcurrencyShares"], 7);
}

#[tokio::test(start_paused = true)]
async fn a_schema_is_told_whether_its_level_exists() {
    let client = client();
    let schemas = cluster_api(&client, GROUP, "FlowSchema");
    let dangling = || async {
        let schema = schemas.get("mine").await.unwrap();
        schema.data["status"]["conditions"][0]["status"].clone()
    };
    let spec = json!({"priorityLevelConfiguration": {"name": "mine"}, "matchingPrecedence": 500});
    create(&schemas, json!({"metadata": {"name": "mine"}, "spec": spec})).await;
    assert_eq!(dangling().await, "True");
    let levels = cluster_api(&client, GROUP, "PriorityLevelConfiguration");
    let limited = json!({"limitResponse": {"type": "Reject"}});
    let spec = json!({"type": "Limited", "limited": limited});
    create(&levels, json!({"metadata": {"name": "mine"}, "spec": spec})).await;
    assert_eq!(dangling().await, "False");
    levels.delete("mine", &DeleteParams::default()).await.unwrap();
    assert_eq!(dangling().await, "True");
}

#[tokio::test(start_paused = true)]
async fn what_calls_itself_a_default_and_is_none_is_removed() {
    let client = client();
    let schemas = cluster_api(&client, GROUP, "FlowSchema");
    let schema = |name: &str, automatic: &str| {
        let annotations = json!({"apf.kubernetes.io/autoupdate-spec": automatic});
        let spec =
            json!({"priorityLevelConfiguration": {"name": "mine"}, "matchingPrecedence": 500});
        json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec})
    };
    for (name, automatic) in [("one", "true"), ("two", "false"), ("three", "yes")] {
        create(&schemas, schema(name, automatic)).await;
    }
    assert!(schemas.get_opt("one").await.unwrap().is_none());
    assert!(schemas.get_opt("two").await.unwrap().is_some());
    assert!(schemas.get_opt("three").await.unwrap().is_some());
    let levels = cluster_api(&client, GROUP, "PriorityLevelConfiguration");
    let limited = json!({"limitResponse": {"type": "Reject"}});
    let mut level =
        json!({"metadata": {"name": "mine"}, "spec": {"type": "Limited", "limited": limited}});
    create(&levels, level.clone()).await;
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "T"});
    level = json!({"metadata": {"annotations": annotations}});
    levels.patch("mine", &PatchParams::default(), &Patch::Merge(level)).await.unwrap();
    assert!(levels.get_opt("mine").await.unwrap().is_none());
    // Who led there is told.
    let schema = schemas.get("two").await.unwrap();
    assert_eq!(schema.data["status"]["conditions"][0]["status"], "True");
}
