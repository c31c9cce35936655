//! What the API itself refuses: another name for what is there, a size that is none, a name that no
//! child can have.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::crd;
use homeostat_testing::{object, on_cluster};
use kube::api::{Patch, PatchParams, PostParams};
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
        for nothing in ["0", "0Gi", "0.0"] {
            let error = change(json!({ "storage": nothing })).await.unwrap_err().to_string();
            assert!(error.contains("storage must be more than 0"), "{nothing}: {error}");
        }
        change(json!({ "replicas": 2, "storage": "1.5Gi" })).await.unwrap();
    });
}

#[test]
fn a_name_that_its_children_cannot_have_is_refused() {
    on_cluster(async |cluster| {
        crd::install::<Database>(&cluster.client).await.unwrap();
        for name in ["x".repeat(53), "a.b".to_owned()] {
            let wish = object(json!({ "metadata": { "name": name }, "spec": {} }));
            let made = cluster.api::<Database>().create(&PostParams::default(), &wish).await;
            let error = made.unwrap_err().to_string();
            assert!(error.contains("metadata.name: Invalid value: "), "{error}");
            assert!(error.contains("at most 52 characters and no dots"), "{error}");
        }
        let longest = "x".repeat(52);
        cluster.create::<Database>(json!({ "metadata": { "name": longest }, "spec": {} })).await;
    });
}
