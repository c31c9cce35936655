//! Where a scenario runs: on the embedded API, then on kube-apiserver, with controllers, operators
//! and a namespace of its own each time.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::TryStreamExt as _;
use homeostat::k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use homeostat::{Controller, Env, Kind, Manager};
use homeostat_apiserver::{Server, ServerConfig};
use homeostat_cluster::{Cluster, ClusterConfig};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, PostParams, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::compared::{Objects, comparable, differences};
use crate::kinds::{KindOf, LOGICAL_DATABASE, POD};

/// A cluster has one set of controllers: one test at a time is on kube-apiserver.
static ONE_SET_OF_CONTROLLERS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a scenario on both, and compares what it left.
pub(crate) async fn on_both(scenario: impl AsyncFn(Empty) -> Objects) -> Objects {
    let env = Env::system();
    let mut config = ServerConfig::new(env.clone());
    config.service_account_admission = true;
    config.with_controllers = true;
    let embedded = Client::new(Server::new(config), "default");
    let ours = scenario(Empty { client: embedded, env: env.clone() }).await;
    let Some(path) = std::env::var_os("HOMEOSTAT_ORACLE_KUBECONFIG") else {
        assert!(std::env::var_os("HOMEOSTAT_JUDGES").is_none(), "no kube-apiserver is named");
        println!("NOT RUN on kube-apiserver: HOMEOSTAT_ORACLE_KUBECONFIG is not set");
        return ours;
    };
    let _alone = ONE_SET_OF_CONTROLLERS.lock().await;
    let file = Kubeconfig::read_from(path).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let theirs = scenario(Empty { client: Client::try_from(config).unwrap(), env }).await;
    let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    let differences = differences(&ours, &theirs);
    assert!(differences.is_empty(), "path, ours, kube-apiserver's:\n{differences}");
    ours
}

/// An API without controllers.
pub(crate) struct Empty {
    client: Client,
    env: Env,
}

impl Empty {
    /// With the cluster's controllers and the operators.
    pub(crate) async fn start(self) -> Place {
        let manager = Manager::new(self.client.clone(), self.env.clone());
        self.run(manager).await
    }

    /// And with one that runs Pods.
    pub(crate) async fn with(self, node: Controller<Pod>) -> Place {
        let manager = Manager::new(self.client.clone(), self.env.clone()).with(node);
        self.run(manager).await
    }

    async fn run(self, manager: Manager) -> Place {
        let volumes = tempfile::tempdir().unwrap();
        let path = volumes.path().to_owned();
        let config = ClusterConfig { volumes: path, ..ClusterConfig::default() };
        let manager = manager
            .with_crd::<operator_at::At>()
            .with_crd::<operator_webapp::WebApp>()
            .with_crd::<operator_database::Database>()
            .with_crd::<operator_logical_database::LogicalDatabase>()
            .with(operator_at::controller())
            .with(operator_webapp::controller())
            .with(operator_database::controller())
            .with(operator_logical_database::controller());
        let cluster = Cluster::start(manager, &config).await.unwrap();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let wish = json!({ "metadata": { "generateName": "same-" } });
        let wish: Namespace = serde_json::from_value(wish).unwrap();
        let namespace = namespaces.create(&PostParams::default(), &wish).await.unwrap().name_any();
        Place { client: self.client, env: self.env, namespace, cluster, _volumes: volumes }
    }
}

/// A namespace of an API with controllers and operators.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) env: Env,
    pub(crate) namespace: String,
    cluster: Cluster,
    _volumes: TempDir,
}

impl Place {
    fn api(&self, (group, version, kind, plural): KindOf) -> Api<DynamicObject> {
        let resource = Kind::new(group, version, kind, plural, true).api_resource();
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) async fn create(&self, kind: KindOf, name: &str, spec: Value) {
        let version = format!("{}/{}", kind.0, kind.1);
        let wish = json!({ "apiVersion": version, "kind": kind.2, "metadata": { "name": name }, "spec": spec });
        let wish = serde_json::from_value(wish).unwrap();
        self.api(kind).create(&PostParams::default(), &wish).await.unwrap();
    }

    /// Waits until the objects of a kind are as wanted; looks again after every change.
    pub(crate) async fn until(
        &self,
        kind: KindOf,
        what: &str,
        done: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let objects = self.api(kind);
        let mut last = Vec::new();
        let wait = async {
            loop {
                let list = objects.list(&ListParams::default()).await.unwrap();
                let version = list.metadata.resource_version.unwrap_or_default();
                let values = list.items.iter().map(|item| serde_json::to_value(item).unwrap());
                last = values.collect();
                if done(&last) {
                    return;
                }
                let events = objects.watch(&WatchParams::default(), &version).await.unwrap();
                let mut events = std::pin::pin!(events);
                // A watch that ends without a word is begun anew.
                while let Ok(Some(event)) = events.try_next().await {
                    if !matches!(event, WatchEvent::Bookmark(_)) {
                        break;
                    }
                }
            }
        };
        let ended = self.env.timeout(PATIENCE, wait).await;
        assert!(ended.is_ok(), "{what} did not come; there is {last:#?}");
        last
    }

    pub(crate) async fn until_value(&self, kind: KindOf, name: &str, at: &str, value: &Value) {
        let is_so = |one: &Value| one["metadata"]["name"] == name && one.pointer(at) == Some(value);
        let what = format!("{} {name} with {at} = {value}", kind.2);
        self.until(kind, &what, |all| all.iter().any(is_so)).await;
    }

    /// Every object by kind and name, without what no two runs share.
    pub(crate) async fn snapshot(&self, kinds: &[KindOf]) -> Objects {
        let mut lists = BTreeMap::new();
        for kind in kinds {
            let list = self.api(*kind).list(&ListParams::default()).await.unwrap();
            lists.insert(*kind, list.items);
        }
        comparable(lists, &self.namespace)
    }

    /// Removes the LogicalDatabases, which need their server to go, then everything else and the
    /// node, and stops the controllers.
    pub(crate) async fn clear(self) {
        let everything = (DeleteParams::default(), ListParams::default());
        let logical = self.api(LOGICAL_DATABASE);
        logical.delete_collection(&everything.0, &everything.1).await.unwrap();
        self.until(LOGICAL_DATABASE, "the end of all", <[Value]>::is_empty).await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(&self.namespace, &DeleteParams::default()).await.unwrap();
        self.until(POD, "the end of all", <[Value]>::is_empty).await;
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.delete_collection(&everything.0, &everything.1).await.unwrap();
        self.cluster.stop().await.unwrap();
    }
}
