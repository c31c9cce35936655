//! How long a Job waits after failures before it makes the next Pod. Pure.
//!
//! Ten seconds after the last failure, doubled for each further one since the last success. A Job that
//! limits the failures of each index lets each wait on its own; its failed Pods then stay until they
//! are replaced, for the next one has to know how often it was tried.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat::kube::ResourceExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::count::{Tally, number};
use super::indexed::{Failures, failures_before};
use super::observed::Observed;
use super::policy::Ruling;
use crate::pod;

/// The pause after a failure, doubled with each further one.
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(600);

/// When the next Pod may start, for a Job that limits only all failures together.
pub(super) fn until(observed: &Observed<'_, '_>, tally: &Tally) -> Option<Timestamp> {
    let succeeded = observed.pods.iter().filter(|pod| pod::phase(pod) == "Succeeded");
    let last_success = succeeded.filter_map(|pod| ended_at(pod)).max();
    let since: Vec<Timestamp> = observed
        .pods
        .iter()
        .filter(|pod| observed.has_failed(pod))
        .filter_map(|pod| ended_at(pod))
        .filter(|at| last_success.is_none_or(|success| *at > success))
        .collect();
    // Failed Pods may be gone already, but their number is known.
    let known = if tally.succeeded == 0 { tally.failed } else { 0 };
    after(number(since.len()).max(known), since.into_iter().max()?)
}

fn after(failures: i32, last: Timestamp) -> Option<Timestamp> {
    let doubled = u32::try_from(failures).ok()?.checked_sub(1)?;
    let pause = FIRST.saturating_mul(2_u32.saturating_pow(doubled)).min(LONGEST);
    last.checked_add(pause).ok()
}

/// The failed Pods that wait to be replaced, by index.
#[derive(Debug, Default)]
pub(super) struct Waiting<'p> {
    by_index: BTreeMap<i32, &'p Pod>,
}

impl<'p> Waiting<'p> {
    /// The last failed Pod of each index that is neither over nor at work.
    pub(super) fn find(observed: &Observed<'_, 'p>, tally: &Tally) -> Self {
        let mut by_index: BTreeMap<i32, &'p Pod> = BTreeMap::new();
        if observed.limit_per_index().is_none() {
            return Self { by_index };
        }
        let active = observed.active();
        let is_done = |index: i32| {
            tally.completed.has(index)
                || tally.failed_indexes.as_ref().is_some_and(|failed| failed.has(index))
                || active.iter().any(|pod| observed.index(pod) == Some(index))
        };
        let age = |pod: &Pod| {
            let Failures { counted, ignored } = failures_before(pod);
            (counted.saturating_add(ignored), ended_at(pod))
        };
        for pod in observed.tracked().filter(|pod| observed.has_failed(pod)) {
            let Some(index) = observed.index(pod).filter(|index| !is_done(*index)) else {
                continue;
            };
            let last = by_index.entry(index).or_insert(pod);
            if age(last) <= age(pod) {
                *last = pod;
            }
        }
        Self { by_index }
    }

    /// Whether this Pod must stay until there is another of its index.
    pub(super) fn keeps(&self, pod: &Pod) -> bool {
        self.by_index.values().any(|kept| kept.uid() == pod.uid())
    }

    /// When the next Pod of this index may start; `None` if nothing has failed.
    pub(super) fn until(&self, index: i32) -> Option<Timestamp> {
        let pod = self.by_index.get(&index)?;
        let Failures { counted, ignored } = failures_before(pod);
        after(counted.saturating_add(ignored).saturating_add(1), ended_at(pod)?)
    }

    /// What the next Pod of this index has to know of those before it.
    pub(super) fn failures(&self, observed: &Observed<'_, '_>, index: i32) -> Failures {
        let Some(pod) = self.by_index.get(&index) else { return Failures::default() };
        let Failures { counted, ignored } = failures_before(pod);
        match observed.ruling(pod) {
            Ruling::Ignore => Failures { counted, ignored: ignored.saturating_add(1) },
            _ => Failures { counted: counted.saturating_add(1), ignored },
        }
    }
}

/// When a Pod has ended, as well as it is known.
fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let ended = || {
        let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
        let at = |status: &ContainerStatus| {
            Some(status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0)
        };
        let all: Option<Vec<Timestamp>> = statuses.iter().map(at).collect();
        all?.into_iter().max()
    };
    let not_ready = || {
        let ready = pod::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
        ready.last_transition_time.as_ref().map(|at| at.0)
    };
    let deleted = || {
        let at = pod.metadata.deletion_timestamp.as_ref()?.0;
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        at.checked_sub(Duration::from_secs(u64::try_from(grace).unwrap_or(0))).ok()
    };
    let created = || pod.metadata.creation_timestamp.as_ref().map(|at| at.0);
    ended().or_else(not_ready).or_else(deleted).or_else(created)
}
