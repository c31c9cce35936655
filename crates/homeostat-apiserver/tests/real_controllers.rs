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
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
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

    /// The lines of its log that say that something could not be listed or watched.
    fn complaints(&self) -> Vec<String> {
        let log = read_to_string(&self.log).unwrap();
        let bad = |line: &&str| {
            ["Failed to watch", "failed to list", "timed out waiting for", "panic"]
                .iter()
                .any(|words| line.contains(words))
        };
        log.lines().filter(bad).map(str::to_owned).collect()
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
    nodes.create(&PostParams::default(), &object(node)).await.unwrap();
    // A new Node is tainted until the controller that is left out below has seen it ready.
    let ready = Patch::Merge(json!({"spec": {"taints": null}}));
    nodes.patch("one", &PatchParams::default(), &ready).await.unwrap();

    let shared = [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    let own = [
        "--use-service-account-credentials=false".to_owned(),
        // Nobody renews the Node's lease: it would soon be unreachable.
        "--controllers=*,-node-lifecycle-controller".to_owned(),
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
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    serving.abort();
}
