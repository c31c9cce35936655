//! Aggregated roles, and the tokens of accounts.

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use homeostat_testing::{object, on_world};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
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

#[test]
fn a_secret_for_a_token_is_filled_and_goes_with_its_account() {
    on_world(async |world| {
        world.create::<ServiceAccount>(json!({"metadata": {"name": "robot"}})).await;
        let named = json!({"kubernetes.io/service-account.name": "robot"});
        world
            .create::<Secret>(json!({"metadata": {"name": "key", "annotations": named},
                "type": "kubernetes.io/service-account-token"}))
            .await;
        let is_full = |secret: &Secret| {
            secret
                .data
                .as_ref()
                .is_some_and(|data| data.contains_key("token") && data.contains_key("namespace"))
        };
        let full = world.until_one::<Secret>("key", "a token", is_full).await;
        let account = world.get::<ServiceAccount>("robot").await.unwrap();
        let uid = &full.annotations()["kubernetes.io/service-account.uid"];
        assert_eq!(Some(uid), account.uid().as_ref());
        let token = String::from_utf8(full.data.unwrap()["token"].0.clone()).unwrap();
        let review = json!({"metadata": {}, "spec": {"token": token}});
        let reviews: Api<TokenReview> = Api::all(world.client.clone());
        let ask = async || {
            let review = reviews.create(&PostParams::default(), &object(review.clone())).await;
            review.unwrap().status.unwrap()
        };
        let name = ask().await.user.unwrap().username.unwrap();
        assert_eq!(name, format!("system:serviceaccount:{}:robot", world.namespace));
        let accounts = world.api::<ServiceAccount>();
        accounts.delete("robot", &DeleteParams::default()).await.unwrap();
        world.until_gone::<Secret>("key").await;
        // kube-apiserver remembers for ten seconds that a token was good.
        if world.is_virtual {
            assert_ne!(ask().await.authenticated, Some(true), "the token ends with the Secret");
        }
    });
}
