//! The smallest controller does what it says, on both APIs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

#[allow(dead_code, reason = "its main is for the program")]
#[path = "../src/main.rs"]
mod smallest;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use homeostat::Controller;
use homeostat_testing::on_cluster;
use k8s_openapi::api::core::v1::ConfigMap;

#[test]
fn a_namespace_is_welcomed_and_the_welcome_is_put_back() {
    on_cluster(async |cluster| {
        let own = format!("kubernetes.io/metadata.name={}", cluster.namespace);
        let controller = Controller::new(smallest::reconcile).owns::<ConfigMap>().labels(&own);
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let welcome = cluster.get::<ConfigMap>("welcome").await.unwrap();
        assert_eq!(welcome.data.unwrap()["to"], cluster.namespace);

        cluster.api::<ConfigMap>().delete("welcome", &Default::default()).await.unwrap();
        cluster
            .until_recorded(&journal, |all| {
                all.iter().filter(|r| !r.writes.is_empty()).count() == 2
            })
            .await;
        assert!(cluster.get::<ConfigMap>("welcome").await.is_some());
        running.stop().await.unwrap();
    });
}

#[test]
fn the_program_says_at_once_what_it_does_and_how_to_see_it() {
    // Also before there is a cluster to be seen.
    let mut program = Command::new(env!("CARGO_BIN_EXE_smallest"))
        .env("KUBECONFIG", "/nowhere")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut first).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(first.contains("ConfigMap") && first.contains("kubectl get"), "{first}");
}
