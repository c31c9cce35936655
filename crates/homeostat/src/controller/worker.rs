//! The worker: takes a key, runs the reconcile, and does what its result asks for.
//!
//! This is the reconcile contract. A panic, a time-out or an error of one key never touches
//! another; one key is never on two workers (the queue sees to that).

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use tracing::Instrument;

use super::GiveUp;
use super::ahead::Ahead;
use super::reconcile::Boxed;
use crate::contained::{self, contained};
use crate::context::{Context, EventType, Mark, Memory, Shared};
use crate::error::{Error, GIVEN_UP, Result};
use crate::hotloop::{Detector, Run};
use crate::journal::{Ending, Journal, Record};
use crate::key::Key;
use crate::kind::AnyObject;
use crate::metrics::{ControllerMetrics, Shifts};
use crate::outcome::Outcome;
use crate::queue::{Backoff, Item, Queue};
use crate::trigger::Trigger;

/// The first quick retry after a conflict; each further one waits twice as long.
const QUICK_RETRY: Duration = Duration::from_millis(10);
/// So many quick retries in a row; then a conflict is a failure like any other.
const QUICK_RETRIES: u32 = 5;

/// What a controller's workers share.
pub(super) struct Worker<K> {
    pub(super) shared: Arc<Shared>,
    pub(super) shifts: Arc<Shifts>,
    pub(super) queue: Queue<Key>,
    /// Where reconciles read the kind of the primaries from another cache than theirs.
    pub(super) ahead: Option<Ahead>,
    pub(super) reconcile: Boxed<K>,
    pub(super) journal: Journal,
    pub(super) metrics: ControllerMetrics,
    pub(super) timeout: Duration,
    /// How long a key waits whose mark could not be written; the queue has it for failures.
    pub(super) backoff: Backoff,
    pub(super) give_up: Option<GiveUp>,
    pub(super) hot_loops: Option<Mutex<Detector>>,
    pub(super) started: Instant,
}

/// How a reconcile ended and when the key runs again by itself.
struct Conclusion {
    ending: Ending,
    next: Option<Timestamp>,
}

/// A key that a worker has taken; given back when dropped.
struct Held<'a> {
    queue: &'a Queue<Key>,
    key: &'a Key,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.queue.done(self.key);
    }
}

impl<K: AnyObject> Worker<K> {
    /// Works until the queue is shut down, as the worker of that number; says so when it has taken
    /// its first key.
    pub(super) async fn run(&self, number: usize, has_begun: impl FnOnce()) {
        let mut has_begun = Some(has_begun);
        while let Some(item) = self.queue.get().await {
            if let Some(tell) = has_begun.take() {
                tell();
            }
            let id = self.shared.next_id();
            // However little of a log is wanted, each line of it names its object.
            let span = tracing::error_span!(
                "reconcile",
                controller = %self.shared.name,
                object = %item.key,
                id,
                trigger = %item.triggers,
            );
            let began = self.shared.env.instant();
            self.shifts.begin(number, began);
            // Dropped whatever happens: a key that nobody gives back never runs again.
            let _held = Held { queue: &self.queue, key: &item.key };
            let processed = AssertUnwindSafe(self.process(&item, id, began).instrument(span));
            let ended = processed.catch_unwind().await.unwrap_or_else(|panic| {
                // The reconcile's own panic is an error of the reconcile, and so is its type's.
                // This is a fault of ours.
                self.metrics.panics.inc();
                let delay = self.queue.add_rate_limited(item.key.clone());
                let (key, said) = (&item.key, contained::words(&*panic));
                tracing::error!(%key, said, ?delay, "a panic beside the reconcile");
                self.shared.env.instant()
            });
            self.shifts.end(number);
            let worked = ended.saturating_duration_since(began);
            self.metrics.worked(self.queue.waited(&item, began), worked);
        }
    }

    /// Runs the reconcile of a key that was taken, and does what comes of it; returns when it ended.
    async fn process(&self, item: &Item<Key>, id: u64, began: Instant) -> Instant {
        let time = self.shared.env.now();
        let _busy = self.metrics.busy();
        let (key, kind) = (&item.key, &self.shared.kind);
        let fresh = match self.shared.primaries.informer(key.namespace()) {
            Some(cache) => self.shared.settle_primary(key, &cache).await,
            None => Ok(()),
        };
        // The whole collection passes by at the start; keeping its last few objects helps nobody.
        let keep = item.triggers != [Trigger::Initial];
        // The decoder is the user's code as much as the reconcile.
        let get = || {
            contained(|| self.shared.primaries.get::<K>(key, keep)).unwrap_or_else(|said| {
                self.metrics.panics.inc();
                Err(Error::Panicked(format!("its object cannot be decoded: {said}")))
            })
        };
        let found = fresh.and_then(|()| get());
        let (ended, conclusion, (reads, writes)) = match found {
            Ok(None) => {
                // Gone: whatever was known about it is of no use to a later object of that name.
                self.queue.forget(key);
                self.with_hot_loops(|detector| detector.forget(key));
                self.shared.follows.ended(key, &BTreeSet::new(), true);
                self.shared.memories.forget(key);
                // A namesake may have come meanwhile, and what was heard of it is forgotten, too.
                if let (Some(ahead), Some(entry)) = (&self.ahead, self.shared.primaries.entry(key))
                {
                    ahead.heard(key, kind, &entry);
                }
                return self.shared.env.instant();
            }
            Ok(Some((seen, primary))) => {
                self.meet(key, &seen.header.uid);
                let (shared, triggers) = (self.shared.clone(), item.triggers.clone());
                let context = Context::new(shared, key.clone(), triggers, primary.clone());
                if !seen.may_be_marked() {
                    context.needs_no_mending();
                }
                let result = self.reconcile(primary, context.clone()).await;
                let conclusion = self.conclude(key, result, Some(&context)).await;
                let whole = matches!(conclusion.ending, Ending::Ok(_) | Ending::Terminal(_));
                self.shared.follows.ended(key, &context.take_followed(), whole);
                if matches!(conclusion.ending, Ending::Terminal(_)) {
                    self.shared.memories.with_known(key, Memory::grow_older);
                }
                self.shared.tidy(key);
                // Whatever is remembered from now on is of this object.
                self.meet(key, &seen.header.uid);
                let notes = context.take_notes();
                let ended = self.shared.env.instant();
                let (triggers, writes) = (&*item.triggers, &*notes.1);
                let run = Run { triggers, writes, seen: Some(&seen), kind };
                self.look_for_hot_loop(&context, run, ended);
                (ended, conclusion, notes)
            }
            Err(error) => {
                let seen = self.shared.primaries.entry(key).map(|entry| entry.header.uid.clone());
                seen.iter().for_each(|uid| self.meet(key, uid));
                let conclusion = self.conclude(key, Err(error), None).await;
                seen.iter().for_each(|uid| self.meet(key, uid));
                (self.shared.env.instant(), conclusion, Default::default())
            }
        };
        let took = ended.saturating_duration_since(began);
        self.metrics.ended(&conclusion.ending, took);
        self.journal.write(Record {
            id,
            time,
            took,
            controller: self.shared.name.clone(),
            key: key.clone(),
            triggers: item.triggers.clone(),
            reads,
            writes,
            result: conclusion.ending,
            next: conclusion.next,
        });
        ended
    }

    /// The key is now that of the object with this uid: what is known of an earlier one of the name is
    /// of no use to it.
    fn meet(&self, key: &Key, uid: &Arc<str>) {
        if self.shared.memories.with_known(key, |memory| memory.meet(uid)) == Some(true) {
            self.queue.forget(key);
            self.with_hot_loops(|detector| detector.forget(key));
        }
    }

    /// Says so when this key, or what it writes, does not come to rest.
    fn look_for_hot_loop(&self, context: &Context<K>, run: Run<'_>, ended: Instant) {
        let now = ended.saturating_duration_since(self.started);
        let found = self.with_hot_loops(|detector| detector.observe(context.key(), run, now));
        if let Some(finding) = found.flatten() {
            tracing::warn!("{finding}");
            self.metrics.hot_loops.inc();
            context.event(EventType::Warning, "HotLoop", finding.to_string());
        }
    }

    fn with_hot_loops<R>(&self, look: impl FnOnce(&mut Detector) -> R) -> Option<R> {
        let detector = self.hot_loops.as_ref()?;
        Some(look(&mut detector.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Runs the function; a panic, a time-out and a lost lease become errors.
    async fn reconcile(&self, primary: Arc<K>, context: Context<K>) -> Result<Outcome> {
        let guarded = AssertUnwindSafe(async { (self.reconcile)(primary, context).await });
        let limited = self.shared.env.timeout(self.timeout, guarded.catch_unwind());
        let ended = tokio::select! {
            biased;
            // Its next write would be refused; better to stop than to see half of it fail.
            () = self.shared.fence.closed_again() => return Err(Error::NotLeader),
            ended = limited => ended,
        };
        match ended {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                self.metrics.panics.inc();
                Err(Error::Panicked(contained::words(&*panic)))
            }
            Err(_) => {
                self.metrics.timeouts.inc();
                Err(Error::TimedOut(self.timeout))
            }
        }
    }

    /// The contract, row by row.
    async fn conclude(
        &self,
        key: &Key,
        result: Result<Outcome>,
        context: Option<&Context<K>>,
    ) -> Conclusion {
        match result {
            Ok(outcome) => self.went_well(key, outcome, context).await,
            // Boxed: most reconciles go well, and every worker would have room for it.
            Err(error) => Box::pin(self.went_wrong(key, error, context)).await,
        }
    }

    async fn went_wrong(
        &self,
        key: &Key,
        error: Error,
        context: Option<&Context<K>>,
    ) -> Conclusion {
        if is_gone(&error, context).await {
            return self.went_well(key, Outcome::Done, None).await;
        }
        // One that is held, or that this controller does not follow, is somebody else's.
        if error.is_lost_lease() && !self.shared.fence.is_open() {
            tracing::debug!("given up: another process leads");
            self.queue.add_low(key.clone(), Trigger::Requeued);
            return Conclusion { ending: Ending::NotLeader, next: None };
        }
        let text = error.chain();
        let conflicts = self.shared.memories.with(key, |memory| {
            if context.is_some() {
                memory.undecodable = None;
            }
            memory.conflicts = if error.is_conflict() { memory.conflicts + 1 } else { 0 };
            memory.conflicts
        });
        if (1..=QUICK_RETRIES).contains(&conflicts) {
            let delay = QUICK_RETRY * 2_u32.pow(conflicts - 1);
            tracing::debug!(error = text, ?delay, "conflict");
            self.queue.add_after_for(key.clone(), delay, Trigger::Conflict);
            return Conclusion { ending: Ending::Conflict(text), next: Some(self.after(delay)) };
        }
        if error.is_terminal() {
            self.queue.forget(key);
            self.shared.memories.with(key, |memory| {
                (memory.failures, memory.given_up) = (0, false);
            });
            let mut unmarked = None;
            if let Some(context) = context {
                let said = context.said_degraded();
                let cause = said.as_deref().unwrap_or_else(|| error.reason());
                self.report_terminal(key, context, cause, &text);
                // In words that are known for the runtime's, so that they stay until it takes them back.
                let mark = Mark::Degraded { reason: error.reason(), message: &text };
                unmarked = self.mark(key, context, mark).await;
            } else {
                self.report_undecodable(key, error.reason(), &text);
            }
            let again = context.and_then(|context| context.look_again(&error));
            again.into_iter().for_each(|delay| self.queue.add_after(key.clone(), delay));
            let next = self.first_of([again, unmarked]);
            return Conclusion { ending: Ending::Terminal(text), next };
        }
        self.shared.memories.with(key, |memory| memory.conflicts = 0);
        let failures = self.shared.memories.with(key, |memory| {
            memory.failures = memory.failures.saturating_add(1);
            memory.failures
        });
        if let Some(give_up) = self.give_up.as_ref().filter(|limit| failures >= limit.attempts) {
            let unmarked = self.give_up(give_up, key, &error, context).await;
            let next = self.first_of([unmarked]);
            return Conclusion { ending: Ending::Terminal(text), next };
        }
        let delay = self.queue.add_rate_limited_at_least(key.clone(), error.told_to_wait());
        self.metrics.retries.inc();
        tracing::warn!(error = text, ?delay, "failed");
        Conclusion { ending: Ending::Failed(text), next: Some(self.after(delay)) }
    }

    /// The key has failed as often as it may. Returns after how long it comes again because that
    /// could not be said of it.
    async fn give_up(
        &self,
        limit: &GiveUp,
        key: &Key,
        error: &Error,
        context: Option<&Context<K>>,
    ) -> Option<Duration> {
        self.queue.forget(key);
        // Whoever comes again for the sake of its mark alone has been told of.
        if !self.shared.memories.with(key, |memory| std::mem::replace(&mut memory.given_up, true)) {
            let (text, attempts) = (error.chain(), limit.attempts);
            tracing::warn!(error = text, attempts, "given up: waiting for the object to change");
            if let Err(said) = contained(|| (limit.tell)(key, error)) {
                tracing::error!(said, "who is told of keys that are given up panicked");
            }
            if let Some(context) = context {
                context.event(EventType::Warning, GIVEN_UP, text);
            }
        }
        let unmarked = match context {
            Some(context) => {
                let mark = Mark::Degraded { reason: GIVEN_UP, message: &error.chain() };
                self.mark(key, context, mark).await
            }
            None => None,
        };
        // Then it has one more try, not as many as at first.
        let failures = if unmarked.is_some() { limit.attempts - 1 } else { 0 };
        self.shared.memories.with(key, |memory| {
            (memory.failures, memory.given_up) = (failures, unmarked.is_some());
        });
        unmarked
    }

    async fn went_well(
        &self,
        key: &Key,
        outcome: Outcome,
        context: Option<&Context<K>>,
    ) -> Conclusion {
        self.queue.forget(key);
        self.shared.memories.with_known(key, |memory| {
            (memory.conflicts, memory.failures, memory.terminal) = (0, 0, None);
            (memory.undecodable, memory.given_up) = (None, false);
            memory.grow_older();
        });
        let unmarked = match context {
            Some(context) => {
                // Whoever comes again by itself may ask for the others then.
                if outcome == Outcome::Done {
                    context.name_forgotten_finalizers();
                }
                self.mark(key, context, Mark::Well).await
            }
            None => None,
        };
        let delay = match outcome {
            Outcome::Done => None,
            Outcome::Requeue => {
                self.queue.add_last(key.clone(), Trigger::Requeued);
                None
            }
            Outcome::RequeueAfter(delay) => Some(delay),
            Outcome::RequeueAt(time) => Some(time_until(time, self.shared.env.now())),
        };
        match delay {
            Some(Duration::ZERO) => self.queue.add(key.clone(), Trigger::Timer),
            Some(delay) => self.queue.add_after(key.clone(), delay),
            None => {}
        }
        let next = match outcome {
            Outcome::Requeue => Some(Duration::ZERO),
            _ => delay,
        };
        Conclusion { ending: Ending::Ok(outcome), next: self.first_of([next, unmarked]) }
    }

    /// Tells a terminal error once: what runs again for a child's sake has nothing new to say.
    fn report_terminal(&self, key: &Key, context: &Context<K>, reason: &str, text: &str) {
        let told = (context.primary().meta().generation, text.to_owned());
        let before = self.shared.memories.with(key, |memory| memory.terminal.replace(told.clone()));
        if before.as_ref() != Some(&told) {
            tracing::warn!(error = text, "terminal: waiting for the object to change");
            context.event(EventType::Warning, reason, text);
        }
    }

    /// Says that the primary does not fit its type: once, until it fits or is wrong in another way.
    fn report_undecodable(&self, key: &Key, reason: &str, text: &str) {
        // The decoder's place in the text moves with every edit and helps nobody.
        let text = text.split_once(" at line ").map_or(text, |(gist, _)| gist);
        let said = |memory: &mut Memory| memory.undecodable.replace(text.to_owned());
        if self.shared.memories.with(key, said).as_deref() == Some(text) {
            return;
        }
        tracing::warn!(error = text, "terminal: waiting for the object to change");
        if let Some(entry) = self.shared.primaries.entry(key) {
            let regarding = entry.header.reference(&self.shared.kind);
            self.shared.recorder.record(
                &self.shared.name,
                regarding,
                EventType::Warning,
                reason,
                text,
            );
        }
    }

    /// When the first of these delays is over.
    fn first_of<const N: usize>(&self, delays: [Option<Duration>; N]) -> Option<Timestamp> {
        delays.into_iter().flatten().min().map(|delay| self.after(delay))
    }

    fn after(&self, delay: Duration) -> Timestamp {
        self.shared.env.now().saturating_add(delay).unwrap_or(Timestamp::MAX)
    }
}

/// How long until `time`; nothing when it has passed.
fn time_until(time: Timestamp, now: Timestamp) -> Duration {
    let left: SignedDuration = time.duration_since(now);
    Duration::try_from(left).unwrap_or_default()
}

/// Whether the error says that the primary itself is gone: that is not an error.
async fn is_gone<K: AnyObject>(error: &Error, context: Option<&Context<K>>) -> bool {
    let (Some(status), Some(context)) = (error.answer(), context) else { return false };
    let Some(details) = status.details.as_ref().filter(|_| status.code == 404) else {
        return false;
    };
    let (kind, key) = (context.kind(), context.key());
    let alike = details.name == key.name()
        && details.group == kind.group()
        && (details.kind == kind.plural() || details.kind == kind.kind());
    // The answer does not say of which namespace it speaks: a namesake may be what is missing.
    let uid = context.primary().meta().uid.clone();
    alike
        && match context.get_live_of::<K>(kind, key).await {
            Ok(found) => found.is_none_or(|found| found.meta().uid != uid),
            Err(_) => false,
        }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// How much memory what a function returns takes.
    fn room<T, F>(_: impl FnOnce(T) -> F) -> usize {
        size_of::<F>()
    }

    /// Every reconcile under way takes so much, beside its object and its context: memory that a
    /// thousand of them at once must get from the system first. What is seldom waited for is boxed.
    #[test]
    fn a_reconcile_under_way_takes_little_room() {
        type All = &'static Worker<ConfigMap>;
        type Taken = &'static Item<Key>;
        let whole = room(|worker: All| worker.run(0, || {}));
        let parts = [
            room(|(worker, item, began): (All, Taken, Instant)| worker.process(item, 1, began)),
            room(|(worker, primary, context): (All, _, _)| worker.reconcile(primary, context)),
            room(|(worker, key): (All, _)| worker.conclude(key, Ok(Outcome::Done), None)),
            room(|(shared, key, cache)| Shared::settle_primary(shared, key, cache)),
        ];
        assert!(whole <= 896, "{whole} bytes, of them {parts:?}");
    }
}
