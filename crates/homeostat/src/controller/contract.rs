//! The reconcile contract: what comes of the result of a reconcile, row by row.
//!
//! It decides when a key runs again and what is said of it; how the reconcile is run is the
//! [worker](super::worker)'s business.

use std::time::Duration;

use futures::future::Either;
use jiff::{SignedDuration, Timestamp};

use super::GiveUp;
use super::worker::Worker;
use crate::contained::contained;
use crate::context::{Context, EventType, Mark, Memory};
use crate::error::{Error, GIVEN_UP, Result};
use crate::journal::Ending;
use crate::key::Key;
use crate::kind::AnyObject;
use crate::outcome::Outcome;
use crate::trigger::Trigger;

/// The first quick retry after a conflict; each further one waits twice as long.
const QUICK_RETRY: Duration = Duration::from_millis(10);
/// So many quick retries in a row; then a conflict is a failure like any other.
const QUICK_RETRIES: u32 = 5;

/// How a reconcile ended and when the key runs again by itself.
pub(super) struct Conclusion {
    pub(super) ending: Ending,
    pub(super) next: Option<Timestamp>,
}

impl<K: AnyObject> Worker<K> {
    /// The contract, row by row.
    pub(super) fn conclude<'a>(
        &'a self,
        key: &'a Key,
        result: Result<Outcome>,
        context: Option<&'a Context<K>>,
    ) -> impl Future<Output = Conclusion> + 'a {
        match result {
            Ok(outcome) => Either::Left(self.went_well(key, outcome, context)),
            // Boxed: most reconciles go well, and every worker would have room for it.
            Err(error) => Either::Right(Box::pin(self.went_wrong(key, error, context))),
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
        let failures = self.shared.memories.with(key, |memory| {
            memory.conflicts = 0;
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
