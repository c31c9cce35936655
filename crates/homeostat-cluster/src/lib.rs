//! What a cluster owes its users, written on the runtime: workloads, addresses, volumes, garbage
//! collection, namespaces, a scheduler, and the node agent.
//!
//! Every controller is a pure plan (what is wanted, what is there, what time it is → what to do)
//! and a thin reconcile that carries it out. Nothing here knows which server it talks to, nothing
//! polls, nothing sleeps.

mod certificate;
mod claim;
mod clusterrole;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod fingerprint;
mod gc;
mod history;
mod job;
mod namespace;
pub mod node;
mod nodelifecycle;
mod pod;
mod policy;
mod portion;
mod quota;
mod replicaset;
mod revise;
mod scheduler;
mod selector;
mod serviceaccount;
mod servicecidr;
mod statefulset;
mod temporary;
mod token_secret;
mod volume;
mod write;

use std::path::PathBuf;

use homeostat::{Journal, Manager, Result, Running};

pub use certificate::{AuthorityError, CertificateAuthority};
pub use temporary::TemporaryDirectory;

/// What the controllers must be told.
#[derive(Debug, Clone, Default)]
pub struct ClusterConfig {
    /// The certificate authority published in every namespace as `kube-root-ca.crt`; may be empty.
    pub root_ca: String,
    /// Where the volumes of the default StorageClass live; created when first needed.
    pub volumes: PathBuf,
    /// Who signs the certificates that CertificateSigningRequests ask for; without one none of them
    /// gets any, which is the default.
    pub authority: Option<CertificateAuthority>,
}

/// Adds every controller of the cluster to `manager`.
#[must_use]
pub fn controllers(manager: Manager, config: &ClusterConfig) -> Manager {
    let manager = match &config.authority {
        Some(authority) => manager.with(certificate::controller(authority.clone())),
        None => manager,
    };
    manager
        .with(certificate::approver())
        .with(certificate::cleaner())
        .with(serviceaccount::controller(&config.root_ca))
        .with(token_secret::controller(&config.root_ca))
        .with(deployment::controller())
        .with(replicaset::controller())
        .with(statefulset::controller())
        .with(daemonset::controller())
        .with(job::controller())
        .with(job::orphan_controller())
        .with(cronjob::controller())
        .with(disruption::controller())
        .with(policy::controller())
        .with(endpoints::controller())
        .with(scheduler::controller())
        .with(nodelifecycle::controller())
        .with(clusterrole::controller())
        .with(servicecidr::controller())
        .with(volume::attributes_controller())
        .with(volume::claim_controller(config.volumes.clone()))
        .with(volume::volume_controller(config.volumes.clone()))
}

/// A running cluster: every controller, garbage collection, and the end of namespaces.
///
/// Dropping it stops everything at once, [`Cluster::stop`] does so in order.
#[derive(Debug)]
pub struct Cluster {
    collector: gc::Collector,
    running: Running,
}

impl Cluster {
    /// Adds the cluster's controllers to `manager`, which may have others already, and starts
    /// everything. Returns when all caches are in sync.
    ///
    /// # Errors
    /// When the kinds the API serves cannot be found out, or as [`Manager::start`].
    pub async fn start(manager: Manager, config: &ClusterConfig) -> Result<Self> {
        let (client, env) = (manager.client().clone(), manager.env().clone());
        volume::install_class(&client).await?;
        let running = controllers(manager, config).start().await?;
        let surroundings = gc::Surroundings {
            client,
            env,
            caches: running.caches(),
            recorder: running.recorder().clone(),
        };
        let collector = gc::Collector::start(surroundings).await?;
        Ok(Self { collector, running })
    }

    /// The journal of all controllers of the manager.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.running.journal()
    }

    /// The started manager.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Stops collection, then the controllers, in order.
    ///
    /// # Errors
    /// As [`Running::stop`]; everything is stopped all the same.
    pub async fn stop(self) -> Result<()> {
        self.collector.stop().await;
        self.running.stop().await
    }
}
