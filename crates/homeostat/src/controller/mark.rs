//! What the runtime itself says in a primary's conditions. A mark that could not be written makes its
//! key come again, ever more seldom, until it is; it never changes how a reconcile ended, and the
//! write itself does not wake the key.

use std::time::Duration;

use super::worker::Worker;
use crate::context::{Context, Mark};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::AnyObject;
use crate::trigger::Trigger;

/// How long the runtime's own words about a primary may take to write.
const LIMIT: Duration = Duration::from_secs(30);

impl<K: AnyObject> Worker<K> {
    /// Says in the primary's conditions how it went, if that is news. Returns after how long the
    /// key comes again because it could not be said.
    pub(super) async fn mark(
        &self,
        key: &Key,
        context: &Context<K>,
        mark: Mark<'_>,
    ) -> Option<Duration> {
        let marked = match context.needs_mark(mark) {
            // Boxed, as everything that is seldom done: every worker has room for all that is not.
            true => Box::pin(self.write_mark(key, context, mark)).await,
            false => Ok(()),
        };
        let error = match marked {
            Err(error) if may_pass(&error) => error,
            ended => {
                self.shared.memories.with_known(key, |memory| memory.unmarked = 0);
                if let Err(error) = ended {
                    tracing::warn!(error = error.chain(), "condition not written");
                }
                return None;
            }
        };
        let attempt = self.shared.memories.with(key, |memory| {
            memory.unmarked = memory.unmarked.saturating_add(1);
            memory.unmarked
        });
        let dice = if self.backoff.jitter > 0.0 { self.shared.env.random_unit() } else { 0.0 };
        let delay = self.backoff.delay(attempt - 1, dice).max(error.told_to_wait());
        tracing::debug!(error = error.chain(), ?delay, "condition not written yet");
        // No failure of the key, so its count of those stays as it is.
        self.queue.add_after_for(key.clone(), delay, Trigger::Retry { attempt });
        Some(delay)
    }

    async fn write_mark(&self, key: &Key, context: &Context<K>, mark: Mark<'_>) -> Result<()> {
        let memories = &self.shared.memories;
        let from = context.primary().meta().resource_version.clone().unwrap_or_default();
        memories.with(key, |memory| memory.begin_own_step(from));
        let written = self.shared.env.timeout(LIMIT, context.mark(mark)).await;
        let written = written.unwrap_or(Err(Error::NoAnswer(LIMIT)));
        let (revision, marked) = match written {
            Ok(revision) => (revision, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let held = memories.with(key, |memory| memory.end_own_step(revision));
        if let Some(trigger) = held {
            self.queue.add(key.clone(), trigger);
        }
        marked
    }
}

/// Whether the same write may work later. What the API refuses it will refuse again, and who leads
/// again looks at every key in any case.
fn may_pass(error: &Error) -> bool {
    match error.answer() {
        Some(answer) => matches!(answer.code, 408 | 409 | 429 | 500..),
        None => !error.is_lost_lease() && !error.is_terminal(),
    }
}
