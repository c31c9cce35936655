//! The cluster a test runs on, and what a test does there.

use std::ffi::OsString;
use std::sync::Mutex;

use homeostat::journal::Journal;
use homeostat::{AnyObject, Controller, Env, Manager, Object, Running};
use homeostat_apiserver::{Server, ServerConfig};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Resource};
use serde_json::{Value, json};

use crate::object::{IntoObject, object};
use crate::writes::Writes;

/// The environment variable that names the kubeconfig of a real cluster.
pub const KUBECONFIG: &str = "HOMEOSTAT_TEST_KUBECONFIG";

/// One test's part of a cluster: a namespace of its own.
pub struct TestCluster {
    /// Speaks to the API; everything it sends that may change something is in `writes`.
    pub client: Client,
    /// The test's clock and randomness: simulated, or the system's on a real cluster.
    pub env: Env,
    /// The namespace nobody else uses.
    pub namespace: String,
    /// Whether time is virtual: waiting costs nothing, and hours may pass.
    pub is_virtual: bool,
    /// What `client` and everything that shares it has written.
    pub writes: Writes,
    pub(crate) journal: Mutex<Option<Journal>>,
}

impl std::fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCluster").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// Runs a test on a cluster: the embedded API on virtual time with one seed, or the real cluster
/// that [`KUBECONFIG`] names.
///
/// # Panics
/// As the test does, or when the cluster cannot be used.
pub fn on_cluster<F: AsyncFnOnce(TestCluster)>(test: F) {
    let kubeconfig = std::env::var_os(KUBECONFIG);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(kubeconfig.is_none()).build().unwrap();
    runtime.block_on(async {
        let cluster = match kubeconfig {
            Some(path) => {
                let env = Env::system();
                TestCluster::new(&real(path, &env).await, env, false).await
            }
            None => TestCluster::embedded(1).await,
        };
        test(cluster).await;
    });
}

/// Runs a test on several threads, as programs do, and so on the wall clock: on the embedded API, or the
/// real cluster that [`KUBECONFIG`] names.
///
/// # Panics
/// As the test does, or when the cluster cannot be used.
pub fn on_threads<F: AsyncFnOnce(TestCluster)>(test: F) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let env = Env::system();
        let client = match std::env::var_os(KUBECONFIG) {
            Some(path) => real(path, &env).await,
            None => Client::new(Server::new(ServerConfig::new(env.clone())), "default"),
        };
        test(TestCluster::new(&client, env, false).await).await;
    });
}

/// The cluster that a kubeconfig names.
async fn real(path: OsString, env: &Env) -> Client {
    let (file, options) = (Kubeconfig::read_from(path), KubeConfigOptions::default());
    let config = Config::from_custom_kubeconfig(file.unwrap(), &options).await;
    homeostat::client::connect(&config.unwrap(), env.clone()).unwrap()
}

/// The same client, with its writes noted on the way.
fn noting(client: &Client, writes: &Writes) -> Client {
    let (inner, writes) = (client.clone(), writes.clone());
    let service = tower::service_fn(move |request: http::Request<Body>| {
        writes.note(&request);
        let client = inner.clone();
        async move { client.send(request).await }
    });
    Client::new(service, client.default_namespace())
}

impl TestCluster {
    /// A new embedded API with everything random drawn from `seed`. Its clock begins with the year
    /// 2026 and is tokio's: paused, time passes only while everybody waits.
    pub async fn embedded(seed: u64) -> Self {
        let env = Env::simulated(seed, "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
        let server = Server::new(ServerConfig::new(env.clone()));
        Self::new(&Client::new(server, "default"), env, true).await
    }

    async fn new(client: &Client, env: Env, is_virtual: bool) -> Self {
        let writes = Writes::default();
        let client = noting(client, &writes);
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let wish = object::<Namespace>(json!({ "metadata": { "generateName": "test-" } }));
        let made = namespaces.create(&PostParams::default(), &wish).await.unwrap();
        let namespace = made.metadata.name.unwrap();
        Self { client, env, namespace, is_virtual, writes, journal: Mutex::default() }
    }

    /// The objects of a kind in the test's namespace.
    pub fn api<T>(&self) -> Api<T>
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates an object, or one from JSON: `create::<Pod>(json!(…))`.
    pub async fn create<T>(&self, object: impl IntoObject<T>) -> T
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().create(&PostParams::default(), &object.into_object()).await.unwrap()
    }

    /// Changes an object by a merge patch.
    pub async fn patch<T>(&self, name: &str, patch: Value) -> T
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// The object of that name, if it is there.
    pub async fn get<T>(&self, name: &str) -> Option<T>
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().get_opt(name).await.unwrap()
    }

    /// The objects with these labels; all with an empty selector.
    pub async fn list<T>(&self, labels: &str) -> Vec<T>
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().list(&ListParams::default().labels(labels)).await.unwrap().items
    }

    /// A manager on the test's client and clock.
    pub fn manager(&self) -> Manager {
        Manager::new(self.client.clone(), self.env.clone())
    }

    /// Starts one controller that sees only this test's namespace.
    pub async fn start<K: AnyObject>(&self, controller: Controller<K>) -> Running {
        self.start_manager(self.manager().with(controller.namespace(&self.namespace))).await
    }

    /// Starts a manager; its journal is shown when something that is waited for does not happen.
    pub async fn start_manager(&self, manager: Manager) -> Running {
        let running = manager.start().await.unwrap();
        self.show_on_failure(running.journal());
        running
    }

    pub(crate) fn show_on_failure(&self, journal: Journal) {
        *self.journal.lock().unwrap() = Some(journal);
    }
}
