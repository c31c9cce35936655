//! A Pod that ran here before this agent did: its processes ended with the last agent, and its
//! status is all that is left of them.
//!
//! What ran counts as ended (137, as the kubelet says of a container it cannot find any more), so
//! the restart policy decides what is next: another run that is counted, or the end.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, PodStatus,
};

use super::unit::{End, KILLED, Policy, Role, State, UNKNOWN, Unit};

impl Unit {
    /// Goes on where `status` left off.
    pub(super) fn resume(&mut self, status: &PodStatus, policy: Policy, now: Timestamp) {
        let all = status.init_container_statuses.iter().chain(&status.container_statuses);
        let all = all.chain(&status.ephemeral_container_statuses);
        let Some(status) = all.flatten().find(|one| one.name == self.spec.name) else { return };
        let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let last = last.map(|last| ended(last, now));
        let current = status.state.as_ref().and_then(|state| end(state, status, now));
        let has_run = current.is_some() || last.is_some() || status.restart_count > 0;
        self.runs = if has_run { status.restart_count + 1 } else { 0 };
        // Init containers run once more before everything else does, as after a reboot; a Pod that
        // is to run once does nothing once more.
        let anew = self.role == Role::Init && policy != Policy::Never;
        match current {
            Some(end) if anew => self.last = Some(end),
            Some(end) => (self.state, self.last) = (State::Ended(end), last),
            None => self.last = last,
        }
    }
}

/// How the run ended that a status shows; `None` when it shows none.
fn end(state: &ContainerState, status: &ContainerStatus, now: Timestamp) -> Option<End> {
    if let Some(terminated) = &state.terminated {
        return Some(ended(terminated, now));
    }
    let running = state.running.as_ref()?;
    Some(End {
        code: KILLED,
        reason: UNKNOWN,
        message: Some("the container ended with the agent of its node".to_owned()),
        id: status.container_id.clone(),
        began: running.started_at.as_ref().map_or(now, |time| time.0),
        ended: now,
    })
}

fn ended(terminated: &ContainerStateTerminated, now: Timestamp) -> End {
    let reasons = ["Completed", "Error", "StartError", UNKNOWN];
    let said = terminated.reason.as_deref().unwrap_or_default();
    End {
        code: terminated.exit_code,
        reason: reasons.into_iter().find(|reason| *reason == said).unwrap_or("Error"),
        message: terminated.message.clone(),
        id: terminated.container_id.clone(),
        began: terminated.started_at.as_ref().map_or(now, |time| time.0),
        ended: terminated.finished_at.as_ref().map_or(now, |time| time.0),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::super::{Action, Machine};
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    /// Runs a Pod in one machine, and gives what its status left of it to another.
    fn resumed(spec: &Value, before: impl FnOnce(&mut Machine)) -> Machine {
        let pod = json!({ "metadata": { "name": "p", "uid": "u" }, "spec": spec });
        let mut pod: Pod = serde_json::from_value(pod).unwrap();
        let mut first = Machine::new(pod.clone(), at(0));
        first.advance(at(0));
        before(&mut first);
        pod.status = Some(first.status(Some("127.64.0.1"), "h", at(5)));
        Machine::new(pod, at(60))
    }

    fn starts(machine: &mut Machine) -> Vec<(String, i32)> {
        let actions = machine.advance(at(60)).into_iter();
        let start = |action| match action {
            Action::Start { container, attempt } => Some((container, attempt)),
            _ => None,
        };
        actions.filter_map(start).collect()
    }

    fn restarts(machine: &mut Machine) -> i32 {
        machine.status(None, "h", at(61)).container_statuses.unwrap()[0].restart_count
    }

    #[test]
    fn what_ran_when_its_agent_ended_runs_again_and_that_counts() {
        let spec = json!({ "containers": [{ "name": "a" }] });
        let mut machine = resumed(&spec, |first| first.started("a", "id".into(), at(1)));
        assert_eq!(machine.phase(), "Running", "it does not fall back to Pending");
        assert_eq!(starts(&mut machine), [("a".to_owned(), 1)]);
        machine.started("a", "id2".into(), at(61));
        assert_eq!(restarts(&mut machine), 1);
        let status = machine.status(None, "h", at(61));
        assert_eq!(status.start_time.unwrap().0, at(0), "the Pod is as old as it was");
        let last = status.container_statuses.unwrap()[0].last_state.clone().unwrap();
        let last = last.terminated.unwrap();
        assert_eq!((last.exit_code, last.container_id.as_deref()), (137, Some("id")));
        assert_eq!(last.reason.as_deref(), Some("ContainerStatusUnknown"));
    }

    #[test]
    fn earlier_restarts_are_not_forgotten() {
        let spec = json!({ "containers": [{ "name": "a" }] });
        let mut machine = resumed(&spec, |first| {
            first.started("a", "one".into(), at(1));
            first.exited("a", 1, None, at(2));
            first.advance(at(2));
            first.started("a", "two".into(), at(3));
        });
        assert_eq!(starts(&mut machine), [("a".to_owned(), 2)]);
        machine.started("a", "three".into(), at(61));
        assert_eq!(restarts(&mut machine), 2);
    }

    #[test]
    fn what_never_ran_starts_for_the_first_time() {
        let mut machine = resumed(&json!({ "containers": [{ "name": "a" }] }), |_| {});
        assert_eq!(starts(&mut machine), [("a".to_owned(), 0)]);
        machine.started("a", "id".into(), at(61));
        assert_eq!(restarts(&mut machine), 0);
    }

    #[test]
    fn what_may_run_only_once_does_not_run_again() {
        let spec = json!({
            "restartPolicy": "Never",
            "initContainers": [{ "name": "i" }],
            "containers": [{ "name": "a" }, { "name": "b" }],
        });
        let mut machine = resumed(&spec, |first| {
            first.started("i", "i".into(), at(1));
            first.exited("i", 0, None, at(2));
            first.advance(at(2));
            first.started("a", "a".into(), at(3));
            first.exited("a", 0, None, at(4));
            first.started("b", "b".into(), at(3));
        });
        assert_eq!(starts(&mut machine), []);
        assert_eq!(machine.phase(), "Failed");
        let status = machine.status(None, "h", at(61)).container_statuses.unwrap();
        let code = |index: usize| {
            status[index].state.as_ref().and_then(|s| Some(s.terminated.as_ref()?.exit_code))
        };
        assert_eq!((code(0), code(1)), (Some(0), Some(137)));
    }

    #[test]
    fn init_containers_come_first_again() {
        let spec = json!({
            "initContainers": [{ "name": "i" }], "containers": [{ "name": "a" }],
        });
        let mut machine = resumed(&spec, |first| {
            first.started("i", "i".into(), at(1));
            first.exited("i", 0, None, at(2));
            first.advance(at(2));
            first.started("a", "a".into(), at(3));
        });
        assert_eq!(starts(&mut machine), [("i".to_owned(), 1)]);
        machine.started("i", "i2".into(), at(61));
        machine.exited("i", 0, None, at(61));
        assert_eq!(starts(&mut machine), [("a".to_owned(), 1)]);
    }
}
