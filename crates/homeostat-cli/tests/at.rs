//! The At operator, driven through kubectl only.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on may panic")]

mod running;

use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::Signal;
use running::Up;

fn at(name: &str, due: Timestamp, command: &str) -> String {
    format!(
        "apiVersion: cnat.programming-kubernetes.info/v1alpha1\nkind: At\nmetadata: {{name: {name}}}\n\
         spec: {{schedule: \"{}\", command: \"{command}\"}}\n",
        due.strftime("%Y-%m-%dT%H:%M:%SZ")
    )
}

fn now() -> Timestamp {
    homeostat_env::Env::system().now()
}

#[test]
fn an_at_waits_then_runs_within_a_second_of_its_time_and_is_done() {
    let up = Up::start(&["--with", "at"]);
    // The schedule has whole seconds; at least two are left after rounding down.
    let due = now() + SignedDuration::from_secs(3);
    up.apply(&at("greeting", due, "echo the time has come"));
    up.wait_for("at/greeting", ".status.phase", "PENDING");
    up.wait_for("at/greeting", ".status.phase", "DONE");
    assert_eq!(up.kubectl(&["logs", "greeting-pod"]), "the time has come\n");

    // The stamps of the log are exact to the nanosecond; those in the status are whole seconds.
    let logged = up.kubectl(&["logs", "greeting-pod", "--timestamps"]);
    let said: Timestamp = logged.split(' ').next().unwrap().parse().unwrap();
    let due: Timestamp = due.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().parse().unwrap();
    let late = said.duration_since(due);
    let within = SignedDuration::ZERO..=SignedDuration::from_secs(1);
    assert!(within.contains(&late), "ran {late} after its time");

    assert_eq!(up.value("pod/greeting-pod", ".metadata.ownerReferences[0].name"), "greeting");
    assert_eq!(
        up.value("pod/greeting-pod", ".metadata.labels['app\\.kubernetes\\.io/instance']"),
        "greeting"
    );
    assert_eq!(up.value("at/greeting", ".status.conditions[?(@.type==\"Ready\")].status"), "True");
}

#[test]
fn a_schedule_that_is_no_time_degrades_until_it_is_edited() {
    let up = Up::start(&["--with", "at"]);
    let yaml = at("broken", now(), "echo mended");
    let (before, after) = yaml.split_once("schedule: \"").unwrap();
    let (_, after) = after.split_once('"').unwrap();
    // It looks like a time, so that the API takes it, and is none.
    up.apply(&format!("{before}schedule: \"2026-02-30T10:00:00Z\"{after}"));
    let degraded = "--for=condition=Degraded";
    up.kubectl(&["wait", "at/broken", degraded, "--timeout=30s"]);
    let row = up.kubectl(&["get", "at/broken", "--no-headers"]);
    assert!(row.contains("PENDING") && row.contains("BadSchedule"), "{row}");
    let events = running::eventually("an event says so", || {
        let events = up.kubectl(&["events", "--for", "at/broken", "--types=Warning"]);
        events.contains("BadSchedule").then_some(events)
    });
    assert!(events.contains("is not a time: write a time as in 2026-11-15T10:00:00Z"), "{events}");
    up.apply(&at("broken", now(), "echo mended"));
    up.wait_for("at/broken", ".status.phase", "DONE");
    assert_eq!(up.kubectl(&["logs", "broken-pod"]), "mended\n");
}

#[test]
fn a_command_that_died_with_the_cluster_is_not_run_again() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let start = || Up::start(&["--with", "at", "--data", data.to_str().unwrap()]);
    let up = start();
    up.apply(&at("endless", now(), "exec sleep 86396"));
    up.wait_for("pod/endless-pod", ".status.phase", "Running");
    up.end(Signal::SIGKILL);
    let up = start();
    up.wait_for("at/endless", ".status.phase", "DONE");
    up.wait_for("pod/endless-pod", ".status.phase", "Failed");
    let restarts = up.value("pod/endless-pod", ".status.containerStatuses[0].restartCount");
    assert_eq!(restarts, "0");
    let events = running::eventually("an event says so", || {
        let events = up.kubectl(&["events", "--for", "at/endless", "--types=Warning"]);
        events.contains("CommandFailed").then_some(events)
    });
    assert!(events.contains("exit code 137"), "{events}");
    assert!(up.descendants().is_empty(), "nothing runs");
}

#[test]
fn deleting_an_at_leaves_no_pod_and_no_process() {
    let up = Up::start(&["--with", "at"]);
    up.apply(&at("endless", now(), "while :; do sleep 1; done"));
    up.wait_for("at/endless", ".status.phase", "RUNNING");
    up.wait_for("pod/endless-pod", ".status.phase", "Running");
    assert!(!up.descendants().is_empty());
    up.kubectl(&["delete", "at/endless", "--cascade=foreground"]);
    up.kubectl(&["wait", "--for=delete", "pod/endless-pod", "--timeout=60s"]);
    assert_eq!(up.kubectl(&["get", "pods,ats", "-o", "name"]), "");
    running::eventually("no process is left", || up.descendants().is_empty().then_some(()));
}

#[test]
fn a_pod_that_somebody_deletes_while_it_runs_is_lost_and_the_command_has_not_failed() {
    let up = Up::start(&["--with", "at"]);
    up.apply(&at("endless", now(), "exec sleep 86392"));
    up.wait_for("pod/endless-pod", ".status.phase", "Running");
    up.kubectl(&["delete", "pod", "endless-pod"]);
    up.wait_for("at/endless", ".status.phase", "DONE");
    for condition in ["Ready", "Degraded"] {
        let path = format!(".status.conditions[?(@.type==\"{condition}\")].reason");
        assert_eq!(up.value("at/endless", &path), "PodLost");
    }
}

#[test]
fn an_edit_of_an_at_that_has_run_is_told_to_be_of_no_use_and_what_to_do() {
    let up = Up::start(&["--with", "at"]);
    up.apply(&at("once", now(), "echo first"));
    up.wait_for("at/once", ".status.phase", "DONE");
    up.apply(&at("once", now(), "echo second"));
    let events = running::eventually("an event says so", || {
        let events = up.kubectl(&["events", "--for", "at/once", "--types=Warning"]);
        events.contains("EditIgnored").then_some(events)
    });
    assert!(events.contains("create another At"), "{events}");
    let path = ".status.conditions[?(@.type==\"Ready\")].message";
    running::eventually("the condition says so", || {
        up.value("at/once", path).contains("create another At").then_some(())
    });
    assert_eq!(up.value("at/once", ".status.phase"), "DONE");
    assert_eq!(up.kubectl(&["logs", "once-pod"]), "first\n");
}
