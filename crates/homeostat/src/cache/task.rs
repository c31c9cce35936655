//! The informer's task: takes changes from the watch, puts them into the store, tells the handlers.
//!
//! It is the only writer of the store and the only caller of handlers, so both see one order. It
//! ends only when it is told to: should it panic, the source is pending and begins again.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use homeostat_env::Env;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::audience::{Audience, Word};
use super::informer::{Core, SourceState};
use super::{Entry, Store};
use crate::contained;
use crate::key::Key;
use crate::queue::Backoff;
use crate::watch::{Change, driver};

/// How many changes may wait for the handlers before the watch stops reading.
const IN_FLIGHT: usize = 128;
/// How long a task that panicked waits before it begins again.
const AGAIN: Backoff = Backoff {
    first: Duration::from_secs(1),
    factor: 2.0,
    max: Duration::from_secs(60),
    jitter: 0.5,
};

/// Runs until `stop`.
pub(crate) async fn run(
    core: Arc<Core>,
    client: kube::Client,
    env: Env,
    stop: CancellationToken,
    inbox: mpsc::UnboundedReceiver<Word>,
) {
    let mut audience = Audience::new(inbox);
    for failures in 0_u32.. {
        let following = AssertUnwindSafe(core.follow(&client, &env, &mut audience)).catch_unwind();
        let Some(Err(panic)) = stop.run_until_cancelled(following).await else { break };
        let (kind, said) = (&core.source.kind, contained::words(&*panic));
        tracing::error!(%kind, said, "an informer panicked");
        core.counts.failures.inc();
        let why = format!("{kind}: its informer panicked: {said}");
        core.progress.send_modify(|progress| {
            progress.turn(SourceState::Pending(why), env.instant());
        });
        let pause = env.sleep(AGAIN.delay(failures, env.random_unit()));
        if stop.run_until_cancelled(pause).await.is_none() {
            break;
        }
    }
    core.progress.send_modify(|progress| progress.state = SourceState::Stopped);
}

impl Core {
    async fn follow(&self, client: &kube::Client, env: &Env, audience: &mut Audience) {
        self.progress.send_modify(|progress| {
            if progress.state == SourceState::NotStarted {
                progress.state = SourceState::Syncing;
            }
        });
        let (sender, mut changes) = mpsc::channel(IN_FLIGHT);
        let source = self.source.clone();
        // One that panicked begins again, and is not taken back by a server that lags behind.
        let told = self.read(|store| store.revision().map(str::to_owned));
        let mut watch = Box::pin(driver::run(client.clone(), env.clone(), source, told, sender));
        loop {
            tokio::select! {
                biased;
                Some(word) = audience.hear() => audience.obey(word, &self.source.kind, || self.entries()),
                Some(change) = changes.recv() => self.take(change, audience, env.instant()),
                () = &mut watch => break,
            }
        }
    }

    fn take(&self, change: Change<Entry>, audience: &Audience, now: Instant) {
        // A watch that was opened has said nothing yet: whoever took it may have lost its server.
        let heard = !matches!(change, Change::Pending(_) | Change::Watching);
        let (was_synced, was_failing) = {
            let progress = self.progress.borrow();
            (progress.synced, progress.failing.is_some())
        };
        let mut state = None;
        let mut synced = was_synced;
        let replaces = matches!(change, Change::Restart { new_history: true });
        let completes = matches!(change, Change::Synced(_));
        // Where no watch works, lists may. Looked at only in trouble: all changes come by here.
        let lists = || {
            completes || matches!(change, Change::Restart { .. }) || self.read(Store::is_listing)
        };
        let recovers = was_failing && heard && !lists();
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
                self.counts.lists.inc();
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
                self.counts.watches.inc();
                state = Some(SourceState::Synced);
                Vec::new()
            }
            Change::Pending(why) => {
                self.counts.failures.inc();
                state = Some(SourceState::Pending(format!("{}: {why}", self.source.kind)));
                Vec::new()
            }
            Change::Skipped(object) => {
                self.counts.skipped.inc();
                let (kind, why) = (&self.source.kind, &object.why);
                let name = object.key.as_ref().map_or_else(|| "?".to_owned(), Key::to_string);
                tracing::warn!(%kind, name, why, "an object cannot be read; its cached version stays");
                self.write(|store| {
                    let deltas = store.skip(&object).into_iter().collect();
                    store.watched(&object.revision);
                    deltas
                })
            }
        };
        for delta in &mut deltas {
            delta.initial = !was_synced;
            audience.tell(&self.source.kind, delta);
        }
        // After the handlers: whoever waits for a revision finds its keys in the queues.
        self.progress.send_if_modified(|progress| {
            if heard {
                progress.heard = Some(now);
            }
            if recovers {
                progress.failing = None;
            }
            if replaces {
                progress.replacing = Some(now);
            }
            if completes {
                progress.replaced = progress.replacing.take().or(progress.replaced);
            }
            let state = state.filter(|_| progress.state != SourceState::Stopped);
            let turned = state.is_some_and(|state| progress.turn(state, now));
            let first = std::mem::replace(&mut progress.synced, synced) != synced;
            // Within the first list there is nothing to wait for but its end.
            turned || first || synced
        });
    }

    fn write<R>(&self, change: impl FnOnce(&mut Store) -> R) -> R {
        change(&mut self.store.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn read<R>(&self, look: impl FnOnce(&Store) -> R) -> R {
        look(&self.store.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.read(|store| store.iter(None).cloned().collect())
    }
}
