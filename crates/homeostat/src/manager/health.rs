//! How a running manager is: what its readiness says, what its metrics show.
//!
//! Everything here is looked up when somebody asks; nothing is counted in advance or polled.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::definitions::AllMissing;
use super::runnable::Trouble;
use crate::Env;
use crate::cache::{Caches, SourceState};
use crate::contained::contained;
use crate::context::Memories;
use crate::controller::SourceHealth;
use crate::event::Recorder;
use crate::key::Key;
use crate::kind::Kind;
use crate::lease::Fence;
use crate::metrics::{Metrics, Shifts, of};
use crate::queue::Queue;
use crate::webhook;

/// A watch that says nothing for so long is not believed any more: the server ends one after ten
/// minutes at most, and sends a bookmark every minute or so.
const SILENT: Duration = Duration::from_secs(15 * 60);

/// One part of a manager and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at: `source Pod`, `source Secret (app=web)`, `source orders of web` (outside the
    /// API), `lease web (leading)`, `definition webs.example.com` (one that is not installed yet).
    pub name: String,
    /// What is wrong, in words; `None` when it is well.
    pub problem: Option<String>,
    /// What is worth knowing and does not make it unready, as objects that cannot be read, an API that
    /// is away for a moment, or that the missing definition is not this process's to install.
    pub note: Option<String>,
}

/// How a manager is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Every part: sources, definitions that the API had no time for, the lease, runnables, webhooks,
    /// and what was asked for with
    /// [`crate::Manager::with_check`].
    pub checks: Vec<Check>,
}

impl Health {
    /// Whether every part is well. A process that waits for the lease with warm caches is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.checks.iter().all(|check| check.problem.is_none())
    }
}

/// One line for each part: `ok source Pod`, `ok source Secret (…)`, `not ok source Job.batch: …`.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checks.iter().try_for_each(|Check { name, problem, note }| {
            match problem {
                None => write!(f, "ok {name}")?,
                Some(problem) => write!(f, "not ok {name}: {problem}")?,
            }
            note.iter().try_for_each(|note| write!(f, " ({note})"))?;
            writeln!(f)
        })
    }
}

/// Says of some objects of a source that they cannot be read, and which.
fn unreadable(keys: &[Key]) -> Option<String> {
    const NAMED: usize = 3;
    let named: Vec<String> = keys.iter().take(NAMED).map(Key::to_string).collect();
    let more = keys.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let named = named.join(", ");
    (!keys.is_empty()).then(|| format!("what is cached is old, it cannot be read: {named}{more}"))
}

/// What is wrong with a source in that state that has said nothing for so long.
fn problem_of(state: SourceState, silent: Option<Duration>) -> Option<String> {
    match state {
        SourceState::Synced => silent
            .filter(|silent| *silent > SILENT)
            .map(|silent| format!("nothing heard for {} s", silent.as_secs())),
        SourceState::NotStarted => Some("not started".to_owned()),
        SourceState::Syncing => Some("the first list is under way".to_owned()),
        SourceState::Pending(why) => Some(why),
        SourceState::Stopped => Some("stopped".to_owned()),
    }
}

/// A question of the user's about readiness.
#[derive(Clone)]
pub(super) struct Probe {
    name: String,
    problem: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

impl Probe {
    pub(super) fn new(
        name: &str,
        problem: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.to_owned(), problem: Arc::new(problem) }
    }

    /// The answer. A question that panics has one, too.
    fn ask(&self) -> Check {
        let problem = contained(|| (self.problem)())
            .unwrap_or_else(|said| Some(format!("the check panicked: {said}")));
        Check { name: self.name.clone(), problem, note: None }
    }
}

/// The questions of the user's, which may become more; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Probes(Arc<Mutex<Vec<Probe>>>);

impl Probes {
    pub(super) fn new(probes: Vec<Probe>) -> Self {
        Self(Arc::new(Mutex::new(probes)))
    }

    pub(super) fn add(&self, probe: Probe) {
        self.lock().push(probe);
    }

    /// Every answer. No question is asked under the lock: one may add another.
    fn ask(&self) -> Vec<Check> {
        let probes = self.lock().clone();
        probes.iter().map(Probe::ask).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Probe>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What can be asked of a running manager; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Observer {
    pub(super) env: Env,
    pub(super) caches: Caches,
    pub(super) missing: AllMissing,
    pub(super) recorder: Recorder,
    pub(super) metrics: Metrics,
    pub(super) fence: Fence,
    pub(super) lease: Option<String>,
    pub(super) controllers: Vec<Readings>,
    pub(super) outside: Vec<SourceHealth>,
    pub(super) probes: Probes,
    pub(super) runnables: Vec<Arc<str>>,
    pub(super) trouble: Trouble,
    pub(super) webhooks: Option<webhook::Observer>,
}

/// What is looked at of a controller when somebody asks for the metrics.
#[derive(Debug, Clone)]
pub(super) struct Readings {
    pub(super) name: Arc<str>,
    pub(super) queue: Queue<Key>,
    pub(super) shifts: Arc<Shifts>,
    pub(super) memories: Arc<Memories>,
}

/// What the sources of one kind look like together.
#[derive(Default)]
struct Seen {
    objects: usize,
    unreadable: usize,
    lost: bool,
    silent: Duration,
}

impl Observer {
    pub(super) fn health(&self) -> Health {
        let now = self.env.instant();
        let informers = self.caches.informers().into_iter();
        // What one object refers to and nobody may read is that object's trouble, not everybody's.
        let sources = informers.filter(|informer| !informer.is_of_one_object()).map(|informer| {
            let silent = informer.heard().map(|at| now.saturating_duration_since(at));
            let (problem, passing) = match informer.state() {
                SourceState::Pending(why) if !informer.is_cut_off(now) => {
                    (None, Some(format!("not followed for the moment: {why}")))
                }
                state => (problem_of(state, silent), None),
            };
            // Of a source that works there is nothing to say: somebody else looks after its definition.
            let refused = problem.as_ref().and_then(|_| self.missing.note(informer.kind()));
            let note = refused.or(passing).or_else(|| unreadable(&informer.unreadable()));
            Check { name: format!("source {}", informer.words()), problem, note }
        });
        let mut checks: Vec<Check> = sources.collect();
        checks.extend(self.missing.due().into_iter().map(|(name, why)| Check {
            name: format!("definition {name}"),
            problem: Some(format!("not installed yet: {why}")),
            note: None,
        }));
        checks.extend(self.outside.iter().map(|outside| Check {
            name: format!("source {} of {}", outside.source, outside.controller),
            problem: outside.problem(),
            note: None,
        }));
        if let Some(lease) = &self.lease {
            let role = if self.fence.is_open() { "leading" } else { "following" };
            let (name, problem) = (format!("lease {lease} ({role})"), self.fence.problem());
            checks.push(Check { name, problem, note: None });
        }
        checks.extend(self.runnables.iter().map(|name| Check {
            name: format!("runnable {name}"),
            problem: self.trouble.of(name),
            note: None,
        }));
        if let Some(webhooks) = &self.webhooks {
            let (name, problem) = ("webhooks".to_owned(), webhooks.problem());
            checks.push(Check { name, problem, note: None });
        }
        checks.extend(self.probes.ask());
        Health { checks }
    }

    /// Takes the readings that are not counted as they happen, and writes everything down.
    pub(super) fn metrics(&self) -> String {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let Metrics { waiting, leads, sources, unseen_writes, known_children, .. } = &self.metrics;
        let now = self.env.instant();
        for Readings { name, queue, shifts, memories } in &self.controllers {
            self.metrics.queue.read(name, queue, shifts.unfinished(now));
            waiting.get_or_create(&of(name)).set(count(queue.waiting()));
            let (unseen, known) = memories.count();
            unseen_writes.get_or_create(&of(name)).set(count(unseen));
            known_children.get_or_create(&of(name)).set(count(known));
        }
        // Of one kind there may be several: one for each namespace.
        let mut kinds: BTreeMap<Kind, Seen> = BTreeMap::new();
        for informer in self.caches.informers().iter().filter(|one| !one.is_of_one_object()) {
            let seen = kinds.entry(informer.kind().clone()).or_default();
            seen.objects += informer.len();
            seen.unreadable += informer.unreadable().len();
            seen.lost |= informer.state() != SourceState::Synced;
            let heard = informer.heard().map(|at| now.saturating_duration_since(at));
            seen.silent = heard.unwrap_or_default().max(seen.silent);
        }
        sources.show_only(kinds.keys().map(Kind::to_string).collect());
        for (kind, Seen { objects, unreadable, lost, silent }) in kinds {
            let kind = [("kind", kind.to_string())];
            sources.objects.get_or_create(&kind).set(count(objects));
            sources.unreadable.get_or_create(&kind).set(count(unreadable));
            sources.synced.get_or_create(&kind).set(i64::from(!lost));
            let silent = i64::try_from(silent.as_secs()).unwrap_or(i64::MAX);
            sources.silent.get_or_create(&kind).set(silent);
        }
        if let Some(lease) = &self.lease {
            let held = i64::from(self.fence.is_open());
            leads.get_or_create(&[("name", lease.clone())]).set(held);
        }
        let dropped = self.recorder.dropped();
        self.metrics.events_dropped.inner().store(dropped, Ordering::Relaxed);
        self.metrics.text()
    }
}
