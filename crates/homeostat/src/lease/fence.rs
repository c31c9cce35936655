//! Whether this process may write: the lease, as everything but the lease's own task sees it.
//!
//! A fence closes by itself when the time of the last renewal is up, even if the task that renews
//! is stuck: nothing has to happen for a lost leader to stop writing.

use std::fmt;

use homeostat_env::Env;
use tokio::sync::watch;
use tokio::time::Instant;

/// Lets writes through while the lease is held; cheap to clone.
#[derive(Clone)]
pub struct Fence {
    env: Env,
    /// Until when the lease is held; `None` in the receiver's place when there is no lease at all.
    until: Option<watch::Receiver<Option<Instant>>>,
}

impl Fence {
    /// A fence that is always open: there is no lease.
    pub(crate) fn open(env: Env) -> Self {
        Self { env, until: None }
    }

    /// A closed fence and the hand that opens it.
    pub(crate) fn closed(env: Env) -> (Self, watch::Sender<Option<Instant>>) {
        let (sender, until) = watch::channel(None);
        (Self { env, until: Some(until) }, sender)
    }

    /// Whether there is a lease.
    #[must_use]
    pub fn has_lease(&self) -> bool {
        self.until.is_some()
    }

    /// Whether writes may go through now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let now = self.env.instant();
        self.until.as_ref().is_none_or(|until| until.borrow().is_some_and(|until| now < until))
    }

    /// Waits until the fence is open; for ever if the lease is given up before.
    pub async fn opened(&self) {
        let Some(mut until) = self.until.clone() else { return };
        loop {
            let held = until.borrow_and_update().is_some();
            if held && self.is_open() {
                return;
            }
            if until.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the fence is closed; for ever when there is no lease.
    pub async fn closed_again(&self) {
        let Some(mut until) = self.until.clone() else { return std::future::pending().await };
        loop {
            let Some(end) = *until.borrow_and_update() else { return };
            if self.env.instant() >= end {
                return;
            }
            tokio::select! {
                biased;
                changed = until.changed() => if changed.is_err() {
                    // The task is gone; what it last said holds until its end.
                    self.env.sleep_until(end).await;
                    return;
                },
                () = self.env.sleep_until(end) => {}
            }
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence")
            .field("has_lease", &self.has_lease())
            .field("is_open", &self.is_open())
            .finish()
    }
}
