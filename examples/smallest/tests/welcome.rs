//! The smallest controller does what it says, on both APIs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

#[allow(dead_code, reason = "its main is for the program")]
#[path = "../src/main.rs"]
mod smallest;

use std::path::Path;
use std::process::Command;

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

/// What the program says to a kubeconfig that cannot be used.
fn words(kubeconfig: &Path) -> String {
    let program = Command::new(env!("CARGO_BIN_EXE_smallest"))
        .env("KUBECONFIG", kubeconfig)
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    assert_eq!((program.status.code(), program.stdout), (Some(1), Vec::new()));
    String::from_utf8(program.stderr).unwrap()
}

#[test]
fn the_program_says_at_once_what_it_does_and_how_to_see_it() {
    // Also before there is a cluster to be seen.
    let words = words(Path::new("/nowhere"));
    let first = words.lines().next().unwrap();
    assert!(first.contains("ConfigMap") && first.contains("kubectl get"), "{first}");
}

#[test]
fn a_log_that_goes_elsewhere_than_to_a_terminal_has_no_colours() {
    assert!(!words(Path::new("/nowhere")).contains('\u{1b}'));
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_one_line_with_its_name_and_what_to_do() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/main.rs");
    for path in [file.as_path(), Path::new("/nowhere")] {
        let words = words(path);
        let last = words.lines().last().unwrap();
        assert!(
            last.starts_with("Error: ") && words.matches("kubeconfig ").count() == 1,
            "{words}"
        );
        assert!(last.contains(path.to_str().unwrap()), "{words}");
        assert!(last.ends_with("point KUBECONFIG at another file"), "{words}");
    }
}
