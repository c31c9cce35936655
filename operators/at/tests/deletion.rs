//! An At that is on its way out starts nothing any more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::time::Duration;

use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::{Env, Manager};
use homeostat_apiserver::{Server, ServerConfig};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use operator_at::{At, AtSpec};

#[tokio::test(start_paused = true)]
async fn an_at_that_is_being_deleted_does_not_run_its_command() {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let client = Client::new(Server::new(ServerConfig::new(env.clone())), "default");
    let manager = Manager::new(client.clone(), env.clone()).with_crd::<At>();
    let running = manager.with(operator_at::controller()).start().await.unwrap();

    let spec = AtSpec { schedule: "1970-01-01T00:01:00Z".into(), command: "echo late".into() };
    let mut at = At::new("late", spec);
    at.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    let ats: Api<At> = Api::default_namespaced(client.clone());
    ats.create(&PostParams::default(), &at).await.unwrap();
    ats.delete("late", &DeleteParams::default()).await.unwrap();
    env.sleep(Duration::from_secs(120)).await;

    let pods: Api<Pod> = Api::default_namespaced(client);
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    running.stop().await.unwrap();
}
