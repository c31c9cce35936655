//! The Pod's status, as clients expect it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Machine;
use super::unit::{End, Role, State, Unit};

/// When each condition last changed.
#[derive(Debug, Default)]
pub(super) struct Conditions(BTreeMap<String, PodCondition>);

impl Conditions {
    pub(super) fn of(pod: &Pod) -> Self {
        Self(by_type(pod))
    }
}

fn by_type(pod: &Pod) -> BTreeMap<String, PodCondition> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone());
    conditions.into_iter().flatten().map(|one| (one.type_.clone(), one)).collect()
}

impl Machine {
    /// The status now. Conditions of others are kept as they were last seen.
    pub fn status(&mut self, pod_ip: Option<&str>, host_ip: &str, now: Timestamp) -> PodStatus {
        let phase = self.phase();
        let conditions = self.conditions(phase, now);
        let statuses = |roles: &[Role]| -> Option<Vec<ContainerStatus>> {
            let units = self.units.iter().filter(|unit| roles.contains(&unit.role));
            let all: Vec<_> = units.map(|unit| unit.status(self.not_yet(unit))).collect();
            (!all.is_empty()).then_some(all)
        };
        let (reason, message) = match &self.failure {
            Some((reason, message)) if phase == "Failed" => {
                (Some((*reason).to_owned()), Some(message.clone()))
            }
            _ => (None, None),
        };
        PodStatus {
            phase: Some(phase.into()),
            conditions: Some(conditions),
            container_statuses: statuses(&[Role::Main]),
            init_container_statuses: statuses(&[Role::Init, Role::Sidecar]),
            ephemeral_container_statuses: statuses(&[Role::Ephemeral]),
            host_ip: Some(host_ip.into()),
            host_ips: Some(vec![HostIP { ip: host_ip.into() }]),
            pod_ip: pod_ip.map(Into::into),
            pod_ips: pod_ip.map(|ip| vec![PodIP { ip: ip.into() }]),
            start_time: Some(Time(self.began)),
            qos_class: Some(quality(&self.pod).into()),
            observed_generation: self.pod.metadata.generation,
            reason,
            message,
            ..PodStatus::default()
        }
    }

    /// Every container, and why it does not run although it is to run.
    pub fn waits(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.units.iter().map(|unit| {
            let why = match &unit.state {
                State::Waiting { reason: "", .. } | State::Starting { refused: None } => {
                    Some(self.not_yet(unit))
                }
                State::Waiting { reason, .. } | State::Starting { refused: Some((reason, _)) } => {
                    Some(*reason)
                }
                State::Running { .. } | State::Ended(_) => None,
            };
            (unit.name(), why)
        })
    }

    /// Why a container without a reason of its own does not run yet.
    fn not_yet(&self, unit: &Unit) -> &'static str {
        if unit.role == Role::Main && !self.is_initialised() {
            "PodInitializing"
        } else {
            "ContainerCreating"
        }
    }

    /// `Pending`, `Running`, `Succeeded` or `Failed`. The last two are said only when nothing runs
    /// any more: whoever waits for them may take the Pod's place at once.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        let began = self.has_begun();
        match self.verdict() {
            Some(_) if self.units.iter().any(Unit::is_busy) => begun(began),
            Some(verdict) => verdict,
            None => begun(began),
        }
    }

    /// Whether every container of the Pod has run at some time.
    fn has_begun(&self) -> bool {
        let mut main = self.units.iter().filter(|unit| unit.role == Role::Main);
        self.is_initialised() && main.all(Unit::has_run)
    }

    /// How the Pod ended, or is about to: nothing of it runs again by itself. A Pod that is being
    /// deleted has failed also if it never began: who holds it by a finalizer waits for that word.
    fn verdict(&self) -> Option<&'static str> {
        if self.failure.is_some() {
            return Some("Failed");
        }
        let policy = self.policy();
        let gave_up =
            |unit: &Unit| unit.ended().is_some_and(|end| end.code != 0) && !unit.restarts(policy);
        if self.units.iter().any(|unit| unit.role == Role::Init && gave_up(unit)) {
            return Some("Failed");
        }
        let main = || self.units.iter().filter(|unit| unit.role == Role::Main);
        if !(self.is_deleted() || self.has_begun() && self.is_finished()) {
            return None;
        }
        let good = main().all(|unit| unit.ended().is_some_and(|end| end.code == 0));
        Some(if good { "Succeeded" } else { "Failed" })
    }

    /// Whether the Pod's own containers may run, or did: a sidecar that ends later undoes nothing.
    pub(super) fn is_initialised(&self) -> bool {
        let mut before = self.units.iter().filter(|unit| unit.comes_before());
        before.all(Unit::lets_next_start)
            || self.units.iter().any(|unit| unit.role == Role::Main && unit.has_run())
    }

    fn conditions(&mut self, phase: &str, now: Timestamp) -> Vec<PodCondition> {
        let unready: Vec<&str> = self
            .units
            .iter()
            .filter(|unit| matches!(unit.role, Role::Sidecar | Role::Main) && !unit.is_ready())
            .map(Unit::name)
            .collect();
        let not_ready = match phase {
            "Succeeded" => Some(("PodCompleted", String::new())),
            "Failed" => Some(("PodFailed", String::new())),
            _ if unready.is_empty() => None,
            _ => Some((
                "ContainersNotReady",
                format!("containers with unready status: [{}]", unready.join(" ")),
            )),
        };
        let gate = not_ready.is_none().then(|| self.closed_gate()).flatten();
        let uninitialised: Vec<&str> = self
            .units
            .iter()
            .filter(|unit| unit.comes_before() && !unit.lets_next_start())
            .map(Unit::name)
            .collect();
        let not_initialised = (!self.is_initialised()).then(|| {
            let names = uninitialised.join(" ");
            ("ContainersNotInitialized", format!("containers with incomplete status: [{names}]"))
        });
        let prepared = (!self.prepared).then(|| ("", String::new()));
        let rows = [
            ("PodReadyToStartContainers", prepared),
            ("Initialized", not_initialised),
            ("Ready", gate.or_else(|| not_ready.clone())),
            ("ContainersReady", not_ready),
            ("PodScheduled", None),
        ];
        let mut all = by_type(&self.pod);
        for (kind, problem) in rows {
            all.insert(kind.into(), self.condition(kind, problem, now));
        }
        all.into_values().collect()
    }

    /// A readiness gate that nobody has opened.
    fn closed_gate(&self) -> Option<(&'static str, String)> {
        let gates = self.pod.spec.as_ref()?.readiness_gates.as_ref()?;
        let seen = by_type(&self.pod);
        let closed = gates.iter().find(|gate| {
            seen.get(&gate.condition_type).is_none_or(|condition| condition.status != "True")
        })?;
        let kind = &closed.condition_type;
        Some(("ReadinessGatesNotReady", format!("the readiness gate {kind:?} is not \"True\"")))
    }

    fn condition(
        &mut self,
        kind: &str,
        problem: Option<(&'static str, String)>,
        now: Timestamp,
    ) -> PodCondition {
        let status = if problem.is_some() { "False" } else { "True" };
        let before = self.conditions.0.get(kind);
        let since = before
            .filter(|before| before.status == status)
            .and_then(|before| before.last_transition_time.clone())
            .unwrap_or(Time(now));
        let (reason, message) = problem.unzip();
        let condition = PodCondition {
            type_: kind.into(),
            status: status.into(),
            last_transition_time: Some(since),
            reason: reason.filter(|text| !text.is_empty()).map(Into::into),
            message: message.filter(|text| !text.is_empty()),
            observed_generation: self.pod.metadata.generation,
            ..PodCondition::default()
        };
        self.conditions.0.insert(kind.into(), condition.clone());
        condition
    }
}

fn begun(begun: bool) -> &'static str {
    if begun { "Running" } else { "Pending" }
}

impl Unit {
    fn status(&self, waiting: &str) -> ContainerStatus {
        let image = self.spec.image.clone().unwrap_or_default();
        let known = self.has_run();
        ContainerStatus {
            name: self.spec.name.clone(),
            image_id: if known { format!("homeostat://{image}") } else { String::new() },
            image,
            container_id: self.container_id(),
            ready: self.is_ready(),
            // Nobody asks how an ephemeral container is.
            started: (self.role != Role::Ephemeral).then(|| self.is_started()),
            restart_count: self.attempt(),
            state: Some(self.state(waiting)),
            last_state: Some(self.last.as_ref().map(terminated).unwrap_or_default()),
            ..ContainerStatus::default()
        }
    }

    fn container_id(&self) -> Option<String> {
        match &self.state {
            State::Running { id, .. } => Some(id.clone()),
            State::Ended(end) => end.id.clone(),
            State::Waiting { .. } | State::Starting { .. } => {
                self.last.as_ref().and_then(|end| end.id.clone())
            }
        }
    }

    fn state(&self, waiting: &str) -> ContainerState {
        let wait = |reason: &str, message: Option<String>| ContainerState {
            waiting: Some(ContainerStateWaiting { reason: Some(reason.into()), message }),
            ..ContainerState::default()
        };
        match &self.state {
            State::Waiting { reason: "", .. } | State::Starting { refused: None } => {
                match &self.last {
                    Some(end) => terminated(end),
                    None => wait(waiting, None),
                }
            }
            State::Waiting { reason, message, .. }
            | State::Starting { refused: Some((reason, message)) } => wait(reason, message.clone()),
            State::Running { since, .. } => ContainerState {
                running: Some(ContainerStateRunning { started_at: Some(Time(*since)) }),
                ..ContainerState::default()
            },
            State::Ended(end) => terminated(end),
        }
    }
}

fn terminated(end: &End) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: end.code,
            reason: Some(end.reason.into()),
            message: end.message.clone(),
            container_id: end.id.clone(),
            started_at: Some(Time(end.began)),
            finished_at: Some(Time(end.ended)),
            signal: None,
        }),
        ..ContainerState::default()
    }
}

/// The quality of service class that requests and limits amount to.
fn quality(pod: &Pod) -> &'static str {
    let Some(spec) = &pod.spec else { return "BestEffort" };
    let all = || spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let resources = |container: &Container| container.resources.clone().unwrap_or_default();
    let names = ["cpu", "memory"];
    let asks = |container: &Container| {
        let resources = resources(container);
        let has = |map: &Option<BTreeMap<_, _>>| map.as_ref().is_some_and(|map| !map.is_empty());
        has(&resources.limits) || has(&resources.requests)
    };
    let fixed = |container: &Container| {
        let resources = resources(container);
        let limits = resources.limits.unwrap_or_default();
        let requests = resources.requests.unwrap_or_default();
        names.iter().all(|name| {
            limits
                .get(*name)
                .is_some_and(|limit| requests.get(*name).is_none_or(|ask| ask == limit))
        })
    };
    if !all().any(asks) {
        "BestEffort"
    } else if all().all(fixed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
