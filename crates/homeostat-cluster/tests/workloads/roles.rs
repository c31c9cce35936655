//! Aggregated roles.

use homeostat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use homeostat_testing::on_world;
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::json;

#[test]
fn an_aggregated_role_has_the_rules_of_those_it_selects() {
    on_world(async |world| {
        let roles: Api<ClusterRole> = Api::all(world.client.clone());
        let label = format!("gather-{}", world.namespace);
        let names = ["part", "whole"].map(|part| format!("{part}-{}", world.namespace));
        let rule = |verb: &str| json!({"apiGroups": ["x"], "resources": ["y"], "verbs": [verb]});
        let whole = json!({"metadata": {"name": names[1]}, "rules": [],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {&label: "true"}}]}});
        let part = json!({"metadata": {"name": names[0], "labels": {&label: "true"}},
            "rules": [rule("get")]});
        for role in [whole, part] {
            let role: ClusterRole = serde_json::from_value(role).unwrap();
            roles.create(&PostParams::default(), &role).await.unwrap();
        }
        world.nothing_more().await;
        let rules = async || json!(roles.get(&names[1]).await.unwrap().rules);
        assert_eq!(rules().await, json!([rule("get")]));
        let patch = Patch::Merge(json!({"rules": [rule("list")]}));
        roles.patch(&names[0], &PatchParams::default(), &patch).await.unwrap();
        world.nothing_more().await;
        assert_eq!(rules().await, json!([rule("list")]));
        let view = roles.get("view").await.unwrap();
        assert!(
            view.rules.is_some_and(|rules| !rules.is_empty()),
            "the roles of every cluster too"
        );
        for name in &names {
            roles.delete(name, &DeleteParams::default()).await.unwrap();
        }
    });
}
