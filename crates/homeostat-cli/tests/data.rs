//! `homeostat up --data`: what is there after the process was killed, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod running;

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use nix::sys::signal::Signal;
use running::{Up, eventually};

const CLAIM_AND_POD: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: notes}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  containers:
  - name: c
    image: busybox
    command: [sh, -c, 'echo begun >> /data/notes; wc -l < /data/notes; exec sleep 86397']
    volumeMounts: [{name: notes, mountPath: /data}]
  volumes:
  - name: notes
    persistentVolumeClaim: {claimName: notes}
---
apiVersion: v1
kind: Pod
metadata: {name: brief}
spec:
  restartPolicy: Never
  containers: [{name: c, image: busybox, command: [echo, last words]}]
";

#[test]
fn a_cluster_that_was_killed_goes_on_with_its_objects_volumes_keys_and_port() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let start = || Up::start(&["--data", data.to_str().unwrap()]);
    let up = start();
    up.apply(CLAIM_AND_POD);
    up.kubectl(&["create", "configmap", "kept", "--from-literal=a=1"]);
    let lines = |up: &Up| {
        let output = up.try_kubectl(&["exec", "writer", "--", "cat", "/data/notes"]);
        String::from_utf8_lossy(&output.stdout).lines().count()
    };
    eventually("the Pod has written", || (lines(&up) == 1).then_some(()));
    let state = |up: &Up| {
        let uids = ["configmap/kept", "pod/brief", "pod/writer", "pvc/notes", "service/kubernetes"];
        let mut all: Vec<String> =
            uids.iter().map(|object| up.value(object, ".metadata.uid")).collect();
        all.push(up.value("service/kubernetes", ".spec.clusterIP"));
        all.push(up.kubectl(&["config", "view", "--raw", "-o", "jsonpath={.users[0].user.token}"]));
        all.push(up.kubectl(&["config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"]));
        let authority = "jsonpath={.clusters[0].cluster.certificate-authority-data}";
        all.push(up.kubectl(&["config", "view", "--raw", "-o", authority]));
        all
    };
    up.wait_for("pod/brief", ".status.phase", "Succeeded");
    let before = state(&up);
    up.end(Signal::SIGKILL);
    let up = start();
    assert_eq!(state(&up), before);
    eventually("the Pod runs again, with what it wrote before", || (lines(&up) == 2).then_some(()));
    let container = ".status.containerStatuses[0]";
    up.wait_for("pod/writer", &format!("{container}.restartCount"), "1");
    let last = up.value("pod/writer", &format!("{container}.lastState.terminated.exitCode"));
    assert_eq!(last, "137", "it ended with the agent");
    assert_eq!(up.kubectl(&["logs", "writer", "--previous"]), "1\n");
    eventually("it says more", || (up.kubectl(&["logs", "writer"]) == "2\n").then_some(()));
    assert_eq!(up.kubectl(&["logs", "brief"]), "last words\n", "also of what is not run again");

    // Ended in order, it is the same; what goes meanwhile or afterwards leaves nothing.
    let folders = || fs::read_dir(data.join("node/pods")).unwrap().count();
    assert_eq!(up.end(Signal::SIGTERM), Some(0));
    assert_eq!(folders(), 2);
    fs::create_dir(data.join("node/pods/of-a-pod-that-is-gone")).unwrap();
    let up = start();
    assert_eq!(up.kubectl(&["logs", "brief"]), "last words\n");
    up.kubectl(&["delete", "pod", "brief"]);
    eventually("only the writer's folder is left", || (folders() == 1).then_some(()));
}

fn refused(data: &std::path::Path) -> String {
    let up = Command::new(env!("CARGO_BIN_EXE_homeostat"))
        .args(["up", "--data"])
        .arg(data)
        .output()
        .unwrap();
    assert_eq!(up.status.code(), Some(1), "{up:?}");
    String::from_utf8(up.stderr).unwrap()
}

#[test]
fn a_file_in_place_of_the_directory_is_refused_with_advice() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let words = refused(file.path());
    assert!(words.contains("is not a directory") && words.contains("--data DIR"), "{words}");
}

#[test]
fn a_directory_of_somebody_else_is_refused_and_nothing_is_written_to_it() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("thesis"), "a year of work").unwrap();
    let words = refused(place.path());
    assert!(words.contains("holds thesis") && words.contains("an empty directory"), "{words}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_directory_that_is_in_use_or_damaged_is_refused_with_advice() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let up = Up::start(&["--data", data.to_str().unwrap()]);
    let words = refused(&data);
    assert!(words.contains("data directory of a cluster that is running"), "{words}");
    assert!(words.contains("stop that cluster first"), "{words}");
    assert!(words.contains("another directory with --data DIR"), "{words}");
    assert_eq!(up.end(Signal::SIGTERM), Some(0));
    let log = fs::read_dir(data.join("store")).unwrap().flatten();
    let log = log.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("log-"));
    let log = log.unwrap();
    let mut bytes = fs::read(&log).unwrap();
    bytes[100] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let words = refused(&data);
    assert!(words.contains("is damaged at byte 24"), "{words}");
    assert_eq!(fs::read(&log).unwrap(), bytes, "a refused file is left as it is");
    let advised = |words: &str| {
        let (_, tip) = words.split_once("tip: ").unwrap_or_else(|| panic!("no tip: {words}"));
        let shown = data.canonicalize().unwrap().display().to_string();
        assert!(tip.contains("a copy"), "{words}");
        assert!(tip.trim().ends_with(&format!("mv {shown} {shown}.damaged")), "{words}");
    };
    advised(&words);
    for name in ["services", "token", "authority.pem", "port"] {
        fs::write(data.join(name), [b'\n', 0xff]).unwrap();
        let words = refused(&data);
        assert!(words.contains(&format!("{name} is damaged")), "{words}");
        advised(&words);
        fs::write(data.join(name), "\n").unwrap();
        let words = refused(&data);
        assert!(words.contains(&format!("{name} is damaged")), "{words}");
        advised(&words);
    }
}

#[test]
fn a_port_that_is_taken_meanwhile_is_said_to_be_another_and_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let start = || Up::start(&["--data", data.to_str().unwrap()]);
    let port = |up: &Up| {
        let server = "jsonpath={.clusters[0].cluster.server}";
        let server = up.kubectl(&["config", "view", "-o", server]);
        server.rsplit(':').next().unwrap().parse::<u16>().unwrap()
    };
    let up = start();
    let first = port(&up);
    assert_eq!(up.log(), "");
    up.end(Signal::SIGTERM);
    let taken = TcpListener::bind(("127.0.0.1", first)).unwrap();
    let up = start();
    let words = up.log();
    assert!(words.starts_with(&format!("warning: port {first}, ")), "{words}");
    assert!(words.contains(&format!("is at {} for now", port(&up))), "{words}");
    assert!(words.contains("tip: use the kubeconfig"), "{words}");
    up.end(Signal::SIGTERM);
    drop(taken);
    let up = start();
    assert_eq!((port(&up), up.log()), (first, String::new()));
}

#[test]
fn an_operator_inside_holds_its_lease_for_as_long_as_it_is_chosen() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let holder = |up: &Up| up.try_value("lease/at-operator", ".spec.holderIdentity");
    let up = Up::start(&["--with", "at", "--data", data.to_str().unwrap()]);
    assert_eq!(holder(&up).as_deref(), Some("homeostat up"));
    assert_eq!(up.try_value("lease/webapp-operator", ".metadata.name"), None);
    up.end(Signal::SIGKILL);
    let up = Up::start(&["--data", data.to_str().unwrap()]);
    assert_eq!(holder(&up), None, "a program of its own may take it");
}

#[test]
fn kept_objects_that_no_operator_looks_after_are_told_with_what_to_add() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let start = |with: &[&str]| Up::start(&[&["--data", data.to_str().unwrap()], with].concat());
    let up = start(&["--with", "at,webapp,database"]);
    let at = "apiVersion: cnat.programming-kubernetes.info/v1alpha1\nkind: At\n\
              metadata: {name: later}\nspec: {schedule: '2999-01-01T00:00:00Z', command: 'true'}\n";
    let app = "apiVersion: homeostat.dev/v1alpha1\nkind: WebApp\nmetadata: {name: app}\n\
               spec: {image: 'homeostat.dev/hello:1', replicas: 1, port: 8080}\n";
    up.apply(&format!("{at}---\n{app}"));
    assert_eq!(up.log(), "", "there is one for each");
    up.end(Signal::SIGTERM);
    let told = |with: &[&str]| {
        let up = start(with);
        (up.log(), up.end(Signal::SIGTERM)).0
    };
    let words = "and no operator for them: add --with at,webapp\n";
    assert_eq!(told(&[]), format!("warning: there are objects of At, WebApp {words}"));
    let at = ["--with", "at"];
    assert_eq!(told(&at), format!("warning: there are objects of WebApp {words}"));
    assert_eq!(told(&["--with", "at,webapp"]), "");
}
