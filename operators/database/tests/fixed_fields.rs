//! What a data directory is made with cannot be changed: the API says so at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::{Env, crd};
use homeostat_apiserver::{Server, ServerConfig};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use operator_database::Database;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn storage_and_database_name_cannot_be_changed() {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let client = Client::new(Server::new(ServerConfig::new(env)), "default");
    crd::install::<Database>(&client).await.unwrap();
    let objects: Api<Database> = Api::default_namespaced(client);
    let object = Database::new("x", serde_json::from_value(json!({})).unwrap());
    objects.create(&PostParams::default(), &object).await.unwrap();
    let change = async |spec| {
        let patch = Patch::Merge(json!({ "spec": spec }));
        objects.patch("x", &PatchParams::default(), &patch).await
    };
    for refused in [json!({ "storage": "2Gi" }), json!({ "databaseName": "other" })] {
        let error = change(refused.clone()).await.unwrap_err().to_string();
        assert!(error.contains("cannot be changed"), "{refused}: {error}");
    }
    change(json!({ "replicas": 2 })).await.unwrap();
}
