//! The same controller as the other sides of the benchmark, on kube-runtime: every Pod is
//! reconciled, nothing is done.
//!
//! What it says and hears is described in bench/src/runtime/peer.rs. With `stripped` as last
//! argument managed fields are dropped before they are cached, by the unstable stream interface.

use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Config as Workers, Controller};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config, ResourceExt};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::Notify;

const SENT: &str = "bench.homeostat.dev/sent";

/// Counts reconciles and collects how long events took, in nanoseconds.
#[derive(Default)]
struct Seen {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    count: usize,
    watching: bool,
    latencies: Vec<u128>,
}

impl Seen {
    fn reconciled(&self, pod: &Pod) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let mut inner = self.inner.lock().unwrap();
        inner.count += 1;
        let sent = pod.annotations().get(SENT).and_then(|sent| sent.parse::<u128>().ok());
        if let Some(sent) = sent.filter(|_| inner.watching) {
            inner.latencies.push(now.saturating_sub(sent));
        }
        drop(inner);
        self.changed.notify_one();
    }

    async fn wait(&self, enough: impl Fn(&Inner) -> bool) {
        while !enough(&self.inner.lock().unwrap()) {
            self.changed.notified().await;
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, pods, rest @ ..] = &arguments[..] else {
        return Err("usage: bench-peer-kube-rs KUBECONFIG PODS [stripped]".into());
    };
    let (pods, stripped) = (pods.parse::<usize>()?, rest == ["stripped"]);
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let client = Client::try_from(config)?;

    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    println!("begin");
    commands.next_line().await?;
    let seen = Arc::<Seen>::default();
    tokio::spawn(run(client, seen.clone(), stripped));
    seen.wait(|inner| inner.count >= pods).await;
    println!("all");
    commands.next_line().await?;
    seen.inner.lock().unwrap().watching = true;
    println!("settled");
    let events: usize = commands.next_line().await?.unwrap_or_default().parse()?;
    seen.wait(|inner| inner.latencies.len() >= events).await;
    for latency in &seen.inner.lock().unwrap().latencies {
        println!("{latency}");
    }
    std::process::exit(0);
}

async fn run(client: Client, seen: Arc<Seen>, stripped: bool) {
    let pods: Api<Pod> = Api::all(client);
    let controller = if stripped {
        let (reader, writer) = reflector::store();
        let stream = watcher(pods, watcher::Config::default().streaming_lists())
            .default_backoff()
            .modify(|pod: &mut Pod| pod.managed_fields_mut().clear())
            .reflect(writer)
            .applied_objects();
        Controller::for_stream(stream, reader)
    } else {
        Controller::new(pods, watcher::Config::default())
    };
    controller
        .with_config(Workers::default().concurrency(10))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), seen)
        .for_each(|_| ready(()))
        .await;
}

async fn reconcile(pod: Arc<Pod>, seen: Arc<Seen>) -> Result<Action, Infallible> {
    seen.reconciled(&pod);
    Ok(Action::await_change())
}
