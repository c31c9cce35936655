//! `homeostat up`: starts the parts in the order of the loop, and stops them in the other.

use std::io::IsTerminal as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use homeostat::Env;
use homeostat_apiserver::{DataDirectory, Identity, IdentityError, Server, ServerConfig};
use homeostat_cluster::{CertificateAuthority, ClusterConfig};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::EnvFilter;

use crate::advice::hint;
use crate::demo;
use crate::failure::{Failure, remark, warn};
use crate::kubeconfig::Kubeconfig;
use crate::log::Log;
use crate::operators::{self, Operator};
use crate::parts::Parts;
use crate::range::ServiceRange;
use crate::say::say;
use crate::untended::untended;

/// `homeostat up`
#[derive(clap::Args)]
pub(crate) struct Up {
    /// Make one object per operator, unless it was made before, and show how they converge.
    #[arg(long)]
    demo: bool,

    /// The operators to run: at, webapp, database, logical-database. All of them with --demo, else none.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    with: Option<Vec<String>>,

    /// The port to serve on; by default a free one, which a data directory keeps.
    #[arg(long, value_name = "N")]
    port: Option<u16>,

    /// Where to write the kubeconfig, which is removed at the end; ~/.config/homeostat/kubeconfig by default.
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
        // Not every line of a log is worth being told after the demo's picture.
        let level = if self.demo { "error" } else { "warn" };
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(|| Log)
            .init();
        let chosen = operators::chosen(&self.names())?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.map_err(|error| Failure::Start(error.into()))?.block_on(self.serve(chosen))?;
        // Nothing of it is left, neither a process nor the kubeconfig.
        say(format_args!("stopped"));
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        match &self.with {
            Some(names) => names.iter().map(|name| name.trim().to_owned()).collect(),
            None if self.demo => {
                operators::ALL.iter().map(|operator| operator.name.to_owned()).collect()
            }
            None => Vec::new(),
        }
    }

    async fn serve(self, chosen: Vec<Operator>) -> Result<(), Failure> {
        let mut interruptions = Interruptions::listen()?;
        let env = Env::system();
        let data = match &self.data {
            Some(path) => {
                let opened = DataDirectory::open(path);
                Some(opened.map_err(|error| Failure::data(path, error))?)
            }
            None => None,
        };
        let (listener, port) = listen(self.port, data.as_ref()).await?;
        let identity = match &data {
            Some(directory) => Identity::kept(&env, directory, &[]),
            None => Identity::generate(&env, &[]),
        };
        let identity = identity.map_err(|error| match (error, &data) {
            (IdentityError::Storage(error), Some(data)) => Failure::data(data.path(), error),
            (error, _) => Failure::Start(error.into()),
        })?;
        let range = ServiceRange::reserve(&env, data.as_ref()).await?;
        let mut config = ServerConfig::new(env.clone());
        config.service_account_admission = true;
        config.with_controllers = true;
        config.service_range = range.addresses;
        config.compaction = Duration::from_secs(self.compaction_interval);
        let server = match &data {
            Some(directory) => {
                let opened = Server::open(config, directory).await;
                opened.map_err(|error| Failure::data(directory.path(), error))?
            }
            None => Server::new(config),
        };

        let access = identity.access();
        let text = access.kubeconfig(&format!("https://{}:{port}", Ipv4Addr::LOCALHOST));
        let kubeconfig = match &self.kubeconfig {
            Some(path) => Kubeconfig::write(path, &text)?,
            None => Kubeconfig::write_default(&text, port)?,
        };
        let authority = CertificateAuthority::from_pem(identity.authority())
            .map_err(|error| Failure::Start(error.into()))?;
        let cluster = ClusterConfig {
            root_ca: access.ca_pem.clone(),
            authority: Some(authority),
            ..ClusterConfig::default()
        };
        let tls = server.clone();
        let (end, ended) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            tls.serve_tls_until(listener, identity, async move { drop(ended.await) }).await
        });
        let parts = tokio::select! {
            biased;
            () = interruptions.next() => None,
            started = Parts::start(&server, &env, data.as_ref(), cluster, &chosen) => Some(started?),
        };
        if let Some(parts) = parts {
            if data.is_some() {
                let found = untended(&parts.client, &chosen).await;
                if let Some(words) = found.map_err(|error| Failure::Start(error.into()))? {
                    remark(&words);
                }
            }
            if self.demo && waits_for_a_server(&chosen) {
                remark(
                    "the demo's LogicalDatabase waits for the server of a Database: add database to --with",
                );
            }
            // Not before: who reads this may use the operators' kinds at once.
            say(format_args!("ready {}", kubeconfig.path().display()));
            hint(kubeconfig.path(), self.demo);
            let show = async {
                if self.demo {
                    let path = kubeconfig.path();
                    let shown =
                        demo::watch(parts.client.clone(), env.clone(), chosen.clone(), path).await;
                    return shown.map(drop).map_err(|error| Failure::Start(error.into()));
                }
                std::future::pending().await
            };
            let ended: Result<(), Failure> = tokio::select! {
                biased;
                () = interruptions.next() => Ok(()),
                ended = show => ended,
            };
            demo::farewell(self.demo);
            parts.stop(interruptions.next()).await?;
            ended?;
        }
        // Clients of their own, such as an operator beside this process, are told that it ends.
        drop(end);
        let served = serving.await.map_err(|error| Failure::Stop(error.into()))?;
        served.map_err(|error| Failure::Stop(error.into()))
    }
}

/// Whether the objects of the demo have a LogicalDatabase and no Database that it could be in.
fn waits_for_a_server(chosen: &[Operator]) -> bool {
    let has = |name: &str| chosen.iter().any(|operator| operator.name == name);
    has("logical-database") && !has("database")
}

/// SIGINT and SIGTERM, and that the terminal was closed: the first asks for an end, the second for
/// an end at once.
struct Interruptions([Signal; 3]);

impl Interruptions {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::Start(error.into()));
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self([listen(interrupt)?, listen(terminate)?, listen(SignalKind::hangup())?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Listens where it was asked to, else where the directory's last cluster did, else anywhere.
async fn listen(
    port: Option<u16>,
    data: Option<&DataDirectory>,
) -> Result<(TcpListener, u16), Failure> {
    let (listener, port) = match port {
        Some(port) => return bind(port).await,
        None => bind(0).await?,
    };
    let Some(directory) = data else { return Ok((listener, port)) };
    let kept = directory.keep("port", || Ok(format!("{port}\n")));
    let kept = kept.map_err(|error| Failure::data(directory.path(), error))?;
    let kept: u16 =
        kept.trim().parse().map_err(|_| Failure::damaged(directory, "port", "it is no port"))?;
    if kept == port {
        return Ok((listener, port));
    }
    // Kubeconfigs that people have copied go on working. When somebody else has the port now, that is
    // no reason not to start.
    bind(kept).await.or_else(|_| {
        let moved = format!("port {kept}, where this cluster was before, is taken: it is at {port} for now");
        let tip = format!(
            "use the kubeconfig that is named below; for copies of the one before, stop what listens on {kept} \
             and start again"
        );
        warn(&moved, &tip);
        Ok((listener, port))
    })
}

async fn bind(port: u16) -> Result<(TcpListener, u16), Failure> {
    let failure = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AddrInUse => Failure::PortTaken { port, source },
        _ => Failure::Listen { port, source },
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failure)?;
    let port = listener.local_addr().map_err(failure)?.port();
    Ok((listener, port))
}
