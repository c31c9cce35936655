use std::collections::BTreeSet;

use kube::api::{DeleteParams, ListParams};

use super::{client, cluster_api};

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
