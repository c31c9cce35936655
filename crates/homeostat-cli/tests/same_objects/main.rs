//! The operators on the embedded API and on kube-apiserver, with the same controllers of
//! `homeostat-cluster`: the same objects, statuses and owner references come out.
//!
//! Once with Pods that only pretend to run, at addresses that every API takes: every kind there is.
//! Once with the node agent, real processes and a real PostgreSQL: every operator to its good end.
//!
//! Without `HOMEOSTAT_ORACLE_KUBECONFIG` only the embedded half runs, and says so.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::large_futures,
    reason = "a test that cannot go on may panic"
)]

mod both;
mod compared;
mod kinds;
mod postgresql;
mod pretended;

use serde_json::{Value, json};

use both::{Place, on_both};
use kinds::{
    AT, CLAIM, DATABASE, DEPLOYMENT, ENDPOINT_SLICE, ENDPOINTS, EVERY, LOGICAL_DATABASE, WEBAPP,
};

/// One object of each kind but the LogicalDatabase, which asks for the others first.
async fn declare(place: &Place, version: &str) {
    let at = json!({ "schedule": "2020-01-01T00:00:00Z", "command": "echo hello" });
    place.create(AT, "now", at).await;
    let site = json!({ "image": "homeostat.dev/hello:1", "replicas": 2, "port": 8080 });
    place.create(WEBAPP, "site", site).await;
    place.create(DATABASE, "shop", json!({ "version": version, "databaseName": "shop" })).await;
}

/// Until everything that [`declare`] asks for is there, and nobody has anything left to say of it.
async fn settle(place: &Place) {
    place.until_value(AT, "now", "/status/phase", &json!("DONE")).await;
    place.until_value(WEBAPP, "site", "/status/ready", &json!(true)).await;
    place.until_value(DATABASE, "shop", "/status/ready", &json!(true)).await;
    let rolled_out = json!("NewReplicaSetAvailable");
    place.until_value(DEPLOYMENT, "site", "/status/conditions/1/reason", &rolled_out).await;
    // The Database's own, and it knows what its data is of.
    let claimed = |claim: &Value| {
        claim["status"]["phase"] == "Bound"
            && claim["metadata"]["ownerReferences"][0]["kind"] == "Database"
            && claim["metadata"]["annotations"]["homeostat.dev/postgresql-major"].is_string()
    };
    place.until(CLAIM, "a claim of its Database", |all| all.iter().any(claimed)).await;
}

#[tokio::test]
async fn operators_make_the_same_objects_of_every_kind_on_both_apis() {
    on_both(async |place| {
        let place = place.with(pretended::controller()).await;
        pretended::register(&place.client).await;
        declare(&place, "15").await;
        let orders =
            json!({ "serverSecret": "absent", "databaseName": "orders", "owner": "clerk" });
        place.create(LOGICAL_DATABASE, "orders", orders).await;
        settle(&place).await;
        let waits = json!("WaitingForServer");
        let reason = "/status/conditions/0/reason";
        place.until_value(LOGICAL_DATABASE, "orders", reason, &waits).await;
        // Two Pods of the WebApp and one of the Database receive traffic.
        let ready = |slice: &Value| {
            let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
            endpoints.iter().filter(|one| one["conditions"]["ready"] == true).count()
        };
        let lead_there = |all: &[Value]| all.iter().map(ready).sum::<usize>() == 3;
        place.until(ENDPOINT_SLICE, "ready endpoints", lead_there).await;
        let addresses = |one: &Value| {
            one["subsets"][0]["addresses"].as_array().map(Vec::len).unwrap_or_default()
        };
        let lead_there = |all: &[Value]| all.iter().map(addresses).sum::<usize>() == 3;
        place.until(ENDPOINTS, "ready addresses", lead_there).await;
        let objects = place.snapshot(&EVERY).await;
        for (.., kind, _) in EVERY {
            let seen = objects.keys().any(|name| name.starts_with(&format!("{kind} ")));
            assert!(seen, "there is no {kind} to compare");
        }
        place.clear().await;
        objects
    })
    .await;
}
