//! A cluster that does something: its controllers at work, and a node on which Pods pretend to run.

use std::ops::Deref;

use homeostat::Manager;
use homeostat_cluster::{Cluster, ClusterConfig};
use tempfile::TempDir;

use crate::cluster::{TestCluster, on_cluster};
use crate::node;

/// A [`TestCluster`] with controllers.
#[derive(Debug)]
pub struct World {
    /// Where the volumes of the default StorageClass live.
    pub volumes: TempDir,
    test: TestCluster,
}

impl Deref for World {
    type Target = TestCluster;

    fn deref(&self) -> &TestCluster {
        &self.test
    }
}

/// Runs a test on a cluster with controllers, and stops them in order.
///
/// # Panics
/// As the test does, or when the cluster cannot be used.
pub fn on_world<F: AsyncFnOnce(&World)>(test: F) {
    on_world_with(|manager| manager, test);
}

/// The same with more controllers: `join` adds them to the cluster's own.
///
/// # Panics
/// As the test does, or when the cluster cannot be used.
pub fn on_world_with<F: AsyncFnOnce(&World)>(join: impl FnOnce(Manager) -> Manager, test: F) {
    on_cluster(async |cluster| {
        let world = World { volumes: tempfile::tempdir().unwrap(), test: cluster };
        let config = ClusterConfig {
            root_ca: "CA".into(),
            volumes: world.volumes.path().into(),
            ..ClusterConfig::default()
        };
        let manager = join(world.manager().with(node::controller()));
        let started = Cluster::start(manager, &config).await.unwrap();
        world.show_on_failure(started.journal());
        node::register(&world.client).await;
        test(&world).await;
        started.stop().await.unwrap();
    });
}
