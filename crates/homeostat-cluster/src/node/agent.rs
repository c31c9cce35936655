//! The agent: follows the Pods of its node and keeps one worker for each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homeostat::cache::{Caches, Delta, Informer, Scope};
use homeostat::manager::Running as RunningManager;
use homeostat::{Key, Kind, Manager};
use homeostat_env::Env;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::address::Addresses;
use super::host::Host;
use super::process::Helper;
use super::proxy::{self, Proxy};
use super::registration;
use super::serve::NodeService;
use super::worker::{Message, Worker};

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
    /// temporary one, removed when the agent stops; a directory given here is kept.
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
    temporary: Option<PathBuf>,
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
        let temporary = data.is_none().then(|| {
            std::env::temp_dir().join(format!("homeostat-node-{:016x}", env.random_u64()))
        });
        let data = data.or_else(|| temporary.clone()).unwrap_or_default();
        private_directory(&data)
            .map_err(|source| AgentError::Data { path: data.clone(), source })?;
        let manager = Manager::new(client.clone(), env.clone()).start().await?;
        let node = node.unwrap_or_else(|| registration::node_name(env.host()));
        let addresses = Addresses::starting_at(env.random_u64());
        let (recorder, capacity) = (manager.recorder().clone(), registration::capacity());
        let host = Host::new(node, client, env, helper, recorder, data, capacity, addresses);
        let host = Arc::new(host);
        registration::register(&host).await.map_err(AgentError::Register)?;
        let (stop, stopped) = oneshot::channel();
        let follower = Follower::new(host.clone(), &manager.caches());
        let follower = tokio::spawn(follower.run(stopped));
        let renewing = host.clone();
        let lease = tokio::spawn(async move { registration::renew(&renewing).await });
        let (manager, stop) = (Some(manager), Some(stop));
        Ok(RunningAgent { host, manager, stop, follower, lease, temporary })
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

    /// Ends every process of every Pod, closes every address, and removes a temporary directory.
    pub async fn stop(mut self) {
        self.lease.abort();
        drop(self.stop.take());
        let _ = (&mut self.follower).await;
        if let Some(manager) = self.manager.take()
            && let Err(error) = manager.stop().await
        {
            tracing::warn!(%error, "the agent's caches did not stop in order");
        }
        if let Some(path) = self.temporary.take()
            && let Err(error) = tokio::fs::remove_dir_all(&path).await
        {
            tracing::warn!(path = %path.display(), %error, "not removed");
        }
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.lease.abort();
        self.follower.abort();
        if let Some(path) = self.temporary.take() {
            // Containers may still be ending; `stop` is the way to be sure.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

enum Change {
    Pod(Delta),
    /// A Secret or ConfigMap of that namespace.
    Configuration(Option<Arc<str>>),
    /// A Service or an EndpointSlice.
    Network,
}

struct Follower {
    host: Arc<Host>,
    changes: mpsc::UnboundedReceiver<Change>,
    services: Informer,
    slices: Informer,
    /// Held so that they go on.
    _others: Vec<Informer>,
    proxy: Proxy,
    workers: BTreeMap<String, (Key, mpsc::Sender<Message>)>,
    tasks: JoinSet<()>,
    /// Uids of Pods that ended here and are still in the API.
    finished: BTreeSet<String>,
}

impl Follower {
    fn new(host: Arc<Host>, caches: &Caches) -> Self {
        let (sender, changes) = mpsc::unbounded_channel();
        let follow = |kind: Kind, change: fn(&Delta) -> Change| {
            let informer = caches.informer(kind, Scope::default());
            let sender = sender.clone();
            informer.on_event(move |delta| {
                // The follower is gone only when the agent stops.
                let _ = sender.send(change(delta));
            });
            informer.start();
            informer
        };
        let configuration: fn(&Delta) -> Change =
            |delta| Change::Configuration(delta.key().namespace.clone());
        let services = follow(Kind::of::<Service>(), |_| Change::Network);
        let slices = follow(Kind::of::<EndpointSlice>(), |_| Change::Network);
        let others = vec![
            follow(Kind::of::<Pod>(), |delta| Change::Pod(delta.clone())),
            follow(Kind::of::<Secret>(), configuration),
            follow(Kind::of::<ConfigMap>(), configuration),
        ];
        Self {
            host,
            changes,
            services,
            slices,
            _others: others,
            proxy: Proxy::default(),
            workers: BTreeMap::new(),
            tasks: JoinSet::new(),
            finished: BTreeSet::new(),
        }
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let first = tokio::select! {
                biased;
                _ = &mut stopped => break,
                Some(_) = self.tasks.join_next() => { self.bury(); continue; }
                change = self.changes.recv() => change,
            };
            let Some(first) = first else { break };
            let mut network = false;
            let mut configuration = BTreeSet::new();
            let mut next = Some(first);
            // Many changes at once are one change of the routes.
            while let Some(change) = next {
                match change {
                    Change::Pod(delta) => self.pod(&delta).await,
                    Change::Configuration(namespace) => drop(configuration.insert(namespace)),
                    Change::Network => network = true,
                }
                next = self.changes.try_recv().ok();
            }
            for (key, worker) in self.workers.values() {
                if configuration.contains(&key.namespace) {
                    // A full mailbox will look at its configuration anyway, a closed one never again.
                    let _ = worker.try_send(Message::Poke);
                }
            }
            if network {
                let routes = proxy::routes(&self.services.list(None), &self.slices.list(None));
                self.proxy.sync(&self.host, routes).await;
            }
        }
        for (_, worker) in self.workers.values() {
            let _ = worker.send(Message::Gone).await;
        }
        while self.tasks.join_next().await.is_some() {}
    }

    /// Notes which workers have ended.
    fn bury(&mut self) {
        let ended: Vec<String> = self
            .workers
            .iter()
            .filter(|(_, (_, worker))| worker.is_closed())
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in ended {
            self.workers.remove(&uid);
            self.finished.insert(uid);
        }
    }

    async fn pod(&mut self, delta: &Delta) {
        if let Some(old) = &delta.old {
            let replaced = delta.new.as_ref().is_none_or(|new| new.header.uid != old.header.uid);
            if replaced {
                self.gone(&old.header.uid).await;
            }
        }
        let Some(new) = &delta.new else { return };
        let pod = match new.decode::<Pod>() {
            Ok(pod) => Pod::clone(&pod),
            Err(error) => {
                tracing::warn!(pod = %delta.key(), %error, "a Pod that cannot be read is not run");
                return;
            }
        };
        let mine =
            pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&self.host.node);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if !mine || self.finished.contains(&uid) {
            return;
        }
        if let Some((_, worker)) = self.workers.get(&uid) {
            // A closed mailbox belongs to a worker that is ending.
            let _ = worker.send(Message::Pod(Box::new(pod))).await;
            return;
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return;
        }
        let worker = Worker::spawn(self.host.clone(), pod, &mut self.tasks);
        self.workers.insert(uid, (delta.key().clone(), worker));
    }

    async fn gone(&mut self, uid: &str) {
        self.finished.remove(uid);
        if let Some((_, worker)) = self.workers.remove(uid) {
            // Closed means that it has ended by itself.
            let _ = worker.send(Message::Gone).await;
        }
    }
}
