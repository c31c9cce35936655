//! What is made in the server under one name is not forgotten there under another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::crd;
use homeostat_testing::{object, on_cluster};
use kube::api::{Patch, PatchParams, PostParams};
use operator_logical_database::LogicalDatabase;
use serde_json::json;

#[test]
fn server_database_name_and_owner_cannot_be_changed() {
    on_cluster(async |cluster| {
        crd::install::<LogicalDatabase>(&cluster.client).await.unwrap();
        let spec = json!({ "serverSecret": "s", "databaseName": "a", "owner": "a" });
        cluster
            .create::<LogicalDatabase>(json!({ "metadata": { "name": "x" }, "spec": spec }))
            .await;
        let change = async |spec| {
            let patch = Patch::Merge(json!({ "spec": spec }));
            cluster.api::<LogicalDatabase>().patch("x", &PatchParams::default(), &patch).await
        };
        for refused in [
            json!({ "serverSecret": "t" }),
            json!({ "databaseName": "b" }),
            json!({ "owner": "b" }),
        ] {
            let error = change(refused.clone()).await.unwrap_err().to_string();
            assert!(error.contains("cannot be changed"), "{refused}: {error}");
        }
        change(json!({ "deletionPolicy": "Retain" })).await.unwrap();
    });
}

#[test]
fn a_role_name_that_postgresql_keeps_for_itself_and_a_name_too_long_for_a_label_are_refused() {
    on_cluster(async |cluster| {
        crd::install::<LogicalDatabase>(&cluster.client).await.unwrap();
        let refusal = async |name: &str, owner: &str| {
            let spec = json!({ "serverSecret": "s", "databaseName": "a", "owner": owner });
            let object = object(json!({ "metadata": { "name": name }, "spec": spec }));
            let objects = cluster.api::<LogicalDatabase>();
            objects.create(&PostParams::default(), &object).await.unwrap_err().to_string()
        };
        for reserved in ["pg_x", "public", "none"] {
            let error = refusal("x", reserved).await;
            assert!(error.contains("for itself"), "{reserved}: {error}");
        }
        let error = refusal(&"x".repeat(64), "a").await;
        assert!(error.contains("metadata.name: Invalid value: "), "{error}");
        assert!(error.contains("at most 63 characters"), "{error}");
    });
}
