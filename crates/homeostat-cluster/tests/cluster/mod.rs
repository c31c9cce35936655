//! The cluster a test runs on: the embedded API on virtual time, or, when
//! `HOMEOSTAT_TEST_KUBECONFIG` names one, a real API on the wall clock. Both get this crate's
//! controllers and a node on which Pods only pretend to run.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Arc;
use std::time::Duration;

use homeostat::cache::Scope;
use homeostat::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use homeostat::kube::config::{KubeConfigOptions, Kubeconfig};
use homeostat::kube::{Client, Resource, ResourceExt};
use homeostat::{Context, Controller, Env, Kind, Manager, Object, Outcome, Result};
use homeostat_apiserver::{Server, ServerConfig};
use homeostat_cluster::{Cluster, ClusterConfig};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use serde_json::{Value, json};
use tokio::sync::Notify;

const KUBECONFIG: &str = "HOMEOSTAT_TEST_KUBECONFIG";
const NODE: &str = "pretended";

/// One test's part of a cluster: a namespace of its own.
pub struct World {
    pub client: Client,
    pub env: Env,
    pub namespace: String,
    pub is_virtual: bool,
    pub volumes: tempfile::TempDir,
    cluster: Cluster,
}

/// Runs a test on a started cluster.
pub fn on_cluster<F: AsyncFnOnce(&World)>(test: F) {
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
                let env = Env::simulated(1, "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
                let server = Server::new(ServerConfig::new(env.clone()));
                (Client::new(server, "default"), env)
            }
        };
        let volumes = tempfile::tempdir().unwrap();
        let config = ClusterConfig { root_ca: "CA".into(), volumes: volumes.path().into() };
        let manager = Manager::new(client.clone(), env.clone())
            .with(Controller::new(pretend).named("pretended-node"));
        let cluster = Cluster::start(manager, &config).await.unwrap();
        let nodes: Api<Node> = Api::all(client.clone());
        let _ = nodes
            .create(&PostParams::default(), &object(json!({"metadata": {"name": NODE}})))
            .await;
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        nodes.patch_status(NODE, &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let wish = object::<Namespace>(json!({ "metadata": { "generateName": "cluster-" } }));
        let made = namespaces.create(&PostParams::default(), &wish).await.unwrap();
        let namespace = made.metadata.name.unwrap();
        let is_virtual = kubeconfig.is_none();
        let world = World { client, env, namespace, is_virtual, volumes, cluster };
        test(&world).await;
        world.cluster.stop().await.unwrap();
    });
}

/// The node: Pods assigned to it run and are ready at once. A container whose image is `succeeds`
/// or `fails` ends at once, one of `starts` never gets ready.
async fn pretend(pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Outcome> {
    let Some(spec) = pod.spec.as_ref().filter(|s| s.node_name.is_some()) else {
        return Ok(Outcome::Done);
    };
    if pod.metadata.deletion_timestamp.is_some() {
        ctx.delete_with(pod.as_ref(), &DeleteParams::default().grace_period(0)).await?;
        return Ok(Outcome::Done);
    }
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(ctx.now());
    let image = spec.containers[0].image.clone().unwrap_or_default();
    let (phase, ready, state) = match image.as_str() {
        "succeeds" => {
            ("Succeeded", "False", json!({"terminated": {"exitCode": 0, "finishedAt": now}}))
        }
        "fails" => ("Failed", "False", json!({"terminated": {"exitCode": 1, "finishedAt": now}})),
        "starts" => ("Running", "False", json!({"running": {}})),
        _ => ("Running", "True", json!({"running": {}})),
    };
    if pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some(phase) {
        return Ok(Outcome::Done);
    }
    let number = ctx.env().random_below(250) + 1;
    let status = json!({"status": {
        "phase": phase, "podIP": format!("10.9.9.{number}"),
        "podIPs": [{"ip": format!("10.9.9.{number}")}],
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now}],
        "containerStatuses": [{"name": spec.containers[0].name, "image": image, "imageID": "",
            "ready": ready == "True", "restartCount": 0, "state": state}],
    }});
    ctx.merge_patch_status::<Pod>(ctx.key(), &status).await?;
    Ok(Outcome::Done)
}

/// An object from JSON.
pub fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A Pod template with the label `app` and one container.
pub fn template(app: &str, image: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": image}], "terminationGracePeriodSeconds": 1}})
}

/// An owner reference to `owner` that blocks its deletion.
pub fn owner<T: Object>(owner: &T) -> Value {
    let mut reference = owner.owner_ref(&()).unwrap();
    reference.block_owner_deletion = Some(true);
    serde_json::to_value(vec![reference]).unwrap()
}

impl World {
    pub fn api<T: Object + Resource<Scope = NamespaceResourceScope>>(&self) -> Api<T> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create<T>(&self, value: Value) -> T
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().create(&PostParams::default(), &object(value)).await.unwrap()
    }

    pub async fn patch<T>(&self, name: &str, patch: Value) -> T
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let patch = Patch::Merge(patch);
        self.api().patch(name, &PatchParams::default(), &patch).await.unwrap()
    }

    pub async fn list<T>(&self, labels: &str) -> Vec<T>
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().list(&ListParams::default().labels(labels)).await.unwrap().items
    }

    pub async fn get<T>(&self, name: &str) -> Option<T>
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().get_opt(name).await.unwrap()
    }

    /// Waits until `done` holds for the objects of a kind in the test's namespace; looks again
    /// after every change.
    pub async fn until<T>(&self, what: &str, done: impl Fn(&[T]) -> bool) -> Vec<T>
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let informer = self
            .cluster
            .running()
            .caches()
            .informer(Kind::of::<T>(), Scope::namespace(&self.namespace));
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        informer.on_event(move |_| notify.notify_one());
        informer.start();
        let wait = async {
            loop {
                let items = self.list::<T>("").await;
                if done(&items) {
                    return items;
                }
                changed.notified().await;
            }
        };
        let limit = Duration::from_secs(if self.is_virtual { 24 * 3600 } else { 60 });
        let Ok(items) = self.env.timeout(limit, wait).await else {
            let items = serde_json::to_string_pretty(&self.list::<T>("").await).unwrap();
            panic!("{what} did not happen; there is {items}\n{}", self.cluster.journal());
        };
        items
    }

    /// Waits until one object is as wanted.
    pub async fn until_one<T>(&self, name: &str, what: &str, done: impl Fn(&T) -> bool) -> T
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let is_it = |object: &&T| object.meta().name.as_deref() == Some(name) && done(object);
        let found = self.until::<T>(what, |all| all.iter().any(|object| is_it(&object))).await;
        found.into_iter().find(|object| is_it(&object)).unwrap()
    }

    /// Waits until nothing of a kind with this name is left.
    pub async fn until_gone<T>(&self, name: &str)
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let gone = |all: &[T]| all.iter().all(|object| object.name_any() != name);
        self.until::<T>(&format!("the end of {name}"), gone).await;
    }

    /// Gives everything time to happen that should not happen.
    pub async fn nothing_more(&self) {
        let long = if self.is_virtual { 7200 } else { 3 };
        self.env.sleep(Duration::from_secs(long)).await;
    }
}
