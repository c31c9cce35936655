//! What a cluster owes its users, written on the runtime: workloads, addresses, volumes, garbage
//! collection, namespaces, a scheduler, and the node agent.
//!
//! Every controller is a pure plan (what is wanted, what is there, what time it is → what to do)
//! and a thin reconcile that carries it out. Nothing here knows which server it talks to, nothing
//! polls, nothing sleeps.

mod claim;
mod deployment;
mod fingerprint;
mod job;
pub mod node;
mod pod;
mod replicaset;
mod selector;
mod statefulset;
mod write;

use std::path::PathBuf;

use homeostat::Manager;

/// What the controllers must be told.
#[derive(Debug, Clone, Default)]
pub struct ClusterConfig {
    /// The certificate authority published in every namespace as `kube-root-ca.crt`; may be empty.
    pub root_ca: String,
    /// Where the volumes of the default StorageClass live; created when first needed.
    pub volumes: PathBuf,
}

/// Adds every controller of the cluster to `manager`.
#[must_use]
pub fn controllers(manager: Manager, config: &ClusterConfig) -> Manager {
    let _ = config;
    manager
        .with(deployment::controller())
        .with(replicaset::controller())
        .with(statefulset::controller())
        .with(job::controller())
        .with(job::orphan_controller())
}
