//! The server: one object that is called in-process and served over TLS alike.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::Ipv4Addr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use homeostat_env::Env;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tower::{BoxError, Service};

use crate::advertise::reached_at;
use crate::auth::{Identity, SigningKey};
use crate::directory::DataDirectory;
use crate::http::{self as front, Body, NodeConnector};
use crate::kinds::Kind;
use crate::metrics::Metrics;
use crate::openapi::{Document, Documents, custom_document};
use crate::registry::Registry;
use crate::status::Status;
use crate::store::{Limits, Log, LogOptions, StorageError, Store};
use crate::webhook_client::WebhookConnector;

/// What a server is made with.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Time, randomness and uids.
    pub env: Env,
    /// How many changes of each resource watchers can still catch up on at the most; any number by
    /// default.
    pub history: usize,
    /// How many bytes the past of all resources together may take; 64 MiB by default.
    pub history_bytes: usize,
    /// How long past revisions can be listed, watched and continued from at the least, as long as
    /// they fit; five minutes by default. After twice that time it is a 410.
    pub compaction: Duration,
    /// Whether Pods need their ServiceAccount to exist; off by default, because something must
    /// make those accounts.
    pub service_account_admission: bool,
    /// Whether containers get a token of that account, where neither it nor the Pod is against it;
    /// on by default, and without effect where accounts need not exist.
    pub mount_tokens: bool,
    /// Where Services get their addresses; 127.96.0.0/16 by default, which any process of a Linux
    /// host can answer on.
    pub service_range: AddressRange,
    /// Whether the controllers and the scheduler of a cluster run in the same process, as
    /// `componentstatuses` says; off by default.
    pub with_controllers: bool,
    /// The key that signs the tokens of service accounts; by default the data directory's, or a
    /// fresh one without, so that no token outlives the server.
    pub signing_key: Option<Arc<SigningKey>>,
}

/// A range of IPv4 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    /// The first address, which is never given out.
    pub base: Ipv4Addr,
    /// How many leading bits all addresses share; at most 30.
    pub prefix: u8,
}

impl AddressRange {
    /// The addresses that can be given out, beginning at a place that follows from `start`. The
    /// lowest ones come last: they are left to those who ask for an address of their choice.
    pub(crate) fn addresses_from(self, start: u32) -> impl Iterator<Item = Ipv4Addr> {
        let std::ops::Range { start: first, end } = self.numbers();
        let size = end - first;
        let middle = first + (size / 16).clamp(16, 256).min(size - 1);
        let start = middle + start % (end - middle);
        (start..end).chain(middle..start).chain(first..middle).map(Ipv4Addr::from)
    }

    /// The first address that can be given out.
    #[must_use]
    pub fn first(self) -> Ipv4Addr {
        self.numbers().start.into()
    }

    /// Whether the address is one that can be given out.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        self.numbers().contains(&u32::from(address))
    }

    fn numbers(self) -> std::ops::Range<u32> {
        let size = 1_u32 << (32 - u32::from(self.prefix.clamp(1, 30)));
        let base = u32::from(self.base) & !(size - 1);
        base + 1..base + size - 1
    }
}

/// As a `ServiceCIDR` names it: `127.96.0.0/16`.
impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl ServerConfig {
    /// The defaults, in that environment.
    #[must_use]
    pub fn new(env: Env) -> Self {
        Self {
            env,
            history: Limits::default().changes,
            history_bytes: Limits::default().bytes,
            compaction: Duration::from_secs(300),
            service_account_admission: false,
            mount_tokens: true,
            service_range: AddressRange { base: Ipv4Addr::new(127, 96, 0, 0), prefix: 16 },
            with_controllers: false,
            signing_key: None,
        }
    }
}

impl ServerConfig {
    fn limits(&self) -> Limits {
        Limits { changes: self.history.max(1), bytes: self.history_bytes }
    }
}

/// What all clones of a server share.
pub(crate) struct Shared {
    pub(crate) registry: Arc<Registry>,
    /// The OpenAPI documents and the version of the catalogue they were rendered from.
    documents: Mutex<(u64, Arc<Documents>)>,
    connector: RwLock<Option<Arc<dyn NodeConnector>>>,
    identity: RwLock<Option<Arc<Identity>>>,
    pub(crate) metrics: Arc<Metrics>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Shared {
    /// The OpenAPI documents of everything served right now.
    pub(crate) fn documents(&self) -> Arc<Documents> {
        let catalogue = self.registry.catalogue();
        let mut known = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != catalogue.version() {
            let mut documents = Documents::builtin().clone();
            let mut versions: BTreeMap<String, Vec<Arc<Kind>>> = BTreeMap::new();
            for kind in catalogue.all().iter().filter(|kind| kind.custom.is_some()) {
                versions.entry(kind.api_version()).or_default().push(kind.clone());
            }
            for (version, kinds) in versions {
                let document = Document::render(&custom_document(&kinds));
                documents.insert(format!("apis/{version}"), document);
            }
            let documents = documents.made_at(self.registry.env.now());
            *known = (catalogue.version(), Arc::new(documents));
        }
        known.1.clone()
    }

    /// The way to the agents of nodes, if there is one.
    pub(crate) fn node_connector(&self) -> Option<Arc<dyn NodeConnector>> {
        self.connector.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Who the server is to those outside, once it serves them.
    pub(crate) fn identity(&self) -> Option<Arc<Identity>> {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where clients reach the server, as discovery tells them; in-process there is no port.
    pub(crate) fn address(&self) -> String {
        let served = self.registry.address().map(reached_at);
        served.map_or_else(|| "127.0.0.1".to_owned(), |address| address.to_string())
    }
}

/// The Kubernetes API over a store; clones are the same server.
#[derive(Debug, Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// A server that keeps everything in memory. It is ready at once, with the objects every
    /// cluster begins with.
    #[must_use]
    pub fn new(config: ServerConfig) -> Self {
        let store = Store::new(config.limits());
        Self::over(config, store)
    }

    /// A server that keeps everything in `directory`: it begins with what is there, and no write is
    /// acknowledged or seen by anybody before it is durable.
    ///
    /// # Errors
    /// [`StorageError`] when what is there cannot be read, or is not what was written.
    pub async fn open(
        mut config: ServerConfig,
        directory: &DataDirectory,
    ) -> Result<Self, StorageError> {
        if config.signing_key.is_none() {
            config.signing_key = Some(Arc::new(SigningKey::kept(directory)?));
        }
        let log = Log::open(directory, LogOptions::default())?;
        let store = Store::open(config.limits(), log)?;
        let server = Self::over(config, store.clone());
        store.settle().await.map_err(|_| StorageError::Failed)?;
        Ok(server)
    }

    fn over(config: ServerConfig, store: Store) -> Self {
        let registry = Arc::new(Registry::new(config, store));
        registry.resume();
        crate::bootstrap::run(&registry);
        let documents = Mutex::new((0, Arc::default()));
        let shared = Shared {
            registry,
            documents,
            connector: RwLock::default(),
            identity: RwLock::default(),
            metrics: Arc::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The objects and kinds behind the API.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.shared.registry
    }

    /// Passes requests for logs, exec, attach, port-forward and node proxies to `connector` from
    /// now on; without one they are answered with 503.
    pub fn connect_nodes(&self, connector: Arc<dyn NodeConnector>) {
        let mut current = self.shared.connector.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(connector);
    }

    /// Is `identity` to those outside from now on.
    pub(crate) fn identify(&self, identity: Arc<Identity>) {
        let mut current = self.shared.identity.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(identity);
    }

    /// Calls admission webhooks through `connector` from now on; by default they are called over
    /// TLS where their configuration says.
    pub fn connect_webhooks(&self, connector: Arc<dyn WebhookConnector>) {
        self.shared.registry.connect_webhooks(connector);
    }

    /// Answers one request; a panic while doing so is a 500.
    pub async fn handle(&self, request: Request<Body>) -> Response<Body> {
        let answer = AssertUnwindSafe(front::handle(self.shared.clone(), request));
        match answer.catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                let words = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                tracing::error!(panic = %words, "a request panicked");
                front::answer::refusal(&Status::internal(
                    "This request caused apiserver to panic. Look in the logs for details.",
                ))
            }
        }
    }
}

impl<B> Service<Request<B>> for Server
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        async move { Ok(server.handle(request).await) }.boxed()
    }
}
