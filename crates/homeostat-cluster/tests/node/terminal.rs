//! What clients type to a container.

use serde_json::json;

use crate::cluster::Cluster;
use crate::shell;

const ATTACH: &str = "/attach/default/talks/main?stdin=true&stdout=true&stderr=true";

#[tokio::test]
async fn what_a_client_types_is_read_until_the_client_has_no_more_to_say() {
    let cluster = Cluster::start().await;
    let mut container = shell("cat; echo bye; echo oops >&2; exit 3");
    container["stdin"] = json!(true);
    container["stdinOnce"] = json!(true);
    cluster.run("talks", json!({ "restartPolicy": "Never", "containers": [container] })).await;
    cluster.until("talks", |pod| pod["status"]["phase"] == "Running").await;
    let seen = cluster.exec(ATTACH, b"typed\n").await;
    assert_eq!((seen[&1].as_str(), seen[&2].as_str()), ("typed\nbye\n", "oops\n"));
    // That it ended, not how: that is in the Pod.
    assert!(seen[&3].contains("Success"), "{seen:?}");
    let ended = "/status/containerStatuses/0/state/terminated/exitCode";
    cluster.until("talks", |pod| pod.pointer(ended) == Some(&json!(3))).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_container_that_talks_to_many_clients_goes_on_after_the_first() {
    let cluster = Cluster::start().await;
    let mut container =
        shell("while read line; do echo \"got $line\"; test $line != end || exit 0; done");
    container["stdin"] = json!(true);
    cluster.run("talks", json!({ "restartPolicy": "Never", "containers": [container] })).await;
    cluster.until("talks", |pod| pod["status"]["phase"] == "Running").await;
    let first = cluster.attach_until(ATTACH, b"one\n", "got one\n").await;
    assert_eq!(first, "got one\n");
    let seen = cluster.exec(ATTACH, b"end\n").await;
    assert_eq!(seen[&1], "got end\n");
    cluster.until("talks", |pod| pod["status"]["phase"] == "Succeeded").await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_container_with_a_terminal_has_one_to_itself() {
    let cluster = Cluster::start().await;
    let mut container = shell(
        "test -t 0 && test -t 1 && test -t 2 && printf 'name? ' && read name && echo hi $name",
    );
    container["stdin"] = json!(true);
    container["tty"] = json!(true);
    cluster.run("talks", json!({ "restartPolicy": "Never", "containers": [container] })).await;
    cluster.until("talks", |pod| pod["status"]["phase"] == "Running").await;
    let seen = cluster.exec(&format!("{ATTACH}&tty=true"), b"you\n").await;
    assert!(seen[&1].ends_with("hi you\r\n"), "{seen:?}");
    cluster.until("talks", |pod| pod["status"]["phase"] == "Succeeded").await;
    assert!(cluster.logs("talks", "").await.contains("hi you"));
    cluster.stop().await;
}

#[tokio::test]
async fn a_container_without_input_is_at_its_end_and_cannot_be_typed_to() {
    let cluster = Cluster::start().await;
    let script = "cat; echo nothing to read; sleep 1000";
    cluster.run("talks", json!({ "containers": [shell(script)] })).await;
    cluster.until_log("talks", "nothing to read").await;
    let refused = cluster.refused(ATTACH).await;
    assert!(refused.contains("does not have stdin enabled"), "{refused}");
    cluster.stop().await;
}

#[tokio::test]
async fn what_is_typed_to_a_command_that_has_ended_does_not_hide_how_it_ended() {
    let cluster = Cluster::start().await;
    cluster.run("box", json!({ "containers": [shell("echo up; sleep 1000")] })).await;
    cluster.until_log("box", "up").await;
    let path = "/exec/default/box/main?command=sh&command=-c&command=exit+5\
                &stdin=true&stdout=true&tty=true";
    for _ in 0..20 {
        let end = cluster.exec_typing(path).await;
        assert!(end.contains(r#""message":"5""#), "{end}");
    }
    cluster.stop().await;
}
