//! Runs controllers: starts caches, waits for them, runs workers, and stops in order.

use crate::Env;
use crate::controller::Controller;
use crate::error::Result;
use crate::kind::Object;

/// Several controllers over one client and one set of caches.
#[derive(Debug)]
pub struct Manager {}

impl Manager {
    /// A manager for the cluster that `$KUBECONFIG`, `~/.kube/config` or the Pod's service account names.
    pub async fn from_env() -> Result<Self> {
        unimplemented!()
    }
    /// A manager on that client and environment.
    #[must_use]
    pub fn new(client: kube::Client, env: Env) -> Self {
        let _ = (client, env);
        unimplemented!()
    }
    /// Adds a controller.
    #[must_use]
    pub fn with<K: Object>(self, controller: Controller<K>) -> Self {
        let _ = controller;
        self
    }
    /// Runs until SIGINT or SIGTERM.
    pub async fn run(self) -> Result<()> {
        unimplemented!()
    }
    /// Starts everything and returns when all caches are in sync.
    pub async fn start(self) -> Result<Running> {
        unimplemented!()
    }
}

/// A started manager; dropping it stops everything at once, [`Running::stop`] does so in order.
#[derive(Debug)]
pub struct Running {}

impl Running {
    /// Stops intake, lets running reconciles finish within the grace, flushes events.
    pub async fn stop(self) -> Result<()> {
        unimplemented!()
    }
}
