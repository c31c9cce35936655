//! What the answers of probes add up to.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Probe};

use super::unit::{State, Unit, warning};
use super::{Action, Notice, later};

/// Which probe of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    /// Holds the other two back until it passes once.
    Startup,
    /// Decides whether traffic is sent.
    Readiness,
    /// Restarts the container when it fails.
    Liveness,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Startup, Self::Readiness, Self::Liveness];

    /// The container's probe of this kind.
    #[must_use]
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }
}

/// The results of one run so far.
#[derive(Debug, Default)]
pub(super) struct Probes {
    started: bool,
    ready: bool,
    /// Answers of the same sort in a row, per kind.
    streaks: [(bool, i32); 3],
}

impl Probes {
    pub(super) fn of(container: &Container) -> Self {
        Self {
            started: container.startup_probe.is_none(),
            ready: container.readiness_probe.is_none(),
            streaks: [(true, 0); 3],
        }
    }

    pub(super) fn started(&self) -> bool {
        self.started
    }

    pub(super) fn ready(&self) -> bool {
        self.ready
    }

    /// How many answers like this one came in a row, this one included.
    fn count(&mut self, kind: ProbeKind, good: bool) -> i32 {
        let streak = &mut self.streaks[kind as usize];
        *streak = if streak.0 == good { (good, streak.1 + 1) } else { (good, 1) };
        streak.1
    }
}

impl Unit {
    pub(super) fn probed(
        &mut self,
        kind: ProbeKind,
        answer: Result<(), String>,
        grace: Duration,
        now: Timestamp,
    ) -> Vec<Action> {
        let Some(probe) = kind.of(&self.spec).cloned() else { return Vec::new() };
        if !matches!(self.state, State::Running { stopping: None, .. }) {
            return Vec::new();
        }
        let streak = self.probes.count(kind, answer.is_ok());
        let mut actions = Vec::new();
        match answer {
            Ok(()) if streak >= probe.success_threshold.unwrap_or(1) => match kind {
                ProbeKind::Startup => self.probes.started = true,
                ProbeKind::Readiness => self.probes.ready = true,
                ProbeKind::Liveness => {}
            },
            Ok(()) => {}
            Err(said) => {
                actions.push(warning("Unhealthy", format!("{} probe failed: {said}", kind.word())));
                if streak >= probe.failure_threshold.unwrap_or(3) {
                    if kind == ProbeKind::Readiness {
                        self.probes.ready = false;
                    } else {
                        self.restart_unhealthy(kind, &probe, grace, now, &mut actions);
                    }
                }
            }
        }
        actions
    }

    fn restart_unhealthy(
        &mut self,
        kind: ProbeKind,
        probe: &Probe,
        grace: Duration,
        now: Timestamp,
        actions: &mut Vec<Action>,
    ) {
        let (name, word) = (&self.spec.name, kind.word().to_lowercase());
        actions.push(Action::Event(Notice {
            warning: false,
            reason: "Killing",
            message: format!("Container {name} failed {word} probe, will be restarted"),
        }));
        let own = probe.termination_grace_period_seconds;
        let grace = own.map_or(grace, |own| Duration::from_secs(own.max(0).cast_unsigned()));
        self.stop_by(later(now, grace), now, actions);
    }
}
