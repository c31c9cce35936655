//! What the API itself refuses: another name for what is there, a size that is none.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::crd;
use homeostat_testing::on_cluster;
use kube::api::{Patch, PatchParams};
use operator_database::Database;
use serde_json::json;

#[test]
fn the_name_stays_and_a_size_must_be_one() {
    on_cluster(async |cluster| {
        crd::install::<Database>(&cluster.client).await.unwrap();
        cluster.create::<Database>(json!({ "metadata": { "name": "x" }, "spec": {} })).await;
        let change = async |spec| {
            let patch = Patch::Merge(json!({ "spec": spec }));
            cluster.api::<Database>().patch("x", &PatchParams::default(), &patch).await
        };
        let error = change(json!({ "databaseName": "other" })).await.unwrap_err().to_string();
        assert!(error.contains("cannot be changed"), "{error}");
        let error = change(json!({ "storage": "1GB" })).await.unwrap_err().to_string();
        assert!(error.contains("spec.storage"), "{error}");
        change(json!({ "replicas": 2, "storage": "1.5Gi" })).await.unwrap();
    });
}
