//! The agent: registers its node, runs its Pods until it is stopped, and leaves nothing behind.

use std::fmt;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homeostat::cache::Scope;
use homeostat::manager::Running as RunningManager;
use homeostat::{Kind, Manager};
use homeostat_env::Env;
use k8s_openapi::api::core::v1::Service;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::address::Addresses;
use super::capacity::Capacity;
use super::follower::Follower;
use super::host::Host;
use super::process::Helper;
use super::registration;
use super::serve::NodeService;
use crate::temporary::{TemporaryDirectory, sweep};

/// What an agent must be told.
#[derive(Clone)]
pub struct AgentConfig {
    /// How to reach the API.
    pub client: kube::Client,
    /// Time, randomness and the host's name.
    pub env: Env,
    /// The node's name; the host's by default.
    pub node: Option<String>,
    /// Where Pods live on disk: volumes, logs. By default a fresh directory below the system's
    /// temporary one, removed when the agent stops, or by the next agent on this host when it was
    /// killed; a directory given here is kept.
    pub data: Option<PathBuf>,
    /// The binary that plays the sandbox's parts: its `main` calls
    /// [`main_if_asked`](super::sandbox::main_if_asked). This very binary by default.
    pub helper: Option<PathBuf>,
}

impl AgentConfig {
    /// The defaults.
    #[must_use]
    pub fn new(client: kube::Client, env: Env) -> Self {
        Self { client, env, node: None, data: None, helper: None }
    }
}

impl fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client: _, env, node, data, helper } = self;
        f.debug_struct("AgentConfig")
            .field("env", env)
            .field("node", node)
            .field("data", data)
            .field("helper", helper)
            .finish_non_exhaustive()
    }
}

/// Why an agent could not start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The directory for Pods cannot be used.
    #[error("the node's directory {path} cannot be made")]
    Data {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The sandbox's helper cannot be started.
    #[error("the sandbox helper {path} cannot be started")]
    Helper {
        /// The binary.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The API refused the node.
    #[error("the node could not be registered")]
    Register(#[source] kube::Error),
    /// The caches could not be started.
    #[error(transparent)]
    Runtime(#[from] homeostat::Error),
}

/// The node agent.
#[derive(Debug)]
pub struct Agent;

/// An agent at work. Dropping it ends every process; [`RunningAgent::stop`] waits for that.
#[derive(Debug)]
pub struct RunningAgent {
    host: Arc<Host>,
    manager: Option<RunningManager>,
    stop: Option<oneshot::Sender<()>>,
    follower: JoinHandle<()>,
    lease: JoinHandle<()>,
    /// Goes last, and from the disk with it.
    _temporary: Option<TemporaryDirectory>,
}

impl Agent {
    /// Registers the node and begins to run its Pods; returns when the node is ready.
    ///
    /// # Errors
    /// [`AgentError`] says what is missing; nothing is left behind but a Node object.
    pub async fn start(config: AgentConfig) -> Result<RunningAgent, AgentError> {
        let AgentConfig { client, env, node, data, helper } = config;
        let program = helper.unwrap_or_else(|| "/proc/self/exe".into());
        let helper = Helper::probe(program.clone())
            .await
            .map_err(|source| AgentError::Helper { path: program, source })?;
        let (path, temporary) = match data {
            Some(path) => (path, None),
            None => {
                let parent = std::env::temp_dir();
                let made = TemporaryDirectory::new(&parent, "node", &env);
                let made = made.map_err(|source| AgentError::Data { path: parent, source })?;
                (made.path().to_owned(), Some(made))
            }
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|source| AgentError::Data { path: path.clone(), source })?;
        // Nobody waits for that.
        drop(tokio::task::spawn_blocking(|| sweep(&std::env::temp_dir())));
        let manager = Manager::new(client.clone(), env.clone()).start().await?;
        let node = node.unwrap_or_else(|| registration::node_name(env.host()));
        let addresses = Addresses::starting_at(env.random_u64());
        let (recorder, capacity) = (manager.recorder().clone(), Capacity::of_host(&path));
        let services = manager.caches().informer(Kind::of::<Service>(), Scope::default());
        let host =
            Host::new(node, client, env, helper, recorder, path, capacity, addresses, services);
        let host = Arc::new(host);
        registration::register(&host).await.map_err(AgentError::Register)?;
        let (stop, stopped) = oneshot::channel();
        let follower = Follower::new(host.clone(), &manager.caches());
        let follower = tokio::spawn(follower.run(stopped));
        let renewing = host.clone();
        let lease = tokio::spawn(async move { registration::renew(&renewing).await });
        let (manager, stop) = (Some(manager), Some(stop));
        Ok(RunningAgent { host, manager, stop, follower, lease, _temporary: temporary })
    }
}

impl RunningAgent {
    /// The node's name.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.host.node
    }

    /// Where its Pods live on disk.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.host.data
    }

    /// What answers for logs, exec and port-forward.
    #[must_use]
    pub fn service(&self) -> NodeService {
        NodeService::new(self.host.clone())
    }

    /// Asks every container to end, as when its Pod is deleted, and kills what still runs after its
    /// grace or ten seconds, whichever is shorter. Then closes every address and removes a temporary
    /// directory, whether or not the API answers.
    pub async fn stop(self) {
        self.stop_until(std::future::pending()).await;
    }

    /// As [`RunningAgent::stop`], but kills everything at once when `impatience` is over.
    pub async fn stop_until(mut self, impatience: impl Future<Output = ()>) {
        self.host.stopping.cancel();
        self.lease.abort();
        drop(self.stop.take());
        tokio::select! {
            biased;
            _ = &mut self.follower => {}
            () = impatience => {
                self.host.hurry.cancel();
                let _ = (&mut self.follower).await;
            }
        }
        if let Some(manager) = self.manager.take()
            && let Err(error) = manager.stop().await
        {
            tracing::warn!(%error, "the agent's caches did not stop in order");
        }
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.lease.abort();
        self.follower.abort();
    }
}
