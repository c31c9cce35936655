//! What a data directory is made with cannot be changed: the API says so at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::crd;
use homeostat_testing::on_cluster;
use kube::api::{Patch, PatchParams};
use operator_database::Database;
use serde_json::json;

#[test]
fn the_database_name_cannot_be_changed() {
    on_cluster(async |cluster| {
        crd::install::<Database>(&cluster.client).await.unwrap();
        cluster.create::<Database>(json!({ "metadata": { "name": "x" }, "spec": {} })).await;
        let change = async |spec| {
            let patch = Patch::Merge(json!({ "spec": spec }));
            cluster.api::<Database>().patch("x", &PatchParams::default(), &patch).await
        };
        let error = change(json!({ "databaseName": "other" })).await.unwrap_err().to_string();
        assert!(error.contains("cannot be changed"), "{error}");
        change(json!({ "replicas": 2 })).await.unwrap();
    });
}
