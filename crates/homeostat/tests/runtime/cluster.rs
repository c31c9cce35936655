//! The cluster a test runs on: the embedded API on virtual time, or, when
//! `HOMEOSTAT_TEST_KUBECONFIG` names one, a real cluster on the wall clock.

use std::sync::Arc;
use std::time::Duration;

use homeostat::journal::{Journal, Record};
use homeostat::kube::Client;
use homeostat::kube::api::{Api, Patch, PatchParams, PostParams};
use homeostat::kube::config::{KubeConfigOptions, Kubeconfig};
use homeostat::{Controller, Env, Manager, Object, Running};
use homeostat_apiserver::{Server, ServerConfig};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use serde_json::{Value, json};

const KUBECONFIG: &str = "HOMEOSTAT_TEST_KUBECONFIG";

/// One test's part of a cluster: a namespace of its own.
pub struct Cluster {
    pub client: Client,
    pub env: Env,
    pub namespace: String,
    pub is_virtual: bool,
}

/// Runs a test on a cluster; on virtual time unless the cluster is a real one.
pub fn on_cluster<F: AsyncFnOnce(Cluster)>(test: F) {
    let kubeconfig = std::env::var_os(KUBECONFIG);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(kubeconfig.is_none()).build().unwrap();
    runtime.block_on(async {
        let (client, env) = match &kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path).unwrap();
                let options = KubeConfigOptions::default();
                let config = homeostat::kube::Config::from_custom_kubeconfig(file, &options);
                (Client::try_from(config.await.unwrap()).unwrap(), Env::system())
            }
            None => {
                let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
                let server = Server::new(ServerConfig::new(env.clone()));
                (Client::new(server, "default"), env)
            }
        };
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let wish = object::<Namespace>(json!({ "metadata": { "generateName": "runtime-" } }));
        let made = namespaces.create(&PostParams::default(), &wish).await.unwrap();
        let namespace = made.metadata.name.unwrap();
        test(Cluster { client, env, namespace, is_virtual: kubeconfig.is_none() }).await;
    });
}

/// An object from JSON.
pub fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A config map with one value.
pub fn config(name: &str, value: &str) -> ConfigMap {
    object(json!({ "metadata": { "name": name }, "data": { "value": value } }))
}

/// A secret with one value.
pub fn secret(name: &str, value: &str) -> Secret {
    object(json!({ "metadata": { "name": name }, "stringData": { "value": value } }))
}

impl Cluster {
    pub fn api<T: Object + homeostat::kube::Resource<Scope = NamespaceResourceScope>>(
        &self,
    ) -> Api<T> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create<T>(&self, object: &T) -> T
    where
        T: Object + homeostat::kube::Resource<Scope = NamespaceResourceScope>,
    {
        self.api().create(&PostParams::default(), object).await.unwrap()
    }

    pub async fn patch<T>(&self, name: &str, patch: Value) -> T
    where
        T: Object + homeostat::kube::Resource<Scope = NamespaceResourceScope>,
    {
        let patch = Patch::Merge(patch);
        self.api().patch(name, &PatchParams::default(), &patch).await.unwrap()
    }

    /// Starts one controller that sees only this test's namespace.
    pub async fn start<K: Object>(&self, controller: Controller<K>) -> Running {
        let controller = controller.namespace(&self.namespace);
        self.manager().with(controller).start().await.unwrap()
    }

    pub fn manager(&self) -> Manager {
        Manager::new(self.client.clone(), self.env.clone())
    }

    /// Waits until `done` accepts the journal's records and returns them.
    pub async fn until(
        &self,
        journal: &Journal,
        done: impl Fn(&[Arc<Record>]) -> bool,
    ) -> Vec<Arc<Record>> {
        let mut feed = journal.subscribe();
        let wait = async {
            loop {
                let records = journal.records();
                if done(&records) {
                    return records;
                }
                let _ = feed.recv().await;
            }
        };
        let limit = Duration::from_secs(if self.is_virtual { 24 * 3600 } else { 60 });
        let Ok(records) = self.env.timeout(limit, wait).await else {
            panic!("it did not happen; the journal:\n{journal}");
        };
        records
    }

    /// Waits for so many records.
    pub async fn runs(&self, journal: &Journal, count: usize) -> Vec<Arc<Record>> {
        self.until(journal, |records| records.len() >= count).await
    }

    /// Gives everything time to happen that should not happen.
    pub async fn nothing_more(&self) {
        let long = if self.is_virtual { 7200 } else { 3 };
        self.env.sleep(Duration::from_secs(long)).await;
    }

    /// Gives the background time to write what it has.
    pub async fn nothing_more_at_once(&self) {
        self.env.sleep(Duration::from_secs(2)).await;
    }

    /// Asserts that two times are so far apart; on the wall clock, roughly.
    pub fn assert_apart(&self, earlier: Timestamp, later: Timestamp, expected: Duration) {
        let actual = Duration::try_from(later.duration_since(earlier)).unwrap();
        let slack = Duration::from_millis(if self.is_virtual { 2 } else { 1500 });
        let fits = actual + Duration::from_millis(2) >= expected && actual <= expected + slack;
        assert!(fits, "{actual:?} instead of {expected:?}");
    }
}

/// How the records ended, in words.
pub fn endings(records: &[Arc<Record>]) -> Vec<String> {
    records.iter().map(|record| record.result.to_string()).collect()
}

/// Why the records ran, in words.
pub fn triggers(record: &Record) -> String {
    record.triggers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
