//! Whether this process may write: the lease, as everything but the lease's own task sees it.
//!
//! A fence closes by itself when the time of the last renewal is up, even if the task that renews
//! is stuck: nothing has to happen for a lost leader to stop writing.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use homeostat_env::Env;
use tokio::sync::watch;
use tokio::time::Instant;

/// Lets writes through while the lease is held; cheap to clone.
#[derive(Clone)]
pub struct Fence {
    env: Env,
    /// Until when the lease is held; `None` in the receiver's place when there is no lease at all.
    until: Option<watch::Receiver<Option<Instant>>>,
    contact: Option<Arc<Mutex<Contact>>>,
}

/// What the lease's own task does with a fence: opens and closes it, and says how it is heard of.
#[derive(Debug)]
pub(crate) struct Hand {
    env: Env,
    pub(crate) until: watch::Sender<Option<Instant>>,
    contact: Arc<Mutex<Contact>>,
}

/// How the API answers for the lease.
#[derive(Debug)]
struct Contact {
    /// When it last did.
    at: Instant,
    /// How long it may be silent, and how long a lease may be neither written nor another's.
    patience: Duration,
    /// What went wrong since.
    failure: Option<String>,
    /// Since when it cannot be written, and why: that it can be read is no comfort.
    unwritten: Option<(Instant, String)>,
}

impl Hand {
    /// The API has answered for the lease.
    pub(crate) fn heard(&self) {
        let mut contact = lock(&self.contact);
        (contact.at, contact.failure) = (self.env.instant(), None);
    }

    /// It has not, or not well.
    pub(crate) fn failed(&self, why: impl Into<String>) {
        lock(&self.contact).failure = Some(why.into());
    }

    /// The lease should have been written and was not.
    pub(crate) fn not_written(&self, why: impl Into<String>) {
        let mut contact = lock(&self.contact);
        let since = contact.unwritten.as_ref().map_or(self.env.instant(), |(since, _)| *since);
        contact.unwritten = Some((since, why.into()));
    }

    /// Somebody has the lease, this process or another: whatever was refused is of no matter.
    pub(crate) fn settled(&self) {
        lock(&self.contact).unwritten = None;
    }
}

impl Fence {
    /// A fence that is always open: there is no lease.
    pub(crate) fn open(env: Env) -> Self {
        Self { env, until: None, contact: None }
    }

    /// A closed fence and the hand that opens it. The lease may be silent for `patience`.
    pub(crate) fn closed(env: Env, patience: Duration) -> (Self, Hand) {
        let (sender, until) = watch::channel(None);
        let contact = Contact { at: env.instant(), patience, failure: None, unwritten: None };
        let contact = Arc::new(Mutex::new(contact));
        let hand = Hand { env: env.clone(), until: sender, contact: Arc::clone(&contact) };
        (Self { env, until: Some(until), contact: Some(contact) }, hand)
    }

    /// What is wrong with the lease, whoever holds it: nobody has heard of it for too long, or
    /// nobody holds it and it cannot be written.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let contact = lock(self.contact.as_ref()?);
        let now = self.env.instant();
        let silent = now.saturating_duration_since(contact.at);
        if silent > contact.patience {
            let why = contact.failure.as_deref().unwrap_or("nobody looks at it");
            return Some(format!("not heard of for {silent:.0?}: {why}"));
        }
        let (since, why) = contact.unwritten.as_ref()?;
        let vain = now.saturating_duration_since(*since);
        (vain > contact.patience).then(|| format!("not written for {vain:.0?}: {why}"))
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
        match self.until.clone() {
            // Boxed: every reconcile under way waits for this, and most of them without a lease.
            Some(until) => Box::pin(self.over(until)).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until what is said in `until` is over.
    async fn over(&self, mut until: watch::Receiver<Option<Instant>>) {
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

fn lock(contact: &Mutex<Contact>) -> MutexGuard<'_, Contact> {
    contact.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence")
            .field("has_lease", &self.has_lease())
            .field("is_open", &self.is_open())
            .finish()
    }
}
