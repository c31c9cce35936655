//! One container of a Pod: its state and when it runs again.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;

use super::probe::Probes;
use super::{Action, Notice, later};

const FIRST_DELAY: Duration = Duration::from_secs(10);
const LONGEST_DELAY: Duration = Duration::from_secs(300);
const FIRST_MOUNT_DELAY: Duration = Duration::from_millis(500);
const LONGEST_MOUNT_DELAY: Duration = Duration::from_secs(122);
/// A run of this length makes earlier crashes forgotten.
const STABLE: Duration = Duration::from_secs(600);
/// How long `ErrImagePull` is shown before it becomes `ImagePullBackOff`.
const FRESH_PULL_ERROR: Duration = Duration::from_secs(1);

/// SIGKILL, by which processes end with their agent.
pub(super) const KILLED: i32 = 137;
/// The reason of an end that nobody saw.
pub(super) const UNKNOWN: &str = "ContainerStatusUnknown";

/// What a container is to its Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container that keeps running beside the others.
    Sidecar,
    /// One of the Pod's own containers.
    Main,
    /// Added to look at the others while they run; runs once.
    Ephemeral,
}

/// The Pod's `restartPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    pub(super) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// Why a container could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFailure {
    /// What is given cannot be the name of an image.
    ImageName(String),
    /// The image is not there.
    Image(String),
    /// A volume could not be made.
    Volume(String),
    /// Something that its configuration names is missing.
    Configuration(String),
    /// The sandbox could not be made.
    Sandbox(String),
    /// The program could not be executed.
    Program(String),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) code: i32,
    pub(super) reason: &'static str,
    pub(super) message: Option<String>,
    pub(super) id: Option<String>,
    pub(super) began: Timestamp,
    pub(super) ended: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Waiting {
        reason: &'static str,
        message: Option<String>,
        until: Option<Timestamp>,
    },
    /// The agent is at it. Why it could not start before is shown until it is known to be otherwise:
    /// somebody who waits for its end must not be told at each attempt that it is over.
    Starting {
        refused: Option<(&'static str, Option<String>)>,
    },
    Running {
        id: String,
        since: Timestamp,
        /// By when it must have ended.
        stopping: Option<Timestamp>,
    },
    Ended(End),
}

#[derive(Debug)]
pub(super) struct Unit {
    pub(super) spec: Container,
    pub(super) role: Role,
    pub(super) state: State,
    pub(super) last: Option<End>,
    pub(super) probes: Probes,
    /// Runs so far, those that failed to execute included.
    pub(super) runs: i32,
    crashes: u32,
    pulls: u32,
    /// How often in a row its volumes could not be made.
    unmounted: u32,
    /// Whether it runs another image than it should: it runs again, whatever the policy says.
    changed: bool,
}

impl Unit {
    pub(super) fn new(spec: Container, role: Role) -> Self {
        let state = State::Waiting { reason: "", message: None, until: None };
        let probes = Probes::of(&spec);
        let (runs, crashes, pulls, unmounted) = (0, 0, 0, 0);
        let (last, changed) = (None, false);
        Self { spec, role, state, last, probes, runs, crashes, pulls, unmounted, changed }
    }

    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    /// The number of the run that is, or is about to be.
    pub(super) fn attempt(&self) -> i32 {
        (self.runs - 1).max(0)
    }

    pub(super) fn ended(&self) -> Option<&End> {
        match &self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, State::Starting { .. } | State::Running { .. })
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Whether the Pod's own containers wait for it.
    pub(super) fn comes_before(&self) -> bool {
        matches!(self.role, Role::Init | Role::Sidecar)
    }

    /// Whether it runs, or ever did.
    pub(super) fn has_run(&self) -> bool {
        self.attempt() > 0 || self.is_running() || self.ended().is_some() || self.last.is_some()
    }

    pub(super) fn is_started(&self) -> bool {
        self.is_running() && self.probes.started()
    }

    pub(super) fn is_ready(&self) -> bool {
        match self.role {
            Role::Init => self.ended().is_some_and(|end| end.code == 0),
            Role::Sidecar | Role::Main => self.is_started() && self.probes.ready(),
            Role::Ephemeral => false,
        }
    }

    pub(super) fn lets_next_start(&self) -> bool {
        match self.role {
            Role::Init => self.ended().is_some_and(|end| end.code == 0),
            Role::Sidecar => self.is_started(),
            Role::Main | Role::Ephemeral => true,
        }
    }

    /// Whether a run that ended is followed by another.
    pub(super) fn restarts(&self, policy: Policy) -> bool {
        let failed = self.ended().is_none_or(|end| end.code != 0);
        if self.changed {
            return true;
        }
        match (self.role, policy) {
            (Role::Sidecar, _) | (Role::Main, Policy::Always) => true,
            (Role::Init, Policy::Always) | (Role::Init | Role::Main, Policy::OnFailure) => failed,
            (Role::Init | Role::Main, Policy::Never) | (Role::Ephemeral, _) => false,
        }
    }

    pub(super) fn wake(&self) -> Option<Timestamp> {
        match self.state {
            State::Waiting { until, .. } => until,
            _ => None,
        }
    }

    pub(super) fn run(&mut self, policy: Policy, pod: &str, now: Timestamp, out: &mut Vec<Action>) {
        if self.ended().is_some() && self.restarts(policy) {
            self.back_off(pod, now, out);
        }
        match &self.state {
            State::Waiting { until: Some(until), .. } if *until > now => {}
            State::Waiting { reason: "ErrImagePull", .. } => self.back_off_pull(now, out),
            State::Waiting { reason, message, .. } => {
                let is_refusal = !matches!(*reason, "" | "CrashLoopBackOff");
                let refused = is_refusal.then(|| (*reason, message.clone()));
                self.state = State::Starting { refused };
                self.changed = false;
                out.push(Action::Start { container: self.spec.name.clone(), attempt: self.runs });
            }
            State::Starting { .. } | State::Running { .. } | State::Ended(_) => {}
        }
    }

    /// From ended to waiting: at once after the first crash, then 10 s doubling to 5 min.
    fn back_off(&mut self, pod: &str, now: Timestamp, out: &mut Vec<Action>) {
        let State::Ended(end) = self.state.clone() else { return };
        let delay = match self.crashes {
            0 | 1 => Duration::ZERO,
            n => (FIRST_DELAY * 2_u32.saturating_pow(n - 2)).min(LONGEST_DELAY),
        };
        let until = end.ended.saturating_add(delay).unwrap_or(Timestamp::MAX);
        self.last = Some(end);
        if until <= now {
            self.state = State::Waiting { reason: "", message: None, until: None };
            return;
        }
        let name = &self.spec.name;
        let seconds = delay.as_secs();
        let words = format!("back-off {seconds}s restarting failed container={name} pod={pod}");
        out.push(warning(
            "BackOff",
            format!("Back-off restarting failed container {name} in pod {pod}"),
        ));
        let (reason, message) = ("CrashLoopBackOff", Some(words));
        self.state = State::Waiting { reason, message, until: Some(until) };
    }

    fn back_off_pull(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let State::Waiting { message, .. } = &self.state else { return };
        let image = self.spec.image.as_deref().unwrap_or_default();
        let said = message.as_deref().unwrap_or_default();
        let words = format!("Back-off pulling image {image:?}: ErrImagePull: {said}");
        out.push(Action::Event(Notice {
            warning: false,
            reason: "BackOff",
            message: format!("Back-off pulling image {image:?}"),
        }));
        out.push(warning("Failed", "Error: ImagePullBackOff".into()));
        let delay =
            (FIRST_DELAY * 2_u32.saturating_pow(self.pulls.saturating_sub(1))).min(LONGEST_DELAY);
        self.state = State::Waiting {
            reason: "ImagePullBackOff",
            message: Some(words),
            until: now.checked_add(delay).ok(),
        };
    }

    pub(super) fn started(&mut self, id: String, now: Timestamp) {
        self.runs += 1;
        self.pulls = 0;
        self.unmounted = 0;
        self.probes = Probes::of(&self.spec);
        self.state = State::Running { id, since: now, stopping: None };
    }

    pub(super) fn refused(&mut self, failure: StartFailure, now: Timestamp) -> Vec<Action> {
        let soon = |delay| now.checked_add(delay).ok();
        let (reason, message, until) = match failure {
            StartFailure::Program(message) => {
                self.runs += 1;
                self.crashes += 1;
                let event = warning("Failed", format!("Error: {message}"));
                let (began, ended) = (now, now);
                let (code, reason, message, id) = (128, "StartError", Some(message), None);
                self.state = State::Ended(End { code, reason, message, id, began, ended });
                return vec![event];
            }
            StartFailure::Volume(message) => {
                let delay = FIRST_MOUNT_DELAY * 2_u32.saturating_pow(self.unmounted.min(16));
                self.unmounted += 1;
                let until = soon(delay.min(LONGEST_MOUNT_DELAY));
                self.state = State::Waiting { reason: "", message: None, until };
                return vec![warning("FailedMount", message)];
            }
            // No time mends it, only another image, which is not waited for.
            StartFailure::ImageName(message) => ("InvalidImageName", message, soon(LONGEST_DELAY)),
            StartFailure::Image(message) => {
                self.pulls += 1;
                ("ErrImagePull", message, soon(FRESH_PULL_ERROR))
            }
            StartFailure::Configuration(message) => {
                ("CreateContainerConfigError", message, soon(FIRST_DELAY))
            }
            StartFailure::Sandbox(message) => ("CreateContainerError", message, soon(FIRST_DELAY)),
        };
        let mut events = Vec::new();
        if reason == "ErrImagePull" {
            let image = self.spec.image.as_deref().unwrap_or_default();
            events.push(warning("Failed", format!("Failed to pull image {image:?}: {message}")));
            events.push(warning("Failed", "Error: ErrImagePull".into()));
        } else if reason == "InvalidImageName" {
            events.push(warning("InspectFailed", message.clone()));
            events.push(warning("Failed", "Error: InvalidImageName".into()));
        } else {
            events.push(warning("Failed", format!("Error: {message}")));
        }
        self.state = State::Waiting { reason, message: Some(message), until };
        events
    }

    pub(super) fn exited(&mut self, code: i32, message: Option<String>, now: Timestamp) {
        let State::Running { id, since, .. } = &self.state else { return };
        let stable = now.duration_since(*since).unsigned_abs() >= STABLE;
        self.crashes = if stable { 1 } else { self.crashes + 1 };
        let reason = if code == 0 { "Completed" } else { "Error" };
        let (id, began) = (Some(id.clone()), *since);
        self.state = State::Ended(End { code, reason, message, id, began, ended: now });
    }

    /// Asks it to end by `deadline`; says nothing new to one that has to end earlier.
    pub(super) fn stop(&mut self, deadline: Timestamp, now: Timestamp, out: &mut Vec<Action>) {
        let State::Running { stopping, .. } = &self.state else { return };
        match stopping {
            Some(already) if *already <= deadline => return,
            Some(_) => {}
            None => {
                let message = format!("Stopping container {}", self.spec.name);
                out.push(Action::Event(Notice { warning: false, reason: "Killing", message }));
            }
        }
        self.stop_by(deadline, now, out);
    }

    /// Asks it to end by `deadline`, without an event.
    pub(super) fn stop_by(&mut self, deadline: Timestamp, now: Timestamp, out: &mut Vec<Action>) {
        let State::Running { stopping, .. } = &mut self.state else { return };
        *stopping = Some(deadline);
        let grace = Duration::try_from(deadline.duration_since(now)).unwrap_or_default();
        out.push(Action::Stop { container: self.spec.name.clone(), grace });
    }

    /// Takes over what it is to be from now on. Only another image changes what runs; one that
    /// waits to run again, or for the old image, has nothing to wait for any more.
    pub(super) fn revise(&mut self, spec: &Container) {
        if self.spec.image == spec.image {
            return;
        }
        self.spec = spec.clone();
        (self.crashes, self.pulls) = (0, 0);
        match &mut self.state {
            State::Waiting { reason, until, .. } => (*reason, *until) = ("", None),
            State::Starting { .. } | State::Running { .. } => {
                self.changed = self.role != Role::Init;
            }
            State::Ended(_) => {}
        }
    }

    /// Ends a run of an image that it is not to run any more.
    pub(super) fn replace_changed(
        &mut self,
        grace: Duration,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        if !self.changed || !matches!(self.state, State::Running { stopping: None, .. }) {
            return;
        }
        let message = format!("Container {} definition changed, will be restarted", self.spec.name);
        out.push(Action::Event(Notice { warning: false, reason: "Killing", message }));
        self.stop_by(later(now, grace), now, out);
    }

    /// What waits to run never will: its last run is the last one, and what never ran although it
    /// was its turn has ended without a trace, as the kubelet has it.
    pub(super) fn give_up(&mut self, initialised: bool, now: Timestamp) {
        if !matches!(self.state, State::Waiting { .. }) {
            return;
        }
        if let Some(last) = self.last.take() {
            self.state = State::Ended(last);
        } else if self.role == Role::Main && initialised {
            let message = Some("the container had not started when the Pod was removed".to_owned());
            let (code, reason, id) = (KILLED, UNKNOWN, None);
            let (began, ended) = (now, now);
            self.state = State::Ended(End { code, reason, message, id, began, ended });
        }
    }

    /// Tries again at once where a missing piece of configuration was waited for.
    pub(super) fn poke(&mut self, now: Timestamp) {
        if let State::Waiting {
            reason: "CreateContainerConfigError" | "",
            until: Some(until),
            ..
        } = &mut self.state
        {
            *until = now;
        }
    }
}

pub(super) fn warning(reason: &'static str, message: String) -> Action {
    Action::Event(Notice { warning: true, reason, message })
}
