//! What all Pods of the node share: the client, the sandbox, addresses, and a directory of what runs.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use homeostat::cache::Informer;
use homeostat::event::{EventType, Recorder};
use homeostat_env::Env;
use k8s_openapi::api::core::v1::{ObjectReference, Pod, Service};
use kube::Resource;
use tokio_util::sync::CancellationToken;

use super::address::Addresses;
use super::capacity::Capacity;
use super::configuration::Place;
use super::directory::Directory;
use super::machine::Notice;
use super::process::Helper;
use super::proxy::{answered_at, has_low_ports};

/// The name under which the agent reports events.
pub(crate) const COMPONENT: &str = "kubelet";

pub(crate) struct Host {
    pub(crate) node: String,
    pub(crate) client: kube::Client,
    pub(crate) env: Env,
    pub(crate) helper: Helper,
    pub(crate) recorder: Recorder,
    pub(crate) data: PathBuf,
    pub(crate) capacity: Capacity,
    pub(crate) addresses: Mutex<Addresses>,
    /// The Services of the cluster, which the follower follows.
    pub(crate) services: Informer,
    pub(crate) directory: Directory,
    /// Whether Services can be answered at ports below 1024.
    pub(crate) low_ports: bool,
    /// Set when the agent stops: from then on nobody waits for the API.
    pub(crate) stopping: CancellationToken,
    /// Set when nobody waits for containers to end by themselves any more.
    pub(crate) hurry: CancellationToken,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Host {
    #[expect(clippy::too_many_arguments, reason = "it is made in one place, from all its parts")]
    pub(crate) fn new(
        node: String,
        client: kube::Client,
        env: Env,
        helper: Helper,
        recorder: Recorder,
        data: PathBuf,
        capacity: Capacity,
        addresses: Addresses,
        services: Informer,
    ) -> Self {
        let (addresses, directory) = (Mutex::new(addresses), Directory::default());
        let (stopping, hurry) = (CancellationToken::new(), CancellationToken::new());
        Self {
            node,
            client,
            env,
            helper,
            recorder,
            data,
            capacity,
            addresses,
            services,
            directory,
            low_ports: has_low_ports(),
            stopping,
            hurry,
        }
    }

    /// The node's own address.
    pub(crate) fn ip() -> Ipv4Addr {
        Ipv4Addr::LOCALHOST
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of the host needs no last digit")]
    pub(crate) fn place(&self, ip: Ipv4Addr) -> Place {
        Place {
            pod_ip: ip.to_string(),
            host_ip: Self::ip().to_string(),
            cpus: self.capacity.cpus as f64,
            memory: self.capacity.memory as f64,
        }
    }

    /// The Services there are, once they are known.
    pub(crate) async fn services(&self) -> Vec<Arc<Service>> {
        // False means that the agent stops.
        self.services.wait_for_sync().await;
        self.services.list(None)
    }

    /// The port at which a Service's port is answered here.
    pub(crate) fn answered_at(&self, port: i32) -> i32 {
        u16::try_from(port).map_or(port, |port| answered_at(port, self.low_ports).into())
    }

    pub(crate) fn note(&self, pod: &Pod, notice: &Notice) {
        let kind = if notice.warning { EventType::Warning } else { EventType::Normal };
        let about = pod.object_ref(&());
        self.recorder.record(COMPONENT, about, kind, notice.reason, notice.message.clone());
    }

    pub(crate) fn warn(&self, about: ObjectReference, reason: &str, words: String) {
        self.recorder.record(COMPONENT, about, EventType::Warning, reason, words);
    }
}
