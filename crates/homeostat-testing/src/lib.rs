//! Clusters for tests; nothing but tests depends on it.
//!
//! [`on_cluster`] runs a test on the embedded API, in-process and on virtual time, or, when
//! `HOMEOSTAT_TEST_KUBECONFIG` names one, on a real cluster and the wall clock. Either way the test
//! has a namespace of its own and waits on conditions: it never sleeps to let something happen.
//! [`on_threads`] does so on several threads, as programs run.
//! `on_world` (feature `controllers`) adds the cluster's controllers and a node on which Pods only
//! pretend to run.
//!
//! It never mocks an answer of the API, and it panics where a test cannot go on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod cluster;
mod object;
mod wait;
mod writes;

#[cfg(feature = "controllers")]
mod node;
#[cfg(feature = "controllers")]
mod world;

pub use cluster::{KUBECONFIG, TestCluster, on_cluster, on_threads};
pub use object::{IntoObject, object, pod_template};
pub use writes::Writes;

#[cfg(feature = "controllers")]
pub use world::{World, on_world, on_world_with};
