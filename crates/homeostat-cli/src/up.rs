//! `homeostat up`: starts the parts in the order of the loop, and stops them in the other.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use homeostat::{Env, Manager};
use homeostat_apiserver::http::{Body, NodeConnector};
use homeostat_apiserver::{DataDirectory, Identity, Server, ServerConfig};
use homeostat_cluster::node::{Agent, AgentConfig, NodeService, RunningAgent};
use homeostat_cluster::{Cluster, ClusterConfig};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::demo;
use crate::failure::Failure;
use crate::kubeconfig::Kubeconfig;
use crate::operators::{self, Operator};
use crate::range::ServiceRange;

/// How long running reconciles may take to finish once asked to stop.
const GRACE: Duration = Duration::from_secs(2);

/// `homeostat up`
#[derive(clap::Args)]
pub(crate) struct Up {
    /// Apply one object per operator and show how they converge.
    #[arg(long)]
    demo: bool,

    /// The operators to run: at, webapp, database, logical-database. All of them with --demo, else none.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    with: Option<Vec<String>>,

    /// The port to serve on; a free one by default.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,

    /// Where to write the kubeconfig; ~/.config/homeostat/kubeconfig by default.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Keep everything in this directory and go on with what is there; in memory by default.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// How long past revisions can be listed, at the least.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    compaction_interval: u64,
}

impl Up {
    /// Runs until interrupted.
    pub(crate) fn run(self) -> Result<(), Failure> {
        // Lines of a log would tear the picture of the demo apart.
        let level = if self.demo { "error" } else { "warn" };
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
        let chosen = operators::chosen(&self.names())?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.map_err(|error| Failure::Start(error.into()))?.block_on(self.serve(chosen))
    }

    fn names(&self) -> Vec<String> {
        match &self.with {
            Some(names) => names
                .iter()
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect(),
            None if self.demo => {
                operators::ALL.iter().map(|operator| operator.name.to_owned()).collect()
            }
            None => Vec::new(),
        }
    }

    async fn serve(self, chosen: Vec<Operator>) -> Result<(), Failure> {
        let mut interrupted = interruption()?;
        let env = Env::system();
        let listener = listen(self.port).await?;
        let address =
            listener.local_addr().map_err(|source| Failure::Listen { port: self.port, source })?;
        let data = match &self.data {
            Some(path) => Some(DataDirectory::open(path).map_err(Failure::Data)?),
            None => None,
        };
        let identity = match &data {
            Some(directory) => Identity::kept(&env, directory, &[]),
            None => Identity::generate(&env, &[]),
        };
        let identity = identity.map_err(|error| Failure::Start(error.into()))?;
        let range = ServiceRange::reserve(&env, data.as_ref()).await?;
        let mut config = ServerConfig::new(env.clone());
        config.service_account_admission = true;
        config.service_range = range.addresses;
        config.compaction = Duration::from_secs(self.compaction_interval);
        let server = match &data {
            Some(directory) => Server::open(config, directory).await.map_err(Failure::Data)?,
            None => Server::new(config),
        };

        let path = self.kubeconfig.map_or_else(Kubeconfig::default_path, Ok)?;
        let access = identity.access();
        let kubeconfig =
            Kubeconfig::write(&path, &access.kubeconfig(&format!("https://{address}")))?;
        let root_ca = access.ca_pem.clone();
        let tls = server.clone();
        let serving = tokio::spawn(async move { tls.serve_tls(listener, identity).await });
        let parts = tokio::select! {
            biased;
            () = &mut interrupted => None,
            started = Parts::start(&server, &env, data.as_ref(), root_ca, &chosen) => Some(started?),
        };
        if let Some(parts) = parts {
            // Not before: who reads this may use the operators' kinds at once.
            println!("ready {}", kubeconfig.path().display());
            if self.demo {
                demo::hint(kubeconfig.path());
            }
            let show = async {
                if self.demo {
                    demo::apply(&parts.client, &env, &chosen)
                        .await
                        .map_err(|error| Failure::Start(error.into()))?;
                    demo::watch(parts.client.clone(), env.clone(), chosen.clone()).await;
                }
                std::future::pending().await
            };
            let ended: Result<(), Failure> = tokio::select! {
                biased;
                () = &mut interrupted => Ok(()),
                ended = show => ended,
            };
            parts.stop().await?;
            ended?;
        }
        serving.abort();
        Ok(())
    }
}

/// Resolves at the first SIGINT or SIGTERM, or when the terminal is closed.
fn interruption() -> Result<BoxFuture<'static, ()>, Failure> {
    let failure = |error: std::io::Error| Failure::Start(error.into());
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failure)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failure)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failure)?;
    let first = async move {
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    };
    Ok(first.boxed())
}

async fn listen(port: u16) -> Result<TcpListener, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => Failure::PortTaken { port, source },
        _ => Failure::Listen { port, source },
    })
}

/// The controllers, the operators and the node, at work on one server.
struct Parts {
    client: kube::Client,
    cluster: Cluster,
    agent: RunningAgent,
    /// Volumes that nobody will ask for again.
    temporary: Option<PathBuf>,
}

impl Parts {
    async fn start(
        server: &Server,
        env: &Env,
        data: Option<&DataDirectory>,
        root_ca: String,
        chosen: &[Operator],
    ) -> Result<Self, Failure> {
        let client = kube::Client::new(server.clone(), "default");
        let temporary =
            std::env::temp_dir().join(format!("homeostat-volumes-{:016x}", env.random_u64()));
        let (volumes, temporary) = match data {
            Some(directory) => (directory.path().join("volumes"), None),
            None => (temporary.clone(), Some(temporary)),
        };
        let config = ClusterConfig { root_ca, volumes };
        let mut manager = Manager::new(client.clone(), env.clone()).grace(GRACE);
        for operator in chosen {
            manager = (operator.join)(manager);
        }
        let cluster =
            Cluster::start(manager, &config).await.map_err(|error| Failure::Start(error.into()))?;
        let mut agent = AgentConfig::new(client.clone(), env.clone());
        agent.data = data.map(|directory| directory.path().join("node"));
        let agent = Agent::start(agent).await.map_err(|error| Failure::Start(error.into()))?;
        server.connect_nodes(Arc::new(Node(agent.service())));
        Ok(Self { client, cluster, agent, temporary })
    }

    /// Controllers first, so that nobody makes anew what the node ends.
    async fn stop(self) -> Result<(), Failure> {
        let stopped = self.cluster.stop().await;
        self.agent.stop().await;
        if let Some(volumes) = &self.temporary {
            let _ = tokio::fs::remove_dir_all(volumes).await;
        }
        stopped.map_err(|error| Failure::Stop(error.into()))
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
