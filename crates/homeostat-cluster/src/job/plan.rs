//! What a Job does next: create, remove, finish. Pure.

use std::collections::BTreeSet;

use homeostat::kube::ResourceExt;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::TRACKING;
use super::count::{self, Tally, number};
use super::indexed::{self, Place, is_indexed};
use super::indexes::Indexes;
use super::observed::Observed;
use super::pause::{self, Waiting};
use super::verdict::{self, Ending, Event, deadline};
use crate::pod;

/// How many Pods one reconcile makes at most; their arrival wakes the next.
const MOST_CREATED: usize = 500;

/// One write.
#[derive(Debug)]
pub(super) enum Action<'p> {
    /// Make a Pod, with a place if the Job is indexed.
    Create(Option<Place>),
    /// Remove a Pod that is not wanted any more; it does not count as failed.
    Remove(&'p Pod),
    /// Stop a Pod of a Job that has failed, and count it.
    Stop(&'p Pod),
}

/// Everything one reconcile does.
#[derive(Debug)]
pub(super) struct Plan<'p> {
    pub(super) actions: Vec<Action<'p>>,
    pub(super) status: JobStatus,
    pub(super) counted: Vec<&'p Pod>,
    pub(super) wake: Option<Timestamp>,
    pub(super) events: Vec<Event>,
}

/// Decides the next step.
pub(super) fn plan<'p>(job: &Job, spec: &JobSpec, pods: &[&'p Pod], now: Timestamp) -> Plan<'p> {
    let before = job.status.clone().unwrap_or_default();
    let observed = Observed { spec, status: &before, pods };
    let mut status = before.clone();
    let is_suspended = spec.suspend == Some(true);
    if status.start_time.is_none() && !is_suspended {
        status.start_time = Some(Time(now));
    }
    let tally = count::tally(&observed);
    let waiting = Waiting::find(&observed, &tally);
    let active = observed.active();
    let mut ending = verdict::known(&status);
    if ending.is_none() {
        ending = verdict::decide(&mut status, &observed, &tally, now);
    }
    let (actions, mut wake) = match ending {
        Some(Ending::Failure) => (active.iter().map(|pod| Action::Stop(pod)).collect(), None),
        Some(Ending::Success) => (active.iter().map(|pod| Action::Remove(pod)).collect(), None),
        None if is_suspended => (active.iter().map(|pod| Action::Remove(pod)).collect(), None),
        None => manage(&observed, &tally, &waiting, now),
    };
    let is_gone = |pod: &Pod| {
        actions.iter().any(|action| match action {
            Action::Create(_) => false,
            Action::Remove(gone) | Action::Stop(gone) => gone.uid() == pod.uid(),
        })
    };
    let (gone, kept): (Vec<&Pod>, Vec<&Pod>) = active.iter().partition(|pod| is_gone(pod));
    let created = actions.iter().filter(|action| matches!(action, Action::Create(_))).count();
    let remaining = number(kept.len() + created);
    let leaving = number(observed.leaving().count() + gone.len());

    let mut events = Vec::new();
    if ending.is_none() {
        if verdict::complete(&mut status, spec, &tally, remaining, now) {
            ending = Some(Ending::Success);
        } else {
            events.extend(verdict::suspend(&mut status, spec, now));
            wake = wake.into_iter().chain(deadline(spec, &status)).min();
        }
    }
    let counted = count::step(&observed, &waiting, ending);
    status.active = positive(remaining);
    status.ready = Some(number(kept.iter().filter(|pod| pod::is_ready(pod)).count()));
    status.terminating = Some(leaving);
    if is_indexed(spec) {
        status.completed_indexes = Some(tally.completed.to_string());
        status.succeeded = positive(tally.succeeded);
    } else {
        status.succeeded = positive(counted.succeeded);
    }
    status.failed_indexes = tally.failed_indexes.as_ref().map(Indexes::to_string);
    status.failed = positive(counted.failed);
    let is_settled = counted.uncounted.succeeded.is_none() && counted.uncounted.failed.is_none();
    status.uncounted_terminated_pods = Some(counted.uncounted);
    let is_finished = verdict::has(&status, "Complete") || verdict::has(&status, "Failed");
    if is_settled && !is_finished && remaining == 0 && leaving == 0 {
        events.extend(verdict::finish(&mut status, now));
    }
    Plan { actions, status, counted: counted.to_release, wake, events }
}

/// The Pods to make or to remove, and when to look again although nothing happens.
fn manage<'p>(
    observed: &Observed<'_, 'p>,
    tally: &Tally,
    waiting: &Waiting<'p>,
    now: Timestamp,
) -> (Vec<Action<'p>>, Option<Timestamp>) {
    let active = observed.active();
    let wanted = wanted(observed.spec, tally, active.len());
    let surplus = surplus(observed, &active, active.len().saturating_sub(wanted));
    if !surplus.is_empty() {
        return (surplus.into_iter().map(Action::Remove).collect(), None);
    }
    let held = if observed.only_replaces_failed() { observed.leaving().count() } else { 0 };
    let missing = wanted.saturating_sub(active.len() + held).min(MOST_CREATED);
    if missing == 0 {
        return (Vec::new(), None);
    }
    if observed.limit_per_index().is_none()
        && let Some(at) = pause::until(observed, tally).filter(|at| *at > now)
    {
        return (Vec::new(), Some(at));
    }
    if !is_indexed(observed.spec) {
        return ((0..missing).map(|_| Action::Create(None)).collect(), None);
    }
    let free = free_indexes(observed, tally, &active, missing);
    let is_paused = |index: &i32| waiting.until(*index).is_some_and(|at| at > now);
    let (paused, ready): (Vec<i32>, Vec<i32>) = free.into_iter().partition(is_paused);
    let create = |index: i32| {
        let limited = observed.limit_per_index();
        let failures = limited.map(|_| waiting.failures(observed, index));
        Action::Create(Some(Place { index, failures }))
    };
    let wake = paused.into_iter().filter_map(|index| waiting.until(index)).min();
    (ready.into_iter().map(create).collect(), wake)
}

/// How many Pods should be active.
fn wanted(spec: &JobSpec, tally: &Tally, active: usize) -> usize {
    let parallelism = spec.parallelism.unwrap_or(1);
    let wanted = match spec.completions {
        Some(completions) => parallelism.min(completions.saturating_sub(tally.succeeded)),
        // A work queue: once one has succeeded no new Pod is started.
        None if tally.succeeded > 0 => return active,
        None => parallelism,
    };
    usize::try_from(wanted).unwrap_or(0)
}

/// At least so many Pods to remove, the least useful first; of an Indexed Job all that have no index
/// of their own.
fn surplus<'p>(observed: &Observed<'_, 'p>, active: &[&'p Pod], at_least: usize) -> Vec<&'p Pod> {
    let mut ranked = active.to_vec();
    ranked.sort_by_cached_key(|pod| pod::removal_rank(pod));
    let mut taken = BTreeSet::new();
    let mut has_place = |pod: &Pod| {
        !is_indexed(observed.spec) || observed.index(pod).is_some_and(|index| taken.insert(index))
    };
    let (rest, mut surplus): (Vec<&Pod>, Vec<&Pod>) =
        ranked.into_iter().rev().partition(|pod| has_place(pod));
    let more = at_least.saturating_sub(surplus.len());
    surplus.extend(rest.into_iter().rev().take(more));
    surplus
}

/// The lowest indexes for which a Pod is to be made.
fn free_indexes(
    observed: &Observed<'_, '_>,
    tally: &Tally,
    active: &[&Pod],
    count: usize,
) -> Vec<i32> {
    let held = observed.leaving().filter(|_| observed.only_replaces_failed());
    let at_work = active.iter().copied().chain(held).filter_map(|pod| observed.index(pod));
    let given_up = tally.failed_indexes.clone().unwrap_or_default();
    let taken = tally.completed.with(&at_work.collect()).with(&given_up);
    taken.first_missing(count, observed.spec.completions.unwrap_or(0))
}

/// A Pod of the Job.
pub(super) fn pod(job: &Job, place: Option<Place>) -> Pod {
    let Some(spec) = &job.spec else { return Pod::default() };
    let mut pod = pod::from_template(&spec.template);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if finalizers.iter().all(|name| name != TRACKING) {
        finalizers.push(TRACKING.into());
    }
    pod.metadata.generate_name = Some(format!("{}-", job.name_any()));
    match place {
        Some(place) => indexed::number(pod, &job.name_any(), place),
        None => pod,
    }
}

/// Takes an action that was not carried out from the numbers that foretold it.
pub(super) fn undo(status: &mut JobStatus, action: &Action<'_>) {
    let active = status.active.unwrap_or(0);
    match action {
        Action::Create(_) => status.active = positive(active - 1),
        Action::Remove(_) | Action::Stop(_) => {
            status.active = Some(active + 1);
            status.terminating = status.terminating.map(|leaving| leaving - 1);
        }
    }
}

fn positive(number: i32) -> Option<i32> {
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests;
