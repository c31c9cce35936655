//! `homeostat up` as a command: how it starts, fails and stops.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on may panic")]
#![allow(clippy::disallowed_methods, reason = "it waits for other processes, in real time")]

mod running;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use running::{Up, descendants, eventually};

fn refused(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_homeostat")).arg("up").args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("error: ") && words.contains("\n\n  tip: "), "{words}");
    words
}

#[test]
fn a_command_line_that_is_not_understood_fails_in_the_same_form_with_another_code() {
    let program = || Command::new(env!("CARGO_BIN_EXE_homeostat"));
    let output = program().args(["up", "--portt", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("error: ") && words.contains("\n\n  tip: "), "{words}");
}

#[test]
fn a_taken_port_is_refused_with_advice() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let words = refused(&["--port", &port]);
    assert!(
        words.contains(&format!("port {port} is taken")) && words.contains("--port"),
        "{words}"
    );
}

#[test]
fn an_unwritable_kubeconfig_is_refused_with_advice() {
    let words = refused(&["--kubeconfig", "/proc/nothing/kubeconfig"]);
    assert!(
        words.contains("cannot write the kubeconfig") && words.contains("--kubeconfig"),
        "{words}"
    );
}

#[test]
fn an_unknown_operator_is_refused_with_the_known_ones() {
    let words = refused(&["--with", "at,unknown"]);
    assert!(
        words.contains("unknown") && words.contains("at, webapp, database, logical-database"),
        "{words}"
    );
}

#[test]
fn an_operator_without_a_name_is_refused_with_what_to_write() {
    for list in ["", "at,", ",at", "at,,webapp", "at, ,webapp"] {
        let words = refused(&["--with", list]);
        assert!(
            words.contains("empty place") && words.contains("--with at,webapp"),
            "{list:?}: {words}"
        );
        assert!(words.contains("at, webapp, database, logical-database"), "{list:?}: {words}");
    }
}

#[test]
fn interrupt_and_termination_stop_everything_and_remove_the_kubeconfig() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("kubeconfig");
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let up = Up::start(&["--kubeconfig", file.to_str().unwrap()]);
        assert!(file.is_file());
        assert_eq!(up.end(signal), Some(0));
        assert!(!file.exists());
    }
}

/// The addresses that a process listens on, as the kernel writes them.
fn listens_on(process: Pid) -> Vec<String> {
    let links = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    let sockets: Vec<String> = links
        .filter_map(|link| {
            Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{process}/net/{table}"));
    let lines = tables.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let lines: Vec<String> =
        lines.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| {
            words.len() > 9 && words[3] == "0A" && sockets.iter().any(|it| it == words[9])
        })
        .map(|words| words[1].to_owned())
        .collect()
}

#[test]
fn nobody_else_can_reach_it_or_read_how() {
    let up = Up::start(&["--with", "at,webapp"]);
    let mode = std::fs::metadata(&up.kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let listening = listens_on(up.pid());
    assert!(!listening.is_empty());
    for address in &listening {
        // 127.0.0.0/8, the first byte last.
        assert!(address.split(':').next().unwrap().ends_with("7F"), "{listening:?}");
    }
}

#[test]
fn a_kubeconfig_in_which_kubectl_chose_another_namespace_is_ours_all_the_same() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("kubeconfig");
    let start = || {
        let up = Up::start(&["--kubeconfig", file.to_str().unwrap()]);
        up.kubectl(&["config", "set-context", "--current", "--namespace=x"]);
        up.kubectl(&["config", "rename-context", "homeostat", "here"]);
        up
    };
    start().end(Signal::SIGKILL);
    assert!(file.exists(), "nobody could remove it");
    assert_eq!(start().end(Signal::SIGTERM), Some(0), "the next one takes it");
    assert!(!file.exists());

    // A cluster of the user's own in it makes it the user's.
    let up = start();
    up.kubectl(&["config", "set-cluster", "production", "--server=https://10.0.0.1"]);
    up.end(Signal::SIGTERM);
    assert!(std::fs::read_to_string(&file).unwrap().contains("production"));
    let words = refused(&["--kubeconfig", file.to_str().unwrap()]);
    assert!(words.contains("is not a kubeconfig of homeostat's alone"), "{words}");
}

#[test]
fn the_end_is_said_once_everything_has_stopped() {
    let (code, said) = Up::start(&[]).end_hearing(Signal::SIGTERM);
    assert_eq!((code, said.as_str()), (Some(0), "stopped\n"));
}

/// A Pod that writes a file below `/shared` when it is asked to end; `deaf` goes on nevertheless.
fn asked_to_end(up: &Up, shared: &std::path::Path, deaf: bool) {
    let end = if deaf { "" } else { "; exit 0" };
    up.apply(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: polite}}\n\
         spec: {{volumes: [{{name: v, hostPath: {{path: {}}}}}], containers: [{{name: c, image: busybox, \
         volumeMounts: [{{name: v, mountPath: /shared}}], command: [sh, -c, \"trap 'echo bye > \
         /shared/bye{end}' TERM; echo up > /shared/up; while :; do sleep 0.05; done\"]}}]}}\n",
        shared.display()
    ));
    eventually("it runs", || shared.join("up").exists().then_some(()));
}

#[test]
fn programs_in_pods_are_asked_to_end_before_the_cluster_does() {
    let (up, shared) = (Up::start(&[]), tempfile::tempdir().unwrap());
    asked_to_end(&up, shared.path(), false);
    assert_eq!(up.end(Signal::SIGINT), Some(0));
    assert_eq!(std::fs::read_to_string(shared.path().join("bye")).unwrap(), "bye\n");
}

#[test]
fn a_second_interrupt_waits_for_nobody() {
    let (up, shared) = (Up::start(&[]), tempfile::tempdir().unwrap());
    asked_to_end(&up, shared.path(), true);
    kill(up.pid(), Signal::SIGINT).unwrap();
    eventually("it is asked", || shared.path().join("bye").exists().then_some(()));
    let began = Instant::now();
    assert_eq!(up.end(Signal::SIGINT), Some(0));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(7), "the first one gave it ten seconds: {took:?}");
}

#[test]
fn a_kill_that_cannot_be_caught_leaves_no_process() {
    let up = Up::start(&["--with", "webapp"]);
    up.apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: endless}\n\
         spec: {containers: [{name: c, image: busybox, command: [sh, -c, 'sleep 86399 & sleep 86398']}]}\n",
    );
    up.wait_for("pod/endless", ".status.phase", "Running");
    let below = eventually("its processes run", || {
        let all = descendants(up.pid());
        all.iter().any(|process| process.contains("sleep 8639")).then_some(all)
    });
    let pids: Vec<i32> =
        below.iter().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
    let left = up.temporary();
    assert_eq!(left.len(), 1, "{left:?}");
    kill(up.pid(), Signal::SIGKILL).unwrap();
    eventually("they are gone", || {
        let alive = |pid: &&i32| kill(nix::unistd::Pid::from_raw(**pid), None).is_ok();
        pids.iter().find(alive).is_none().then_some(())
    });
    // Its files cannot go with it; they go when the next one starts.
    drop(up);
    let next = Up::start(&[]);
    eventually("its files are gone", || (!left[0].exists()).then_some(()));
    assert_eq!(next.temporary().len(), 1);
}

#[test]
fn a_second_cluster_leaves_the_first_ones_kubeconfig_alone() {
    let first = Up::start(&[]);
    let words = refused(&["--kubeconfig", first.kubeconfig.to_str().unwrap()]);
    assert!(words.contains("that is running") && words.contains("--kubeconfig"), "{words}");
    first.kubectl(&["get", "namespaces"]);
}

#[test]
fn a_wrong_token_is_refused() {
    let up = Up::start(&[]);
    let output = up.try_kubectl(&["get", "namespaces", "--token=wrong"]);
    assert!(!output.status.success());
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("Unauthorized") || words.contains("logged in"), "{words}");
}
