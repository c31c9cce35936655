//! Keeps a certificate that the server made for itself in order, in rounds: the Secret, the
//! configurations that name its authority, the certificate in use. There is a round at the start,
//! whenever one of them changes, and when the papers are due. Rounds that write never follow each
//! other without pause.

use std::sync::Arc;
use std::time::Duration;

use homeostat_env::Env;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::bundle::{self, Told};
use super::current::Current;
use super::self_signed::SelfSigned;
use crate::cache::{Caches, Informer, Scope};
use crate::client::is_told;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::Kind;
use crate::queue::Backoff;

/// A round that an API has no time for waits no longer than this for the next one.
const SOON: Duration = Duration::from_secs(30);
/// How far rounds that write are apart, the first of them and the later ones. What they write wakes
/// whoever follows it, this process too, so two who undo each other's work would never rest. The
/// longest pause is short beside the life of any certificate.
const APART: Backoff = Backoff {
    first: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(10),
    jitter: 0.0,
};
/// When nothing was written for so long, the next write is a first one.
const CALM: Duration = Duration::from_secs(60);

/// How long to wait after a round that has written.
#[derive(Default)]
struct Pace {
    writes: u32,
    last: Option<Instant>,
}

impl Pace {
    fn pause(&mut self, now: Instant) -> Duration {
        let last = self.last.replace(now);
        if last.is_none_or(|last| now.saturating_duration_since(last) > CALM) {
            self.writes = 0;
        }
        let pause = APART.delay(self.writes, 0.0);
        self.writes = self.writes.saturating_add(1);
        pause
    }
}

impl SelfSigned {
    /// One round; returns when the papers are due, and notes in `wrote` whether it has written
    /// anything. What is trusted goes before what is shown: a certificate of another authority waits
    /// until all are told, or until the one in use ends.
    ///
    /// # Errors
    /// What kept somebody from being told; the others are.
    async fn round(
        &self,
        client: &kube::Client,
        env: &Env,
        current: &Current,
        wrote: &mut bool,
    ) -> Result<Timestamp> {
        let kept = self.papers(client, env).await?;
        *wrote |= kept.is_renewed;
        let (papers, due) = (kept.papers, kept.due);
        let (mut missing, mut untold) = (Vec::new(), Vec::new());
        for (kind, name) in &self.told {
            match bundle::tell(client, kind, name, &papers.bundle).await {
                Ok(Told::Before) => {}
                Ok(Told::Now) => *wrote = true,
                Ok(Told::Missing) => missing.push(format!("{kind} {name} is not there")),
                Err(error) => {
                    untold.push(format!("{kind} {name} cannot be told: {}", error.chain()));
                }
            }
        }
        if untold.is_empty() || current.is_no_worse(&papers) {
            current.renew(papers).map_err(Error::terminal)?;
        }
        if !untold.is_empty() {
            untold.append(&mut missing);
            return Err(Error::transient(untold.join(", ")));
        }
        current.set_problem((!missing.is_empty()).then(|| missing.join(", ")));
        Ok(due)
    }

    /// Follows the Secret and whoever is told, one object each.
    fn follow(&self, caches: &Caches, changed: &Arc<Notify>) -> Vec<Informer> {
        let told = self.told.iter().map(|(kind, name)| (kind.clone(), Key::cluster(&**name)));
        let secret = (Kind::of::<Secret>(), self.secret.clone());
        let informers = told.chain([secret]).map(|(kind, key)| {
            let informer = caches.informer(kind, Scope::object(&key));
            let changed = Arc::clone(changed);
            informer.on_event(move |_| changed.notify_one());
            informer.start();
            informer
        });
        informers.collect()
    }

    /// Keeps everything in order for ever.
    pub(super) async fn keep(
        self,
        client: kube::Client,
        caches: Caches,
        env: Env,
        current: Arc<Current>,
    ) {
        let changed = Arc::new(Notify::new());
        current.follow(self.follow(&caches, &changed));
        let (mut failures, mut pace) = (0, Pace::default());
        loop {
            let mut wrote = false;
            let delay = match self.round(&client, &env, &current, &mut wrote).await {
                Ok(due) => {
                    failures = 0;
                    Duration::try_from(due.duration_since(env.now())).unwrap_or_default()
                }
                Err(error) => {
                    let why = error.chain();
                    if is_told(&error) {
                        tracing::debug!(why, "the webhooks' certificate is not in order");
                    } else {
                        tracing::warn!(why, "the webhooks' certificate is not in order");
                    }
                    current.set_problem(Some(why));
                    let delay = Backoff::default().delay(failures, env.random_unit());
                    failures += 1;
                    if error.may_pass() { delay.min(SOON) } else { delay }
                }
            };
            // What changes meanwhile is seen by the round after it.
            let pause = if wrote { pace.pause(env.instant()) } else { Duration::ZERO };
            env.sleep(pause).await;
            tokio::select! {
                biased;
                () = changed.notified() => {}
                () = env.sleep(delay.saturating_sub(pause)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_has_written_nothing_for_a_while_begins_with_a_short_pause_again() {
        let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
        let mut pace = Pace::default();
        for _ in 0..10 {
            env.sleep(CALM).await;
            pace.pause(env.instant());
        }
        assert_eq!(pace.pause(env.instant()), APART.max, "one that goes on");
        env.sleep(CALM + Duration::from_millis(1)).await;
        assert_eq!(pace.pause(env.instant()), APART.first);
    }
}
