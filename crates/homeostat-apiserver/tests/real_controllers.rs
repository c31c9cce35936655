//! The real kube-controller-manager and kube-scheduler at work on this server: the strictest
//! clients there are. They list and watch every kind, with protobuf, metadata and bookmarks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![expect(clippy::disallowed_methods, reason = "it waits for other processes, in real time")]

use std::collections::BTreeMap;
use std::fs::{File, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::StreamExt as _;
use homeostat_apiserver::{Identity, Server, ServerConfig};
use homeostat_env::Env;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ResourceQuota, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A folder with the two programs.
const PROGRAMS: &str = "HOMEOSTAT_ORACLE_PROGRAMS";
/// Set when every judge is there.
const JUDGES: &str = "HOMEOSTAT_JUDGES";
/// Nothing takes this long on an idle machine; a busy one is slower.
const PATIENCE: Duration = Duration::from_secs(180);

/// A program that ends with this value.
struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    fn start(programs: &Path, name: &str, folder: &Path, arguments: &[String]) -> Self {
        let log = folder.join(format!("{name}.log"));
        let child = Command::new(programs.join(name))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// The errors in its log, and whatever says that something could not be listed or watched.
    fn complaints(&self) -> Vec<String> {
        let log = read_to_string(&self.log).unwrap();
        let complains = |line: &&str| {
            let plain = ["Failed to watch", "failed to list", "timed out waiting for", "panic"];
            is_error(line) || plain.iter().any(|words| line.contains(words))
        };
        let expected = |line: &&str| EXPECTED.iter().any(|(words, _)| line.contains(words));
        let bad = log.lines().filter(complains).filter(|line| !expected(line));
        bad.map(str::to_owned).collect()
    }
}

/// Errors that say nothing about the API: reviewed, with the reason.
const EXPECTED: &[(&str, &str)] = &[
    ("The manifest file is empty, ignoring.", "it is about their own options"),
    (
        "is not as new as written version",
        "a controller saw an object before its own last write to it, and comes back for it later",
    ),
];

/// Whether a line of a log is an error: `E1118 01:02:03.000000 …`.
fn is_error(line: &str) -> bool {
    let mut letters = line.bytes();
    letters.next() == Some(b'E') && letters.take(4).filter(u8::is_ascii_digit).count() == 4
}

#[test]
fn an_error_is_told_from_other_lines() {
    assert!(is_error("E1118 01:02:03.456789       1 reflector.go:1] \"Failed\" err=\"no\""));
    for line in ["W1118 01:02:03", "I1118 01:02:03", "Error: no", "E11", ""] {
        assert!(!is_error(line), "{line}");
    }
}

impl Program {
    /// Whether every controller's informers, and those of whoever collects garbage, have everything.
    fn has_synced(&self) -> bool {
        let log = read_to_string(&self.log).unwrap();
        let count = |words: &str| log.lines().filter(|line| line.contains(words)).count();
        let waited = count("\"Waiting for caches to sync\"");
        waited > 20
            && count("\"Caches are synced\"") == waited
            && log.contains("all resource monitors have synced")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Waits until every Pod of the namespace is `wanted` in number and has a node.
async fn bound(client: &Client, wanted: usize) -> Result<Vec<Pod>, String> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut seen = String::new();
    let waiting = async {
        let mut list = BTreeMap::new();
        // From the beginning: what is there already comes as added.
        let mut events = pods.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        while let Some(event) = events.next().await {
            match event.unwrap() {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                    list.insert(pod.name_any(), pod);
                }
                WatchEvent::Deleted(pod) => drop(list.remove(&pod.name_any())),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => panic!("{status:?}"),
            }
            let on_node =
                |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            let bound = list.values().filter(on_node).count();
            if list.len() == wanted && bound == wanted {
                return list.into_values().collect();
            }
            seen = format!("{} Pods, {bound} bound", list.len());
        }
        panic!("the watch of Pods ended before the patience did");
    };
    tokio::time::timeout(PATIENCE, waiting).await.map_err(|_| seen)
}

/// Waits until it is so.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// What the controllers do besides: addresses of a Service, the use of a quota, the end of a namespace,
/// and of what belonged to a Deployment.
async fn work(client: &Client) {
    let post = PostParams::default();
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    services.create(&post, &object(service)).await.unwrap();
    let quotas: Api<ResourceQuota> = Api::default_namespaced(client.clone());
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "10"}}});
    quotas.create(&post, &object(quota)).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&post, &object(json!({"metadata": {"name": "going"}}))).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "going");
    eventually("the certificates of the cluster in a new namespace", async || {
        maps.get_opt("kube-root-ca.crt").await.unwrap().is_some()
    })
    .await;
    namespaces.delete("going", &DeleteParams::default()).await.unwrap();

    let slices: Api<EndpointSlice> = Api::default_namespaced(client.clone());
    eventually("a slice for the Service", async || {
        let all =
            slices.list(&ListParams::default().labels("kubernetes.io/service-name=web")).await;
        !all.unwrap().items.is_empty()
    })
    .await;
    eventually("the use of the quota", async || {
        let status = quotas.get("few").await.unwrap().status.unwrap_or_default();
        status.used.is_some_and(|used| used.get("pods").is_some_and(|pods| pods.0 == "3"))
    })
    .await;
    eventually("the end of the namespace", async || {
        namespaces.get_opt("going").await.unwrap().is_none()
    })
    .await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.delete("web", &DeleteParams::background()).await.unwrap();
    let sets: Api<ReplicaSet> = Api::default_namespaced(client.clone());
    eventually("the end of the ReplicaSet", async || {
        sets.list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
}

/// Renews the Node's lease as its agent would: without that it would soon be unreachable.
async fn keep_alive(client: Client, env: Env) {
    let leases: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    let mut renewed = json!({
        "metadata": {"name": "one"},
        "spec": {"holderIdentity": "one", "leaseDurationSeconds": 40, "renewTime": null},
    });
    loop {
        let now = env.now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        renewed["spec"]["renewTime"] = now.into();
        if leases.get_opt("one").await.unwrap().is_some() {
            let (by, patch) = (PatchParams::default(), Patch::Merge(&renewed));
            leases.patch("one", &by, &patch).await.unwrap();
        } else {
            leases.create(&PostParams::default(), &object(renewed.clone())).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_controllers_and_scheduler_make_a_deployment_into_bound_pods() {
    let Some(programs) = std::env::var_os(PROGRAMS).map(PathBuf::from) else {
        assert!(std::env::var_os(JUDGES).is_none(), "{PROGRAMS} is not set");
        eprintln!("NOT RUN: the real controllers on this server; {PROGRAMS} names no folder");
        return;
    };
    let env = Env::system();
    let mut config = ServerConfig::new(env.clone());
    config.service_account_admission = true;
    let server = Server::new(config);
    let client = Client::new(server.clone(), "default");
    let identity = Identity::generate(&env, &[]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, identity.access().kubeconfig(&url)).unwrap();
    let serving = tokio::spawn(async move { server.serve_tls(listener, identity).await });

    let nodes: Api<Node> = Api::all(client.clone());
    let resources = json!({"cpu": "8", "memory": "8Gi", "pods": "110"});
    let node = json!({
        "metadata": {"name": "one"},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    // A new Node is tainted until the controller of its life has seen it ready.
    nodes.create(&PostParams::default(), &object(node)).await.unwrap();
    let alive = tokio::spawn(keep_alive(client.clone(), env));

    let shared = [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=true".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    let own = [
        // Each controller has an account, a token and a role of its own.
        "--use-service-account-credentials=true".to_owned(),
        "--controllers=*".to_owned(),
        // It makes this folder when it is missing: here, not in the system.
        format!("--flex-volume-plugin-dir={}", folder.path().join("plugins").display()),
    ];
    let manager = [shared.as_slice(), own.as_slice()].concat();
    let manager = Program::start(&programs, "kube-controller-manager", folder.path(), &manager);
    let scheduler = Program::start(&programs, "kube-scheduler", folder.path(), &shared);

    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let labels = json!({"app": "web"});
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    });
    deployments.create(&PostParams::default(), &object(deployment)).await.unwrap();

    let pods = bound(&client, 3).await;
    let complaints = [manager.complaints(), scheduler.complaints()].concat();
    let pods = pods.unwrap_or_else(|seen| panic!("{seen}\n{}", complaints.join("\n")));
    assert!(pods.iter().all(|pod| pod.owner_references()[0].kind == "ReplicaSet"));

    work(&client).await;
    for lease in ["kube-controller-manager", "kube-scheduler"] {
        let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
        let held = leases.get(lease).await.unwrap().spec.unwrap().holder_identity;
        assert!(held.is_some_and(|holder| !holder.is_empty()), "{lease}");
    }
    eventually("all informers", async || manager.has_synced()).await;
    let complaints = [manager.complaints(), scheduler.complaints()].concat();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    alive.abort();
    serving.abort();
}
