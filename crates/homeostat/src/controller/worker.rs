//! The worker: takes a key, runs the reconcile, and has the [contract](super::contract) say what comes
//! of it.
//!
//! A panic, a time-out or an error of one key never touches another; one key is never on two workers
//! (the queue sees to that).

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use tokio::time::Instant;
use tracing::Instrument;

use super::GiveUp;
use super::ahead::Ahead;
use super::contract::Conclusion;
use super::reconcile::Boxed;
use crate::cache::Entry;
use crate::contained::{self, contained};
use crate::context::{Context, EventType, Memory, Shared};
use crate::error::{Error, Result};
use crate::hotloop::{Detector, Run};
use crate::journal::{Ending, Journal, Read, Record, Write};
use crate::key::Key;
use crate::kind::AnyObject;
use crate::metrics::{ControllerMetrics, Shifts};
use crate::outcome::Outcome;
use crate::queue::{Backoff, Item, Queue};
use crate::trigger::Trigger;

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

/// A reconcile, and since when it is under way.
#[derive(Clone, Copy)]
struct Started {
    id: u64,
    time: Timestamp,
    at: Instant,
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
        loop {
            // Not the condition of a loop: that would have room for the item twice.
            let Some(item) = self.queue.get().await else { return };
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
        let started = Started { id, time: self.shared.env.now(), at: began };
        let _busy = self.metrics.busy();
        let key = &item.key;
        let (seen, primary) = match self.primary(item).await {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.forget(key);
                return self.shared.env.instant();
            }
            Err(error) => {
                let seen = self.shared.primaries.entry(key).map(|entry| entry.header.uid.clone());
                seen.iter().for_each(|uid| self.meet(key, uid));
                let conclusion = self.conclude(key, Err(error), None).await;
                seen.iter().for_each(|uid| self.meet(key, uid));
                let ended = self.shared.env.instant();
                self.record(item, started, ended, conclusion, Default::default());
                return ended;
            }
        };
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
        let (triggers, writes, kind) = (&*item.triggers, &*notes.1, &self.shared.kind);
        let run = Run { triggers, writes, seen: Some(&seen), kind };
        self.look_for_hot_loop(&context, run, ended);
        self.record(item, started, ended, conclusion, notes);
        ended
    }

    /// The object of a key that was taken, as its cache has it and decoded, once that is as new as it
    /// must be; `None` when it is gone.
    async fn primary(&self, item: &Item<Key>) -> Result<Option<(Arc<Entry>, Arc<K>)>> {
        let (key, primaries) = (&item.key, &self.shared.primaries);
        if let Some(cache) = primaries.informer(key.namespace()) {
            self.shared.settle_primary(key, &cache).await?;
        }
        // The whole collection passes by at the start; keeping its last few objects helps nobody.
        let keep = item.triggers != [Trigger::Initial];
        // The decoder is the user's code as much as the reconcile.
        contained(|| primaries.get::<K>(key, keep)).unwrap_or_else(|said| {
            self.metrics.panics.inc();
            Err(Error::Panicked(format!("its object cannot be decoded: {said}")))
        })
    }

    /// Whatever was known about what is gone is of no use to a later object of that name.
    fn forget(&self, key: &Key) {
        self.queue.forget(key);
        self.with_hot_loops(|detector| detector.forget(key));
        self.shared.follows.ended(key, &BTreeSet::new(), true);
        self.shared.memories.forget(key);
        // A namesake may have come meanwhile, and what was heard of it is forgotten, too.
        if let (Some(ahead), Some(entry)) = (&self.ahead, self.shared.primaries.entry(key)) {
            ahead.heard(key, &self.shared.kind, &entry);
        }
    }

    /// Counts a reconcile that has ended, and writes it into the journal.
    fn record(
        &self,
        item: &Item<Key>,
        started: Started,
        ended: Instant,
        conclusion: Conclusion,
        (reads, writes): (Vec<Read>, Vec<Write>),
    ) {
        let took = ended.saturating_duration_since(started.at);
        self.metrics.ended(&conclusion.ending, took);
        self.journal.write(Record {
            id: started.id,
            time: started.time,
            took,
            controller: self.shared.name.clone(),
            key: item.key.clone(),
            triggers: item.triggers.clone(),
            reads,
            writes,
            result: conclusion.ending,
            next: conclusion.next,
        });
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
        assert!(whole <= 672, "{whole} bytes, of them {parts:?}");
    }
}
