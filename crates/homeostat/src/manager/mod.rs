//! Runs controllers: starts caches, waits for them, runs workers, and stops in order.
//!
//! Starting: probes, definitions, webhooks, event writer, sources, the lease, then workers as soon as
//! their caches are in sync, and runnables. Stopping: intake, running reconciles and runnables
//! (within the grace), caches, webhooks, events, address, the lease. A kind that is missing or
//! forbidden holds back only the controllers that need it.

mod definitions;
mod health;
mod leadership;
mod listen;
mod runnable;
mod running;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::Env;
use crate::cache::Caches;
use crate::client;
use crate::controller::{Controller, Launch};
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::kind::{AnyObject, Kind, Object};
use crate::lease::Lease;
use crate::metrics::{Metrics, SourceMetrics};
use crate::webhook::Webhooks;

use health::Probe;
pub use health::{Check, Health};
pub use runnable::{Runnable, Work};
pub use running::Running;

/// How long a stop waits for running reconciles by default.
const GRACE: Duration = Duration::from_secs(20);

/// Several controllers over one client and one set of caches.
///
/// ```
/// use std::sync::Arc;
/// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use homeostat::{Context, Controller, Manager, Outcome, Result};
///
/// async fn look<K>(_: Arc<K>, _: Context<K>) -> Result<Outcome> {
///     Ok(Outcome::Done)
/// }
/// # async fn example(cluster: homeostat_testing::TestCluster) -> Result<()> {
/// # let (client, env) = (cluster.client.clone(), cluster.env.clone());
///
/// let running = Manager::new(client, env)
///     .with(Controller::new(look::<ConfigMap>))
///     .with(Controller::new(look::<Secret>).named("secrets"))
///     .with_check("weather", || None)
///     .start()
///     .await?;
/// assert!(running.health().is_ready());
/// assert!(running.metrics().contains("controller_runtime_max_concurrent_reconciles"));
/// running.stop().await?; // in order; `Manager::run` does so at a signal
/// # Ok(())
/// # }
/// # homeostat_testing::on_cluster(async |cluster| example(cluster).await.unwrap());
/// ```
pub struct Manager {
    client: kube::Client,
    /// Where it is, for people; not known of a client that somebody else has made.
    server: Option<String>,
    env: Env,
    caches: Caches,
    journal: Journal,
    definitions: Vec<CustomResourceDefinition>,
    controllers: Vec<Box<dyn Launch>>,
    runnables: Vec<Runnable>,
    probes: Vec<Probe>,
    webhooks: Option<Webhooks>,
    lease: Option<Lease>,
    metrics: Metrics,
    address: Option<SocketAddr>,
    grace: Duration,
}

impl Manager {
    /// A manager for the cluster that `$KUBECONFIG`, `~/.kube/config` or the Pod's service account
    /// names.
    ///
    /// # Errors
    /// When none of them is there or can be read. Nothing is connected yet.
    pub async fn from_env() -> Result<Self> {
        Self::from_config(&client::config_from_env().await?)
    }

    /// A manager for the current context of a kubeconfig file.
    ///
    /// # Errors
    /// When the file cannot be read or names no usable cluster.
    pub async fn from_kubeconfig(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_config(&client::config_of_file(path.as_ref()).await?)
    }

    /// A manager for the context of that name in `$KUBECONFIG` or `~/.kube/config`.
    ///
    /// # Errors
    /// When there is no such context, or it names no usable cluster.
    pub async fn from_context(name: &str) -> Result<Self> {
        Self::from_config(&client::config_of_context(name).await?)
    }

    fn from_config(config: &kube::Config) -> Result<Self> {
        let env = Env::system();
        let host = config.cluster_url.authority().map_or("", |authority| authority.as_str());
        let mut manager = Self::at(host, client::connect(config, env.clone())?, env);
        manager.server = Some(config.cluster_url.to_string());
        Ok(manager)
    }

    /// A manager on that client and environment.
    #[must_use]
    pub fn new(client: kube::Client, env: Env) -> Self {
        Self::at("", client, env)
    }

    /// The same; its requests are counted as sent to `host`.
    fn at(host: &str, client: kube::Client, env: Env) -> Self {
        let sources = SourceMetrics::default();
        let metrics = Metrics::new(host, sources.clone());
        let client = client::in_words(client::counted(client, env.clone(), metrics.clone()));
        Self {
            caches: Caches::counted(client.clone(), env.clone(), sources),
            metrics,
            client,
            server: None,
            env,
            journal: Journal::default(),
            definitions: Vec::new(),
            controllers: Vec::new(),
            runnables: Vec::new(),
            probes: Vec::new(),
            webhooks: None,
            lease: None,
            address: None,
            grace: GRACE,
        }
    }

    /// Adds a controller. Two of the same name are an error at the start.
    #[must_use]
    pub fn with<K: AnyObject>(mut self, controller: Controller<K>) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// Adds work beside the controllers. Two of the same name are an error at the start.
    #[must_use]
    pub fn with_runnable(mut self, runnable: Runnable) -> Self {
        self.runnables.push(runnable);
        self
    }

    /// Answers the webhooks of the API, whoever leads, from before the caches are filled until they
    /// are stopped. A second call replaces the first.
    #[must_use]
    pub fn webhooks(mut self, webhooks: Webhooks) -> Self {
        self.webhooks = Some(webhooks);
        self
    }

    /// Adds a question to the readiness: what is wrong, in words, or nothing. It is asked whenever
    /// somebody wants to know, so it must be quick; one that panics says so. [`Running::add_check`]
    /// adds one later.
    #[must_use]
    pub fn with_check(
        mut self,
        name: &str,
        problem: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.probes.push(Probe::new(name, problem));
        self
    }

    /// Installs the definition of `K` at the start, before any cache is filled, or brings it up to
    /// date. Where this process may not (403), the log says so, a definition that is there is used as
    /// it is, and one that is missing is waited for and named by the readiness; it is tried again, ever
    /// more seldom, down to every ten minutes, and left alone once others have installed it. An API
    /// that is away is waited for; after a minute the start goes on, the readiness names the definition,
    /// and it is installed within half a minute of the API's return.
    #[must_use]
    pub fn with_crd<K: CustomResourceExt>(mut self) -> Self {
        self.definitions.push(K::crd());
        self
    }

    /// Caches objects of kind `K` only after `transform`: whatever it removes takes no memory, cannot
    /// be read from the cache and is no change. Names, labels, owners and the rest of the metadata
    /// that the runtime itself needs stay as the server sent them. To be called before
    /// [`Self::caches`]; a second one comes after the first.
    ///
    /// Of what a reconcile writes nothing should be removed: it would be written again each time.
    ///
    /// ```
    /// # use homeostat::Manager;
    /// use homeostat::k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// # fn example(manager: Manager) -> Manager {
    /// // Large files that no reconcile looks at.
    /// manager.transform::<ConfigMap>(|config| {
    ///     config.as_object_mut().map(|fields| fields.remove("binaryData"));
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn transform<K: Object>(
        self,
        transform: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.transform_of(&Kind::of::<K>(), transform)
    }

    /// The same for a kind known only at run time.
    ///
    /// ```
    /// # use homeostat::{Kind, Manager};
    /// # fn example(manager: Manager) -> Manager {
    /// let widgets = Kind::new("example.com", "v1", "Widget", "widgets", true);
    /// manager.transform_of(&widgets, |widget| {
    ///     widget["spec"].as_object_mut().map(|spec| spec.remove("drawing"));
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn transform_of(
        mut self,
        kind: &Kind,
        transform: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.caches = self.caches.with_transform(kind.clone(), transform);
        self
    }

    /// Keeps `managedFields` in the caches, for reconciles that look at who wrote what. By default they
    /// are cut out: they cost about as much memory as the rest, and every write changes them. To be
    /// called before [`Self::caches`].
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.caches = self.caches.keeping_managed_fields();
        self
    }

    /// Works only while this process holds that lease; without one (the default) it always works.
    ///
    /// The caches are filled all the while, so that taking over is quick. A process whose caches are
    /// not in sync yet (it has just begun, or may not read a kind) lets others go first: it takes the
    /// lease only when nobody has held it for as long as it lasts. A source that fails later changes
    /// nothing: the leader keeps the lease. When the lease is lost,
    /// running reconciles are given up before their next write; it may be held again later, and the
    /// process need not exit. [`Running::stop`] gives it back.
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Answers `/healthz`, `/readyz` and `/metrics` there, in plain HTTP, from before the caches are
    /// filled until the end of the stop. Port 0 takes any free one; see [`Running::address`]. Nobody
    /// is asked who they are, so the address decides who may ask: 127.0.0.1 for programs of the same
    /// host, 0.0.0.0 in a container, which is probed from outside.
    ///
    /// `/readyz` lists every source and the lease, and is 503 while a source does not follow the
    /// API: a missing definition, a missing permission, a watch that went silent, or one that was there
    /// and cannot be had again for two minutes; or while the lease cannot be reached for as long as it
    /// lasts. Until the definitions are installed it says so.
    /// `/metrics` is [`Running::metrics`] and, on Linux, what the system counts of the process: CPU
    /// time, memory, open files and when it began, under the usual names (`process_*`).
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// How long a stop waits for running reconciles; 20 s by default. Up to 8 s more may pass until the
    /// events are written and the lease is given back: all of it within the 30 s
    /// (`terminationGracePeriodSeconds`) that a Pod is given by default.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How many reconciles the journal keeps; 4096 by default, at least one. The older ones go, and
    /// [`Journal::total`] still counts them. To be called before [`Self::journal`]: it begins anew.
    ///
    /// ```
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// let manager = cluster.manager().journal_capacity(100_000);
    /// # assert_eq!(manager.journal().total(), 0);
    /// # });
    /// ```
    #[must_use]
    pub fn journal_capacity(mut self, records: usize) -> Self {
        self.journal = Journal::with_capacity(records);
        self
    }

    /// The journal of all its controllers.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.journal.clone()
    }

    /// The caches that its controllers share.
    #[must_use]
    pub fn caches(&self) -> Caches {
        self.caches.clone()
    }

    /// What it counts; add metrics of your own with [`Metrics::register`].
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// The client. What is sent through it is counted with the rest, and sent once:
    /// [`crate::client::patient`] adds the rest of what reconciles have.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The environment.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Runs until SIGINT or SIGTERM, then stops in order; a second signal stops at once.
    ///
    /// # Errors
    /// As [`Self::run_until`]; also after a second signal.
    pub async fn run(self) -> Result<()> {
        let interrupt = signal(SignalKind::interrupt()).map_err(Error::transient)?;
        let terminate = signal(SignalKind::terminate()).map_err(Error::transient)?;
        let mut signals = (interrupt, terminate);
        let (told, first) = oneshot::channel();
        let twice = async move {
            either(&mut signals).await;
            let _ = told.send(());
            either(&mut signals).await;
        };
        let until = self.run_until(async move { drop(first.await) });
        tokio::select! {
            biased;
            ended = until => ended,
            () = twice => Err(Error::transient("asked twice to stop: what was running was dropped")),
        }
    }

    /// Runs until `end` resolves or a runnable fails, then stops in order. An end that comes during
    /// the start stops at once.
    ///
    /// # Errors
    /// As [`Self::start`] and [`Running::stop`], and the error of the runnable.
    pub async fn run_until(self, end: impl Future<Output = ()>) -> Result<()> {
        tokio::pin!(end);
        let server = self.server.as_deref().map(|server| server.trim_end_matches('/'));
        let place = server.map(|server| format!(" on {server}")).unwrap_or_default();
        let running = tokio::select! {
            biased;
            () = &mut end => {
                tracing::info!("stopped before it ran");
                return Ok(());
            }
            running = self.start() => running?,
        };
        // While another process leads, this one waits, and the log of the lease says so.
        let work = async {
            running.wait_until_leading().await;
            tracing::info!("running{place}; SIGINT or SIGTERM ends it");
            std::future::pending::<Infallible>().await
        };
        let failed = tokio::select! {
            biased;
            never = work => match never {},
            () = end => None,
            error = running.failed() => Some(error),
        };
        let stopped = running.stop().await;
        let ended = failed.map_or(stopped, Err);
        if ended.is_ok() {
            tracing::info!("stopped");
        }
        ended
    }

    /// Starts everything and returns when all caches are in sync.
    ///
    /// A source that does not work (no such kind, no permission, no server) is logged, tried again
    /// in the background and not waited for; its controller begins once the source works. So it is with
    /// definitions ([`Self::with_crd`]) and a certificate in a Secret while the API is away.
    ///
    /// # Errors
    /// When a definition is refused for what it says, two controllers or two runnables have the same
    /// name, the terms of the lease make no sense, an address to listen on is taken, or the certificate
    /// of the webhooks cannot be read, or may not.
    pub async fn start(self) -> Result<Running> {
        running::start(self).await
    }
}

/// The next signal of two.
async fn either((one, other): &mut (Signal, Signal)) {
    tokio::select! {
        biased;
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let controllers: Vec<&str> = self.controllers.iter().map(|c| c.name()).collect();
        f.debug_struct("Manager").field("controllers", &controllers).finish_non_exhaustive()
    }
}
