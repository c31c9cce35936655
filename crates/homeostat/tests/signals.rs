//! SIGTERM or SIGINT ends a manager in order, a second one at once. A binary of its own: signals concern the
//! whole process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::process::Command;
use std::time::Duration;

use homeostat::manager::Runnable;
use homeostat::{Env, Manager};
use homeostat_testing::TestCluster;
use tokio::sync::mpsc;

fn send_ourselves(signal: &str) {
    let own = std::process::id().to_string();
    assert!(Command::new("kill").args([signal, &own]).status().unwrap().success());
}

#[tokio::test]
async fn one_signal_ends_in_order_and_a_second_one_at_once() {
    let cluster = TestCluster::embedded(1).await;
    // The runnable says when it begins and when it is told to stop; then it ends, or never does.
    let manager = |ends: bool| {
        let (say, said) = mpsc::unbounded_channel();
        let runnable = Runnable::new("worker", move |work| {
            let say = say.clone();
            async move {
                say.send("begins").unwrap();
                work.stopping().await;
                say.send("stops").unwrap();
                if !ends {
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        });
        let manager = Manager::new(cluster.client.clone(), Env::system());
        (manager.with_runnable(runnable).grace(Duration::from_secs(3600)), said)
    };

    for signal in ["-TERM", "-INT"] {
        let (patient, mut said) = manager(true);
        let running = tokio::spawn(patient.run());
        assert_eq!(said.recv().await, Some("begins"));
        send_ourselves(signal);
        assert_eq!(said.recv().await, Some("stops"));
        running.await.unwrap().unwrap();

        let (stuck, mut said) = manager(false);
        let running = tokio::spawn(stuck.run());
        assert_eq!(said.recv().await, Some("begins"));
        send_ourselves(signal);
        assert_eq!(said.recv().await, Some("stops"));
        send_ourselves(signal);
        let error = running.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("asked twice"), "{error}");
    }
}
