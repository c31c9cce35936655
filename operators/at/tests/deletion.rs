//! An At that is on its way out starts nothing any more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat_testing::on_cluster;
use kube::api::DeleteParams;
use operator_at::At;
use serde_json::json;

#[test]
fn an_at_that_is_being_deleted_does_not_run_its_command() {
    on_cluster(async |cluster| {
        let controller = operator_at::controller().namespace(&cluster.namespace);
        let manager = cluster.manager().with_crd::<At>().with(controller);
        let running = cluster.start_manager(manager).await;
        let due = (cluster.env.now() + jiff::SignedDuration::from_secs(1)).to_string();
        let metadata = json!({ "name": "late", "finalizers": ["example.com/hold"] });
        let spec = json!({ "schedule": due, "command": "echo late" });
        cluster.create::<At>(json!({ "metadata": metadata, "spec": spec })).await;
        cluster.api::<At>().delete("late", &DeleteParams::default()).await.unwrap();

        cluster.nothing_more().await;
        assert!(cluster.list::<Pod>("").await.is_empty());
        running.stop().await.unwrap();
    });
}
