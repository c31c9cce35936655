//! Work beside controllers that lives and ends with the manager: a server, a feed, a sweep.
//!
//! A runnable never writes while another process leads (unless it always runs), and a panic in it
//! is an error like any other.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Env;
use crate::cache::Caches;
use crate::contained;
use crate::error::{Error, Result};
use crate::lease::Fence;

type Run = Arc<dyn Fn(Work) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// Work for [`crate::Manager::with_runnable`].
///
/// It begins when the caches have had their first answer. When it returns `Ok` it is over; an error
/// or a panic makes the manager stop, and [`crate::Manager::run`] return that error.
#[derive(Clone)]
pub struct Runnable {
    name: Arc<str>,
    leading: bool,
    run: Run,
}

impl Runnable {
    /// Runs all the while, whoever leads.
    ///
    /// ```
    /// use homeostat::manager::Runnable;
    ///
    /// let sweep = Runnable::new("sweep", |work| async move {
    ///     while !work.is_stopping() {
    ///         // sweep, then wait until tomorrow or the end, whatever comes first
    ///         let day = std::time::Duration::from_secs(24 * 3600);
    ///         let _ = work.env().timeout(day, work.stopping()).await;
    ///     }
    ///     Ok(())
    /// });
    /// ```
    pub fn new<F, Fut>(name: &str, run: F) -> Self
    where
        F: Fn(Work) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let run: Run = Arc::new(move |work| run(work).boxed());
        Self { name: Arc::from(name), leading: false, run }
    }

    /// Runs while this process holds the lease, anew in each term. It is dropped at its next await
    /// when the lease is lost, and no write of its client passes after that.
    #[must_use]
    pub fn while_leading(mut self) -> Self {
        self.leading = true;
        self
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn is_leading(&self) -> bool {
        self.leading
    }

    /// Starts it; it ends at the latest when the result is dropped.
    pub(super) fn start(self, work: Work, fence: Fence, trouble: Trouble) -> JoinSet<()> {
        let mut task = JoinSet::new();
        task.spawn(async move {
            let name = self.name.clone();
            let ended = if self.leading {
                self.each_term(work, fence).await
            } else {
                self.once(work).await
            };
            if let Err(error) = ended {
                let error = error.chain();
                tracing::error!(runnable = %name, error, "a runnable failed");
                trouble.0.send_modify(|all| drop(all.insert(name, error)));
            }
        });
        task
    }

    async fn once(&self, work: Work) -> Result<()> {
        let guarded = AssertUnwindSafe(async { (self.run)(work).await }).catch_unwind();
        guarded.await.unwrap_or_else(|panic| {
            Err(Error::transient(format!("it panicked: {}", contained::words(&*panic))))
        })
    }

    async fn each_term(&self, work: Work, fence: Fence) -> Result<()> {
        let stop = work.stop.clone();
        while stop.run_until_cancelled(fence.opened()).await.is_some() {
            let ended = tokio::select! {
                biased;
                () = fence.closed_again() => Ok(()),
                ended = self.once(work.clone()) => ended,
            };
            match ended {
                Ok(()) => {}
                // Whatever words it was put in.
                Err(error) if error.is_lost_lease() => {}
                Err(error) => return Err(error),
            }
            // Over for this term, or for good when there is no other.
            if stop.run_until_cancelled(fence.closed_again()).await.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// What a runnable has to work with; cheap to clone.
#[derive(Debug, Clone)]
pub struct Work {
    pub(super) client: ClientOf,
    pub(super) env: Env,
    pub(super) caches: Caches,
    pub(super) stop: CancellationToken,
}

/// A client that has no words for a debugger.
#[derive(Clone)]
pub(super) struct ClientOf(pub(super) kube::Client);

impl fmt::Debug for ClientOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl Work {
    /// The client, as [`crate::client::patient`] has it. Writes of a runnable that runs only while this
    /// process leads are refused as soon as it does not.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        &self.client.0
    }

    /// The environment.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The caches that the controllers share.
    #[must_use]
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Whether the manager is stopping: what does not end within its grace is dropped.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until [`Self::is_stopping`].
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }
}

/// Which runnables failed, and how; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Trouble(watch::Sender<BTreeMap<Arc<str>, String>>);

impl Trouble {
    pub(super) fn none() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }

    /// What is wrong with a runnable.
    pub(super) fn of(&self, name: &str) -> Option<String> {
        self.0.borrow().get(name).cloned()
    }

    /// The first failure, when there is one.
    pub(super) async fn wait(&self) -> Error {
        let mut all = self.0.subscribe();
        let first = all.wait_for(|all| !all.is_empty()).await;
        let first =
            first.ok().and_then(|all| all.first_key_value().map(|(n, e)| (n.clone(), e.clone())));
        match first {
            Some((name, error)) => Error::transient(format!("{name} failed: {error}")),
            // The sender is ours: this cannot be.
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runnable")
            .field("name", &self.name)
            .field("leading", &self.leading)
            .finish_non_exhaustive()
    }
}
