//! What the machine promises, without processes and without time passing.

use serde_json::{Value, json};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn machine(spec: &Value) -> Machine {
    let pod =
        json!({ "metadata": { "name": "p", "namespace": "default", "uid": "u" }, "spec": spec });
    Machine::new(serde_json::from_value(pod).unwrap(), at(0))
}

fn starts(actions: &[Action]) -> Vec<&str> {
    let mut names = Vec::new();
    for action in actions {
        if let Action::Start { container, .. } = action {
            names.push(container.as_str());
        }
    }
    names
}

fn waiting(machine: &mut Machine, seconds: i64) -> Option<String> {
    let status = machine.status(None, "127.0.0.1", at(seconds));
    status.container_statuses?.first()?.state.clone()?.waiting?.reason
}

/// Starts what is due and ends it one second later; answers with the delay until the next start.
fn crash(machine: &mut Machine, now: &mut i64) -> i64 {
    machine.started("a", "id".into(), at(*now));
    *now += 1;
    machine.exited("a", 1, None, at(*now));
    let actions = machine.advance(at(*now));
    if starts(&actions) == ["a"] {
        return 0;
    }
    let wake = machine.wake().unwrap();
    let delay = wake.as_second() - at(*now).as_second();
    assert!(starts(&machine.advance(at(*now + delay - 1))).is_empty());
    assert_eq!(waiting(machine, *now).as_deref(), Some("CrashLoopBackOff"));
    *now += delay;
    assert_eq!(starts(&machine.advance(at(*now))), ["a"]);
    delay
}

#[test]
fn a_crashing_container_waits_longer_each_time_up_to_five_minutes() {
    let mut machine = machine(&json!({ "containers": [{ "name": "a" }] }));
    assert_eq!(starts(&machine.advance(at(0))), ["a"]);
    assert!(machine.advance(at(0)).is_empty(), "each action is given once");
    let mut now = 0;
    let delays: Vec<i64> = (0..8).map(|_| crash(&mut machine, &mut now)).collect();
    assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
    machine.started("a", "id".into(), at(now));
    let status = machine.status(None, "h", at(now)).container_statuses.unwrap();
    assert_eq!(status[0].restart_count, 8);
    // Ten good minutes and the past is forgotten.
    machine.exited("a", 1, None, at(now + 600));
    assert_eq!(starts(&machine.advance(at(now + 600))), ["a"]);
}

#[test]
fn init_containers_run_one_after_the_other_before_the_rest() {
    let spec = json!({
        "initContainers": [{ "name": "one" }, { "name": "two" }],
        "containers": [{ "name": "a" }, { "name": "b" }],
    });
    let mut machine = machine(&spec);
    for name in ["one", "two"] {
        assert_eq!(starts(&machine.advance(at(0))), [name]);
        assert_eq!(waiting(&mut machine, 0).as_deref(), Some("PodInitializing"));
        machine.started(name, name.into(), at(0));
        machine.exited(name, 0, None, at(1));
    }
    assert_eq!(starts(&machine.advance(at(1))), ["a", "b"]);
    assert_eq!(machine.phase(), "Pending");
    for name in ["a", "b"] {
        machine.started(name, name.into(), at(2));
    }
    assert_eq!(machine.phase(), "Running");
    let status = machine.status(Some("127.64.0.1"), "h", at(2));
    let ready = status.conditions.unwrap().into_iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!(ready.status, "True");
}

#[test]
fn the_restart_policy_decides_the_end() {
    for (policy, code, phase) in [
        ("Never", 0, "Succeeded"),
        ("Never", 1, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 1, "Running"),
        ("Always", 0, "Running"),
    ] {
        let mut machine =
            machine(&json!({ "restartPolicy": policy, "containers": [{ "name": "a" }] }));
        machine.advance(at(0));
        machine.started("a", "id".into(), at(0));
        machine.exited("a", code, None, at(1));
        machine.advance(at(1));
        assert_eq!(machine.phase(), phase, "{policy} {code}");
    }
}

#[test]
fn deletion_stops_the_containers_and_releases_the_pod_once() {
    let mut machine = machine(&json!({ "containers": [{ "name": "a" }] }));
    machine.advance(at(0));
    machine.started("a", "id".into(), at(0));
    let mut pod = machine.pod().clone();
    pod.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(9)));
    pod.metadata.deletion_grace_period_seconds = Some(5);
    machine.update(pod.clone());
    let stop =
        |seconds| Action::Stop { container: "a".into(), grace: Duration::from_secs(seconds) };
    assert!(machine.advance(at(1)).contains(&stop(5)));
    assert_eq!(machine.advance(at(1)), []);
    // A second delete with less patience counts.
    pod.metadata.deletion_grace_period_seconds = Some(1);
    machine.update(pod);
    assert_eq!(machine.advance(at(2)), [stop(1)]);
    machine.exited("a", 137, None, at(3));
    assert_eq!(machine.advance(at(3)), [Action::Release]);
    assert_eq!(machine.advance(at(3)), []);
}

#[test]
fn a_missing_image_is_an_error_first_and_a_back_off_then() {
    let mut machine = machine(&json!({ "containers": [{ "name": "a", "image": "x" }] }));
    machine.advance(at(0));
    machine.refused("a", StartFailure::Image("no".into()), at(0));
    assert_eq!(waiting(&mut machine, 0).as_deref(), Some("ErrImagePull"));
    assert!(starts(&machine.advance(at(1))).is_empty());
    assert_eq!(waiting(&mut machine, 1).as_deref(), Some("ImagePullBackOff"));
    assert_eq!(starts(&machine.advance(at(11))), ["a"]);
    assert_eq!(waiting(&mut machine, 11).as_deref(), Some("ImagePullBackOff"), "still");
    machine.refused("a", StartFailure::Image("no".into()), at(11));
    assert_eq!(waiting(&mut machine, 11).as_deref(), Some("ErrImagePull"));
}

#[test]
fn probes_hold_readiness_back_and_restart_what_hangs() {
    let probe = json!({ "failureThreshold": 2 });
    let container = json!({ "name": "a", "readinessProbe": probe, "livenessProbe": probe });
    let mut machine = machine(&json!({ "containers": [container] }));
    machine.advance(at(0));
    machine.started("a", "id".into(), at(0));
    let ready = |machine: &mut Machine| {
        machine.status(None, "h", at(0)).container_statuses.unwrap()[0].ready
    };
    assert!(!ready(&mut machine));
    machine.probed("a", 0, ProbeKind::Readiness, Ok(()), at(1));
    assert!(ready(&mut machine));
    let fail = || Err("no".to_owned());
    machine.probed("a", 0, ProbeKind::Readiness, fail(), at(1));
    assert!(ready(&mut machine), "one failure is not two");
    machine.probed("a", 0, ProbeKind::Readiness, fail(), at(1));
    assert!(!ready(&mut machine));
    machine.probed("a", 0, ProbeKind::Liveness, fail(), at(1));
    let actions = machine.probed("a", 0, ProbeKind::Liveness, fail(), at(1));
    assert!(actions.iter().any(|action| matches!(action, Action::Stop { .. })));
}

/// Which containers are asked to stop, and how many seconds they have.
fn stops(actions: &[Action]) -> Vec<(&str, u64)> {
    let mut all = Vec::new();
    for action in actions {
        if let Action::Stop { container, grace } = action {
            all.push((container.as_str(), grace.as_secs()));
        }
    }
    all
}

/// The same Pod, deleted.
fn deleted(machine: &Machine) -> Pod {
    let mut pod = machine.pod().clone();
    pod.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(100)));
    pod
}

#[test]
fn a_deleted_pod_has_come_to_its_end_however_far_it_was() {
    let ended = |prepare: &dyn Fn(&mut Machine)| {
        let mut machine = machine(&json!({ "containers": [{ "name": "a" }] }));
        machine.advance(at(0));
        prepare(&mut machine);
        machine.advance(at(2));
        let pod = deleted(&machine);
        machine.update(pod);
        assert_eq!(machine.advance(at(3)), [Action::Release]);
        let status = machine.status(None, "h", at(3));
        let container = status.container_statuses.unwrap().remove(0);
        let terminated = container.state.unwrap().terminated.unwrap();
        (status.phase.unwrap(), terminated.reason.unwrap(), terminated.exit_code)
    };
    let never = ended(&|machine| {
        machine.refused("a", StartFailure::Image("no".into()), at(1));
    });
    assert_eq!(never, ("Failed".into(), "ContainerStatusUnknown".into(), 137));
    let crashing = |code: i32| {
        ended(&|machine| {
            for _ in 0..2 {
                machine.started("a", "id".into(), at(1));
                machine.exited("a", code, None, at(1));
                machine.advance(at(1));
            }
        })
    };
    assert_eq!(crashing(3), ("Failed".into(), "Error".into(), 3), "the end it came to last");
    assert_eq!(crashing(0), ("Succeeded".into(), "Completed".into(), 0));
}

#[test]
fn what_has_not_had_its_turn_when_the_pod_is_deleted_has_not_ended() {
    let spec = json!({ "initContainers": [{ "name": "i" }], "containers": [{ "name": "a" }] });
    let mut machine = machine(&spec);
    machine.advance(at(0));
    machine.refused("i", StartFailure::Image("no".into()), at(1));
    let pod = deleted(&machine);
    machine.update(pod);
    assert_eq!(machine.advance(at(3)), [Action::Release]);
    assert_eq!(machine.phase(), "Failed");
    assert_eq!(waiting(&mut machine, 3).as_deref(), Some("PodInitializing"));
}

fn with_sidecars(policy: &str) -> Machine {
    let sidecar = |name: &str| json!({ "name": name, "restartPolicy": "Always" });
    let spec = json!({
        "restartPolicy": policy, "terminationGracePeriodSeconds": 10,
        "initContainers": [sidecar("s1"), sidecar("s2")], "containers": [{ "name": "a" }],
    });
    let mut machine = machine(&spec);
    for name in ["s1", "s2", "a"] {
        assert_eq!(starts(&machine.advance(at(0))), [name]);
        machine.started(name, name.into(), at(0));
    }
    machine
}

#[test]
fn sidecars_end_after_the_rest_last_first_and_all_share_one_grace() {
    let mut machine = with_sidecars("Always");
    let mut pod = machine.pod().clone();
    pod.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(11)));
    machine.update(pod);
    assert_eq!(stops(&machine.advance(at(1))), [("a", 10)]);
    assert_eq!(stops(&machine.advance(at(3))), [], "they wait for the others");
    machine.exited("a", 0, None, at(5));
    assert_eq!(stops(&machine.advance(at(5))), [("s2", 6)]);
    assert_eq!(stops(&machine.advance(at(6))), []);
    machine.exited("s2", 0, None, at(11));
    assert_eq!(stops(&machine.advance(at(11))), [("s1", 2)], "none is killed unasked");
    machine.exited("s1", 0, None, at(12));
    assert_eq!(machine.advance(at(12)), [Action::Release]);
}

#[test]
fn a_pod_has_not_succeeded_before_its_sidecars_have_ended() {
    let mut machine = with_sidecars("Never");
    machine.exited("a", 0, None, at(1));
    assert_eq!(machine.phase(), "Running");
    for sidecar in ["s2", "s1"] {
        assert_eq!(stops(&machine.advance(at(2))), [(sidecar, 10)]);
        assert_eq!(machine.phase(), "Running");
        machine.exited(sidecar, 143, None, at(2));
    }
    assert_eq!(machine.advance(at(3)), [], "no sidecar runs again");
    assert_eq!(machine.phase(), "Succeeded");
}

#[test]
fn a_pod_past_its_deadline_has_failed_when_its_programs_have_ended() {
    let spec = json!({ "activeDeadlineSeconds": 5, "containers": [{ "name": "a" }] });
    let mut machine = machine(&spec);
    machine.advance(at(0));
    machine.started("a", "id".into(), at(0));
    assert_eq!(machine.wake(), Some(at(5)));
    assert_eq!(stops(&machine.advance(at(5))), [("a", 30)]);
    let status = machine.status(None, "h", at(5));
    assert_eq!((status.phase.as_deref(), status.reason), (Some("Running"), None));
    machine.exited("a", 143, None, at(7));
    assert_eq!(machine.advance(at(7)), []);
    let status = machine.status(None, "h", at(7));
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
}

#[test]
fn an_agent_that_stops_asks_the_containers_to_end_and_keeps_the_pod() {
    let mut machine = with_sidecars("Always");
    machine.leave(Duration::from_secs(4));
    assert_eq!(stops(&machine.advance(at(1))), [("a", 4)], "the shorter of the two");
    machine.exited("a", 143, None, at(2));
    assert_eq!(stops(&machine.advance(at(2))), [("s2", 3)]);
    machine.exited("s2", 143, None, at(2));
    assert_eq!(stops(&machine.advance(at(2))), [("s1", 3)]);
    machine.exited("s1", 143, None, at(2));
    assert_eq!(machine.advance(at(3)), [], "neither started again nor released");
}

fn with_image(machine: &Machine, image: &str) -> Pod {
    let mut pod = machine.pod().clone();
    pod.spec.as_mut().unwrap().containers[0].image = Some(image.into());
    pod
}

#[test]
fn another_image_replaces_the_run_of_the_old_one_whatever_the_policy() {
    let spec = json!({
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 7,
        "containers": [{ "name": "a", "image": "one" }],
    });
    let mut machine = machine(&spec);
    machine.advance(at(0));
    machine.started("a", "id".into(), at(0));
    let pod = machine.pod().clone();
    machine.update(pod);
    assert_eq!(machine.advance(at(1)), [], "nothing changed");
    machine.update(with_image(&machine, "two"));
    let actions = machine.advance(at(2));
    assert_eq!(stops(&actions), [("a", 7)]);
    let message = "Container a definition changed, will be restarted".to_owned();
    let notice = Notice { warning: false, reason: "Killing", message };
    assert!(actions.contains(&Action::Event(notice)), "{actions:?}");
    assert_eq!(machine.advance(at(3)), []);
    machine.exited("a", 143, None, at(4));
    assert_eq!(machine.phase(), "Running");
    assert_eq!(starts(&machine.advance(at(4))), ["a"], "at once: it did not crash");
    machine.started("a", "id2".into(), at(4));
    let status = machine.status(None, "h", at(4)).container_statuses.unwrap();
    assert_eq!((status[0].image.as_str(), status[0].restart_count), ("two", 1));
    machine.exited("a", 0, None, at(5));
    machine.advance(at(5));
    assert_eq!(machine.phase(), "Succeeded", "the policy holds for the new one");
}

#[test]
fn another_image_is_not_waited_for_when_the_old_one_is_missing() {
    let mut machine = machine(&json!({ "containers": [{ "name": "a", "image": "x" }] }));
    machine.advance(at(0));
    machine.refused("a", StartFailure::Image("no".into()), at(0));
    machine.advance(at(1));
    machine.update(with_image(&machine, "busybox"));
    assert_eq!(starts(&machine.advance(at(1))), ["a"]);
}

#[test]
fn an_ephemeral_container_runs_once_beside_the_others_and_decides_nothing() {
    let mut machine = machine(&json!({ "containers": [{ "name": "a" }] }));
    machine.advance(at(0));
    machine.started("a", "id".into(), at(0));
    let mut pod = machine.pod().clone();
    let added = json!([{ "name": "debug", "image": "busybox", "targetContainerName": "a" }]);
    pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(added).unwrap();
    machine.update(pod.clone());
    assert_eq!(starts(&machine.advance(at(1))), ["debug"]);
    machine.started("debug", "d".into(), at(1));
    machine.update(pod);
    machine.exited("debug", 1, None, at(2));
    assert_eq!(machine.advance(at(2)), [], "never again");
    let status = machine.status(None, "h", at(2));
    assert_eq!(status.phase.as_deref(), Some("Running"));
    let ended = status.ephemeral_container_statuses.unwrap()[0].state.clone().unwrap();
    assert_eq!(ended.terminated.unwrap().exit_code, 1);
    let ready = status.conditions.unwrap().into_iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!(ready.status, "True");
}
