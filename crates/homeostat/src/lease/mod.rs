//! The leader lease: of several processes of one operator, one works and the others wait with warm
//! caches.
//!
//! [`Machine`] decides, a task does the IO, and a [`Fence`] stands between reconciles and the API:
//! a process whose lease has run out writes nothing any more, whether it knows that or not. It does
//! not have to exit; it may lead again later.

mod fence;
pub mod machine;
mod task;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use fence::Fence;
pub(crate) use fence::Hand;
pub use machine::Machine;
pub(crate) use task::run;

use crate::error::{Error, Result};

/// Which lease to contend for, and its terms.
///
/// ```
/// use homeostat::{Lease, Manager};
///
/// # homeostat_testing::on_cluster(async |cluster| {
/// # let (client, env) = (cluster.client.clone(), cluster.env.clone());
/// let lease = Lease::new("my-operator").namespace(&cluster.namespace);
/// let running = Manager::new(client, env).lease(lease).start().await.unwrap();
/// running.wait_until_leading().await;
/// running.stop().await.unwrap(); // and the next one leads at once
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Lease {
    namespace: Option<String>,
    name: String,
    identity: Identity,
    duration: Duration,
    deadline: Duration,
    retry: Duration,
}

#[derive(Debug, Clone)]
enum Identity {
    /// The host's name and a fresh uid.
    Host,
    Given(String),
}

impl Lease {
    /// The lease of that name in the client's namespace: 15 s long, renewed every 2 s, given up
    /// after 10 s without a renewal, held under the host's name and a fresh uid.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            namespace: None,
            name: name.into(),
            identity: Identity::Host,
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }

    /// In another namespace than the client's.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Under that identity. It must be unique for every process that ever runs: two processes with
    /// the same one would both lead.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Identity::Given(identity.into());
        self
    }

    /// Other terms: how long the lease lasts, how long its holder goes on without a renewal, and
    /// how often it is renewed or looked at. The first must be longer than the second, and that last
    /// two of the third at least; the lease lasts whole seconds.
    #[must_use]
    pub fn terms(mut self, duration: Duration, deadline: Duration, retry: Duration) -> Self {
        (self.duration, self.deadline, self.retry) = (duration, deadline, retry);
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long nothing may be heard of it before something is wrong.
    pub(crate) fn patience(&self) -> Duration {
        self.duration
    }

    /// # Errors
    /// Terminal when the terms leave room for two leaders or for none.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { duration, deadline, retry, .. } = self;
        let ordered = duration > deadline && *deadline >= *retry * 2 && *retry > Duration::ZERO;
        if ordered && duration.subsec_nanos() == 0 {
            return Ok(());
        }
        Err(Error::terminal(format!(
            "a lease of {duration:?} with a deadline of {deadline:?} and a retry of {retry:?}: the \
             lease must last whole seconds and longer than the deadline, and the deadline two retries"
        )))
    }
}
