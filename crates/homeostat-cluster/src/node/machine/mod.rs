//! The pod machine: what the agent should do next for one Pod, and what its status is.
//!
//! Pure: it is told what happened and what time it is, and answers with [`Action`]s. It never
//! starts a process, never writes to the API, never reads a clock.

mod probe;
mod resume;
mod status;
mod unit;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod};

pub use probe::ProbeKind;
use unit::Unit;
pub use unit::{Role, StartFailure};

/// The grace of a Pod that names none, in seconds.
const DEFAULT_GRACE: i64 = 30;
/// What a sidecar has at the least to end by itself, however long the others took.
const SHORTEST_GRACE: Duration = Duration::from_secs(2);

/// What the agent has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start a container; answer with `started`, `refused` or `exited`.
    Start {
        /// Its name.
        container: String,
        /// 0 for the first run.
        attempt: i32,
    },
    /// Ask a container to stop and kill it after the grace; answer with `exited`.
    Stop {
        /// Its name.
        container: String,
        /// How long it may take, `preStop` included.
        grace: Duration,
    },
    /// Record an event about the Pod.
    Event(Notice),
    /// Everything has ended and the Pod is to be removed from the API.
    Release,
}

/// An event to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `Warning` instead of `Normal`.
    pub warning: bool,
    /// The reason: `Started`.
    pub reason: &'static str,
    /// The words.
    pub message: String,
}

/// One Pod on this node.
#[derive(Debug)]
pub struct Machine {
    pod: Pod,
    /// Init containers and sidecars in order, then the others, then those that were added.
    units: Vec<Unit>,
    began: Timestamp,
    prepared: bool,
    released: bool,
    /// How long everything may take to end because the agent stops.
    leaving: Option<Duration>,
    ending: Option<Ending>,
    /// Why the whole Pod failed, where that is not a container's doing.
    failure: Option<(&'static str, String)>,
    conditions: status::Conditions,
}

/// Since when all containers are to end, and how long they have.
#[derive(Debug, Clone, Copy)]
struct Ending {
    since: Timestamp,
    grace: Duration,
}

impl Machine {
    /// A Pod that was just seen. Where its status tells of an earlier agent, it goes on from there.
    #[must_use]
    pub fn new(pod: Pod, now: Timestamp) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let init = spec.init_containers.unwrap_or_default().into_iter().map(|container| {
            let always = container.restart_policy.as_deref() == Some("Always");
            Unit::new(container, if always { Role::Sidecar } else { Role::Init })
        });
        let main = spec.containers.into_iter().map(|container| Unit::new(container, Role::Main));
        let ephemeral = spec.ephemeral_containers.iter().flatten().map(ephemeral_unit);
        let mut units: Vec<Unit> = init.chain(main).chain(ephemeral).collect();
        let conditions = status::Conditions::of(&pod);
        let policy = unit::Policy::parse(spec.restart_policy.as_deref());
        let mut began = now;
        if let Some(status) = &pod.status {
            units.iter_mut().for_each(|unit| unit.resume(status, policy, now));
            began = status.start_time.as_ref().map_or(now, |time| time.0);
        }
        Self {
            pod,
            units,
            began,
            prepared: false,
            released: false,
            leaving: None,
            ending: None,
            failure: None,
            conditions,
        }
    }

    /// The Pod as it was last seen.
    #[must_use]
    pub fn pod(&self) -> &Pod {
        &self.pod
    }

    /// The object changed: an image may be another one, and ephemeral containers may be added.
    pub fn update(&mut self, pod: Pod) {
        if let Some(spec) = &pod.spec {
            for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
                if let Some(unit) = self.unit(&container.name) {
                    unit.revise(container);
                }
            }
            for container in spec.ephemeral_containers.iter().flatten() {
                if self.unit(&container.name).is_none() {
                    self.units.push(ephemeral_unit(container));
                }
            }
        }
        self.pod = pod;
    }

    /// What a container is to be, by its name.
    #[must_use]
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.units.iter().find(|unit| unit.name() == name).map(|unit| &unit.spec)
    }

    /// The agent stops: everything ends within its grace, or this time where that is shorter, and
    /// the Pod stays in the API.
    pub fn leave(&mut self, limit: Duration) {
        self.leaving = Some(limit);
    }

    /// Address and volumes are there.
    pub fn prepared(&mut self) {
        self.prepared = true;
    }

    /// A container's program runs.
    pub fn started(&mut self, name: &str, id: String, now: Timestamp) {
        if let Some(unit) = self.unit(name) {
            unit.started(id, now);
        }
    }

    /// A container could not be started.
    pub fn refused(&mut self, name: &str, failure: StartFailure, now: Timestamp) -> Vec<Action> {
        self.unit(name).map(|unit| unit.refused(failure, now)).unwrap_or_default()
    }

    /// A container ended.
    pub fn exited(&mut self, name: &str, code: i32, message: Option<String>, now: Timestamp) {
        if let Some(unit) = self.unit(name) {
            unit.exited(code, message, now);
        }
    }

    /// A probe has an answer; `Err` holds what it said.
    pub fn probed(
        &mut self,
        name: &str,
        attempt: i32,
        kind: ProbeKind,
        answer: Result<(), String>,
        now: Timestamp,
    ) -> Vec<Action> {
        let grace = self.grace();
        match self.unit(name) {
            Some(unit) if unit.attempt() == attempt => unit.probed(kind, answer, grace, now),
            _ => Vec::new(),
        }
    }

    /// Something that a container's configuration comes from has changed.
    pub fn poke(&mut self, now: Timestamp) {
        for unit in &mut self.units {
            unit.poke(now);
        }
    }

    /// Whether the startup probe (if any) of a running container has passed.
    #[must_use]
    pub fn is_started(&self, name: &str) -> bool {
        self.units.iter().any(|unit| unit.name() == name && unit.is_started())
    }

    /// What has to be done now. Asking twice gives each action once.
    pub fn advance(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        self.enforce_deadline(now);
        if self.is_ending() || self.is_finished() {
            self.shut_down(now, &mut actions);
            return actions;
        }
        let (policy, name, grace) = (self.policy(), self.describe(), self.grace());
        for unit in &mut self.units {
            unit.replace_changed(grace, now, &mut actions);
        }
        for unit in self.units.iter_mut().filter(|unit| unit.role == Role::Ephemeral) {
            unit.run(policy, &name, now, &mut actions);
        }
        let mut initialised = true;
        for unit in self.units.iter_mut().filter(|unit| unit.comes_before()) {
            unit.run(policy, &name, now, &mut actions);
            if !unit.lets_next_start() {
                initialised = false;
                break;
            }
        }
        if initialised {
            for unit in self.units.iter_mut().filter(|unit| unit.role == Role::Main) {
                unit.run(policy, &name, now, &mut actions);
            }
        }
        actions
    }

    /// When to ask again although nothing happened.
    #[must_use]
    pub fn wake(&self) -> Option<Timestamp> {
        if self.is_ending() || self.is_finished() {
            return None;
        }
        let deadline = self.deadline();
        self.units.iter().filter_map(Unit::wake).chain(deadline).min()
    }

    fn unit(&mut self, name: &str) -> Option<&mut Unit> {
        self.units.iter_mut().find(|unit| unit.name() == name)
    }

    fn policy(&self) -> unit::Policy {
        let spec = self.pod.spec.as_ref();
        unit::Policy::parse(spec.and_then(|spec| spec.restart_policy.as_deref()))
    }

    /// `web_default(uid)`, as the words of a back-off name a Pod.
    fn describe(&self) -> String {
        let meta = &self.pod.metadata;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid))
    }

    fn is_deleted(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }

    fn is_ending(&self) -> bool {
        self.is_deleted() || self.failure.is_some() || self.leaving.is_some()
    }

    /// Whether nothing will run again by itself.
    fn is_finished(&self) -> bool {
        let policy = self.policy();
        let failed_init = self.units.iter().any(|unit| {
            unit.role == Role::Init
                && unit.ended().is_some_and(|end| end.code != 0)
                && !unit.restarts(policy)
        });
        failed_init
            || self
                .units
                .iter()
                .filter(|unit| unit.role == Role::Main)
                .all(|unit| unit.ended().is_some() && !unit.restarts(policy))
    }

    fn grace(&self) -> Duration {
        let spec = self.pod.spec.as_ref();
        let asked = self
            .pod
            .metadata
            .deletion_grace_period_seconds
            .or_else(|| spec.and_then(|spec| spec.termination_grace_period_seconds));
        let grace = Duration::from_secs(asked.unwrap_or(DEFAULT_GRACE).max(0).cast_unsigned());
        self.leaving.map_or(grace, |limit| grace.min(limit))
    }

    fn deadline(&self) -> Option<Timestamp> {
        let seconds = self.pod.spec.as_ref()?.active_deadline_seconds?;
        self.began.checked_add(Duration::from_secs(seconds.max(0).cast_unsigned())).ok()
    }

    fn enforce_deadline(&mut self, now: Timestamp) {
        if self.failure.is_none()
            && !self.is_finished()
            && self.deadline().is_some_and(|deadline| deadline <= now)
        {
            let message = "Pod was active on the node longer than the specified deadline";
            self.failure = Some(("DeadlineExceeded", message.into()));
        }
    }

    /// Ends everything: the Pod's own containers at once, then the sidecars one after the other.
    /// All of them together have the Pod's grace.
    fn shut_down(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let grace = self.grace();
        let ending = match self.ending {
            Some(ending) if ending.grace <= grace => ending,
            // Who has less patience than before counts from now.
            _ => Ending { since: now, grace },
        };
        self.ending = Some(ending);
        let deadline = later(ending.since, ending.grace);
        let mut busy = false;
        for unit in self.units.iter_mut().filter(|unit| unit.role != Role::Sidecar) {
            unit.stop(deadline, now, actions);
            busy |= unit.is_busy();
        }
        if busy {
            return;
        }
        // Sidecars serve the others to the end, and the first of them serves the second.
        let mut sidecars = self.units.iter_mut().rev().filter(|unit| unit.role == Role::Sidecar);
        if let Some(sidecar) = sidecars.find(|unit| unit.is_busy()) {
            sidecar.stop(deadline.max(later(now, SHORTEST_GRACE)), now, actions);
            return;
        }
        if self.is_deleted() && !self.released {
            self.released = true;
            let initialised = self.is_initialised();
            self.units.iter_mut().for_each(|unit| unit.give_up(initialised, now));
            actions.push(Action::Release);
        }
    }
}

/// An ephemeral container is a container with the name of another one, which means nothing here.
fn ephemeral_unit(container: &EphemeralContainer) -> Unit {
    let fields = serde_json::to_value(container).and_then(serde_json::from_value);
    let fallback = || Container { name: container.name.clone(), ..Container::default() };
    Unit::new(fields.unwrap_or_else(|_| fallback()), Role::Ephemeral)
}

fn later(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
