//! The informer's task: takes changes from the watch, puts them into the store, tells the handlers.
//!
//! It is the only writer of the store and the only caller of handlers, so both see one order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use homeostat_env::Env;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::informer::{Core, SourceState};
use super::{Delta, Entry, Store};
use crate::watch::{Change, driver};

/// Somebody who wants to know of changes.
pub(crate) type Handler = Box<dyn Fn(&Delta) + Send + Sync>;

/// How many changes may wait for the handlers before the watch stops reading.
const IN_FLIGHT: usize = 128;

/// Runs until `stop`.
pub(crate) async fn run(
    core: Arc<Core>,
    client: kube::Client,
    env: Env,
    stop: CancellationToken,
    mut inbox: mpsc::UnboundedReceiver<Handler>,
) {
    core.progress.send_modify(|progress| {
        if progress.state == SourceState::NotStarted {
            progress.state = SourceState::Syncing;
        }
    });
    let (sender, mut changes) = mpsc::channel(IN_FLIGHT);
    let mut watch = Box::pin(driver::run(client, env.clone(), core.source.clone(), sender));
    let mut handlers: Vec<Handler> = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(handler) = inbox.recv() => {
                for entry in core.entries() {
                    tell(&core, &handler, &Delta::added(entry, true));
                }
                handlers.push(handler);
            }
            Some(change) = changes.recv() => core.take(change, &handlers, env.instant()),
            () = &mut watch => break,
        }
    }
    core.progress.send_modify(|progress| progress.state = SourceState::Stopped);
}

impl Core {
    fn take(&self, change: Change<Entry>, handlers: &[Handler], now: Instant) {
        // A watch that was opened has said nothing yet: whoever took it may have lost its server.
        let heard = !matches!(change, Change::Pending(_) | Change::Watching);
        let was_synced = self.progress.borrow().synced;
        let mut state = None;
        let mut synced = was_synced;
        let mut deltas = match change {
            Change::Applied(entry) => self.write(|store| {
                let revision = entry.header.resource_version.clone();
                let deltas = store.apply(entry);
                store.watched(&revision);
                deltas
            }),
            Change::Deleted(entry) => self.write(|store| {
                let revision = entry.header.resource_version.clone();
                let deltas = store.delete(entry).into_iter().collect();
                store.watched(&revision);
                deltas
            }),
            Change::Restart { new_history } => {
                if new_history {
                    tracing::warn!(kind = %self.source.kind, "the server's history is a new one");
                }
                self.write(|store| store.begin_list(new_history));
                Vec::new()
            }
            Change::Synced(revision) => {
                synced = true;
                state = Some(SourceState::Synced);
                self.write(|store| store.end_list(&revision))
            }
            Change::Bookmark(revision) => {
                self.write(|store| store.watched(&revision));
                Vec::new()
            }
            Change::Watching => {
                state = Some(SourceState::Synced);
                Vec::new()
            }
            Change::Pending(why) => {
                tracing::warn!(kind = %self.source.kind, %why, "source is pending");
                state = Some(SourceState::Pending(format!("{}: {why}", self.source.kind)));
                Vec::new()
            }
            Change::Skipped(why) => {
                tracing::warn!(kind = %self.source.kind, %why, "object skipped");
                Vec::new()
            }
        };
        for delta in &mut deltas {
            delta.initial = !was_synced;
            for handler in handlers {
                tell(self, handler, delta);
            }
        }
        // After the handlers: whoever waits for a revision finds its keys in the queues.
        self.progress.send_if_modified(|progress| {
            if heard {
                progress.heard = Some(now);
            }
            let state = state.filter(|_| progress.state != SourceState::Stopped);
            let turned = state.is_some_and(|state| {
                std::mem::replace(&mut progress.state, state.clone()) != state
            });
            let first = std::mem::replace(&mut progress.synced, synced) != synced;
            // Within the first list there is nothing to wait for but its end.
            turned || first || synced
        });
    }

    fn write<R>(&self, change: impl FnOnce(&mut Store) -> R) -> R {
        change(&mut self.store.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        store.iter(None).cloned().collect()
    }
}

fn tell(core: &Core, handler: &Handler, delta: &Delta) {
    // One handler's bug must not stop the others, nor the cache they all read.
    if catch_unwind(AssertUnwindSafe(|| handler(delta))).is_err() {
        tracing::error!(kind = %core.source.kind, key = %delta.key(), "an event handler panicked");
    }
}
