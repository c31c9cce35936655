//! What is made in the server under one name is not forgotten there under another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::{Env, crd};
use homeostat_apiserver::{Server, ServerConfig};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use operator_logical_database::LogicalDatabase;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn database_name_and_owner_cannot_be_changed() {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let client = Client::new(Server::new(ServerConfig::new(env)), "default");
    crd::install::<LogicalDatabase>(&client).await.unwrap();
    let objects: Api<LogicalDatabase> = Api::default_namespaced(client);
    let object = LogicalDatabase::new(
        "x",
        serde_json::from_value(json!({ "serverSecret": "s", "databaseName": "a", "owner": "a" }))
            .unwrap(),
    );
    objects.create(&PostParams::default(), &object).await.unwrap();
    let change = async |spec| {
        let patch = Patch::Merge(json!({ "spec": spec }));
        objects.patch("x", &PatchParams::default(), &patch).await
    };
    for refused in [json!({ "databaseName": "b" }), json!({ "owner": "b" })] {
        let error = change(refused.clone()).await.unwrap_err().to_string();
        assert!(error.contains("cannot be changed"), "{refused}: {error}");
    }
    change(json!({ "deletionPolicy": "Retain" })).await.unwrap();
}
