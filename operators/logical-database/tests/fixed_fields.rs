//! What is made in the server under one name is not forgotten there under another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::crd;
use homeostat_testing::on_cluster;
use kube::api::{Patch, PatchParams};
use operator_logical_database::LogicalDatabase;
use serde_json::json;

#[test]
fn database_name_and_owner_cannot_be_changed() {
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
        for refused in [json!({ "databaseName": "b" }), json!({ "owner": "b" })] {
            let error = change(refused.clone()).await.unwrap_err().to_string();
            assert!(error.contains("cannot be changed"), "{refused}: {error}");
        }
        change(json!({ "deletionPolicy": "Retain" })).await.unwrap();
    });
}
