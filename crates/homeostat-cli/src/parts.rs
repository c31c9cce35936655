//! What works on the server inside `homeostat up`: controllers, operators and the node agent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use homeostat::{Env, Manager};
use homeostat_apiserver::http::{Body, NodeConnector};
use homeostat_apiserver::{DataDirectory, Server};
use homeostat_cluster::node::{Agent, AgentConfig, NodeService, RunningAgent};
use homeostat_cluster::{Cluster, ClusterConfig, TemporaryDirectory};

use crate::failure::Failure;
use crate::lease;
use crate::operators::Operator;

/// How long running reconciles may take to finish once asked to stop. Most need no time; the folder of
/// a volume on a busy disk does.
const GRACE: Duration = Duration::from_secs(10);

/// The controllers, the operators and the node, at work on one server.
pub(crate) struct Parts {
    pub(crate) client: kube::Client,
    cluster: Cluster,
    agent: RunningAgent,
    /// Goes last.
    _place: Place,
}

impl Parts {
    pub(crate) async fn start(
        server: &Server,
        env: &Env,
        data: Option<&DataDirectory>,
        cluster: ClusterConfig,
        chosen: &[Operator],
    ) -> Result<Self, Failure> {
        let client = kube::Client::new(server.clone(), "default");
        let place = match data {
            Some(directory) => Place::Kept(directory.clone()),
            None => {
                let made = TemporaryDirectory::new(&std::env::temp_dir(), "up", env);
                Place::Temporary(made.map_err(|error| Failure::Start(error.into()))?)
            }
        };
        let config = ClusterConfig { volumes: place.path().join("volumes"), ..cluster };
        let mut manager = Manager::new(client.clone(), env.clone()).grace(GRACE);
        let held = lease::hold(&client, env, chosen).await;
        held.map_err(|error| Failure::Start(error.into()))?;
        for operator in chosen {
            manager = (operator.join)(manager);
        }
        let cluster =
            Cluster::start(manager, &config).await.map_err(|error| Failure::Start(error.into()))?;
        let mut agent = AgentConfig::new(client.clone(), env.clone());
        agent.data = Some(place.path().join("node"));
        let agent = Agent::start(agent).await.map_err(|error| Failure::Start(error.into()))?;
        server.connect_nodes(Arc::new(Node(agent.service())));
        Ok(Self { client, cluster, agent, _place: place })
    }

    /// Controllers first, so that nobody makes anew what the node ends. What they are at, and programs
    /// in Pods, have a few seconds to end by themselves, unless `impatience` is over before.
    pub(crate) async fn stop(
        self,
        impatience: impl Future<Output = ()> + Send,
    ) -> Result<(), Failure> {
        let impatience = impatience.boxed().shared();
        let stopped = tokio::select! {
            biased;
            stopped = self.cluster.stop() => stopped,
            // Whoever does not want to wait is not told of what was not waited for.
            () = impatience.clone() => Ok(()),
        };
        self.agent.stop_until(impatience).await;
        stopped.map_err(|error| Failure::Stop(error.into()))
    }
}

/// Where Pods and volumes live on disk.
enum Place {
    Kept(DataDirectory),
    /// Nobody will ask for them again.
    Temporary(TemporaryDirectory),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(directory) => directory.path(),
            Self::Temporary(directory) => directory.path(),
        }
    }
}

/// The way from the API server to the one node, which lives in this process.
struct Node(NodeService);

impl NodeConnector for Node {
    fn call(
        &self,
        _: &str,
        request: http::Request<Body>,
    ) -> BoxFuture<'static, http::Response<Body>> {
        let service = self.0.clone();
        async move { service.handle(request).await }.boxed()
    }
}
