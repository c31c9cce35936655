//! Waiting until a cache shows a write: what read-your-own-writes is made of.

use std::time::Duration;

use tokio::time::Instant;

use super::informer::SourceState;
use super::{Informer, Store, revision};
use crate::error::{Error, Result};
use crate::key::Key;

/// What [`Informer::wait_for_object`] waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The object at this resource version or a later one.
    Version(String),
    /// The object gone.
    Deleted,
    /// The object gone, or marked as being deleted.
    Deleting,
}

/// A write that a cache is to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) key: &'a Key,
    pub(crate) uid: &'a str,
    pub(crate) expect: &'a Expect,
    /// Whether the object is none that the cache knows: it is not waited for, unless it was one before.
    pub(crate) left_out: bool,
    /// A version that the object had before its end: a cache that is not there yet does not show
    /// the end, though it does not show the object either.
    pub(crate) after: Option<&'a str>,
    /// When the answer came: none that the server lost since, with all of its history, is waited for.
    pub(crate) made: Instant,
}

impl Informer {
    /// Waits until the cache is complete up to `revision`.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is not within `limit`, or the informer is stopped before.
    pub async fn wait_for_revision(&self, revision: &str, limit: Duration) -> Result<()> {
        let shown = |cache: &Self| cache.read(|store| reached(store, revision));
        self.wait_until(limit, shown, || format!("revision {revision}")).await
    }

    /// Waits until the cache shows what a write has done to the object `key` with that `uid`.
    /// A later state counts too: deleted or made anew since.
    ///
    /// # Errors
    /// [`Error::Stale`] when it does not within `limit`, or the informer is stopped before.
    pub async fn wait_for_object(
        &self,
        key: &Key,
        uid: &str,
        expect: &Expect,
        limit: Duration,
    ) -> Result<()> {
        let shown = |cache: &Self| cache.read(|store| shows(store, key, uid, expect));
        self.wait_until(limit, shown, || format!("{key} {expect:?}")).await
    }

    /// The same for a write of a certain time.
    pub(crate) async fn wait_for_write(&self, wanted: Wanted<'_>, limit: Duration) -> Result<()> {
        let Wanted { key, expect, .. } = wanted;
        let shown = |cache: &Self| cache.shows(wanted);
        self.wait_until(limit, shown, || format!("{key} {expect:?}")).await
    }

    /// Whether there would be nothing to wait for.
    pub(crate) fn shows(&self, wanted: Wanted<'_>) -> bool {
        let Wanted { key, uid, expect, left_out, after, made } = wanted;
        let replaced = self.handle.core.progress.borrow().replaced;
        replaced.is_some_and(|since| made <= since)
            || self.read(|store| {
                let is_there = store.get(key).is_some_and(|entry| *entry.header.uid == *uid);
                let may_come = !is_there && after.is_some_and(|after| !reached(store, after));
                (left_out && !is_there) || (shows(store, key, uid, expect) && !may_come)
            })
    }

    /// Whether it can be told at all whether the cache shows that.
    pub(crate) fn can_tell(&self, Wanted { key, expect, after, .. }: Wanted<'_>) -> bool {
        let version = match (expect, after) {
            (Expect::Version(version), _) => version,
            (_, Some(after)) => after,
            (_, None) => return true,
        };
        self.read(|store| {
            let cached = store.get(key).map(|entry| &*entry.header.resource_version);
            let at = cached.or(store.revision()).unwrap_or_default();
            revision::compare(at, version).is_some()
        })
    }

    async fn wait_until(
        &self,
        limit: Duration,
        shown: impl Fn(&Self) -> bool,
        what: impl Fn() -> String,
    ) -> Result<()> {
        let mut progress = self.handle.core.progress.subscribe();
        let wait = async {
            loop {
                // Marked as seen before looking: a change in between is not missed.
                let is_stopped = progress.borrow_and_update().state == SourceState::Stopped;
                if shown(self) {
                    return true;
                }
                if is_stopped || progress.changed().await.is_err() {
                    return false;
                }
            }
        };
        let seen = self.handle.env.timeout(limit, wait).await.unwrap_or(false);
        if seen {
            return Ok(());
        }
        let at = self.revision().unwrap_or_else(|| "nothing yet".to_owned());
        Err(Error::Stale(format!("{} at {at} has not seen {}", self.kind(), what())))
    }
}

fn shows(store: &Store, key: &Key, uid: &str, expect: &Expect) -> bool {
    match (store.get(key), expect) {
        (None, Expect::Deleted | Expect::Deleting) => true,
        // What cannot be read is not gone.
        (None, Expect::Version(version)) => !store.is_unreadable(key) && reached(store, version),
        (Some(entry), Expect::Deleted) => *entry.header.uid != *uid,
        (Some(entry), Expect::Deleting) => {
            *entry.header.uid != *uid || entry.header.is_being_deleted()
        }
        (Some(entry), Expect::Version(version)) => {
            let cached = &entry.header.resource_version;
            // Versions that cannot be compared must be equal.
            revision::compare(cached, version).map_or(cached == version, std::cmp::Ordering::is_ge)
        }
    }
}

fn reached(store: &Store, wanted: &str) -> bool {
    store.revision().is_some_and(|at| {
        revision::compare(at, wanted).map_or(at == wanted, std::cmp::Ordering::is_ge)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use homeostat_env::Env;
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::super::{Caches, Scope};
    use super::*;
    use crate::kind::Kind;
    use crate::watch::script::Script;

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_a_waiter_looks_is_not_missed() {
        let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
        let caches = Caches::new(Script::new(&env, []).client(), env);
        let informer = caches.informer(Kind::of::<ConfigMap>(), Scope::default());
        let came = AtomicBool::new(false);
        let shown = |cache: &Informer| {
            let before = came.swap(true, Ordering::SeqCst);
            if !before {
                // It comes right after the look.
                cache.handle.core.progress.send_modify(|_| {});
            }
            before
        };
        let waited = informer.wait_until(Duration::from_secs(5), shown, String::new).await;
        assert!(waited.is_ok(), "{waited:?}");
    }
}
