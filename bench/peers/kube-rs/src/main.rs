//! The same controller as the other sides of the benchmark, on kube-runtime: every Pod is
//! reconciled, nothing is done.
//!
//! What it says and hears is described in bench/src/runtime/peer.rs. With `stripped` managed fields
//! are dropped before they are cached, by the unstable stream interface; with a number ConfigMaps are
//! reconciled instead, and so many reconciles are kept unfinished.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Config as Workers, Controller};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::{Notify, oneshot};

const SENT: &str = "bench.homeostat.dev/sent";

/// Counts reconciles and notes when changes were reconciled.
#[derive(Default)]
struct Seen {
    /// So many reconciles are kept unfinished.
    in_flight: Option<usize>,
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    count: usize,
    watching: bool,
    /// Which change was reconciled, and when; nanoseconds since 1970, both.
    noted: Vec<(u128, u128)>,
    awaited: Option<Awaited>,
    unfinished: VecDeque<oneshot::Sender<()>>,
    /// Whether the oldest of them ends when one more begins.
    goes_on: bool,
}

/// What the main task waits for; it is woken only then.
#[derive(Clone, Copy)]
enum Awaited {
    Unfinished(usize),
    Reconciles(usize),
    Changes(usize),
}

impl Inner {
    fn is_reached(&self) -> bool {
        match self.awaited {
            Some(Awaited::Unfinished(count)) => self.unfinished.len() >= count,
            Some(Awaited::Reconciles(count)) => self.count >= count,
            Some(Awaited::Changes(count)) => self.noted.len() >= count,
            None => false,
        }
    }

    fn end_oldest(&mut self) {
        let _ = self.unfinished.pop_front().map(|end| end.send(()));
    }
}

impl Seen {
    fn reconciled(&self, object: &impl ResourceExt) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let mut inner = self.inner.lock().unwrap();
        inner.count += 1;
        let sent = object.annotations().get(SENT).and_then(|sent| sent.parse::<u128>().ok());
        if let Some(sent) = sent.filter(|_| inner.watching) {
            inner.noted.push((sent, now));
        }
        let reached = inner.is_reached();
        drop(inner);
        if reached {
            self.changed.notify_one();
        }
    }

    /// Ends when as many later reconciles have begun as are kept unfinished.
    fn hold(&self) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        let mut inner = self.inner.lock().unwrap();
        inner.unfinished.push_back(end);
        if inner.goes_on {
            inner.end_oldest();
        }
        let reached = inner.is_reached();
        drop(inner);
        if reached {
            self.changed.notify_one();
        }
        ended
    }

    async fn wait(&self, awaited: Awaited) {
        self.inner.lock().unwrap().awaited = Some(awaited);
        while !self.inner.lock().unwrap().is_reached() {
            self.changed.notified().await;
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, pods, rest @ ..] = &arguments[..] else {
        return Err("usage: bench-peer-kube-rs KUBECONFIG PODS [stripped] [IN_FLIGHT]".into());
    };
    let (pods, stripped) = (pods.parse::<usize>()?, rest.iter().any(|word| word == "stripped"));
    let in_flight = rest.iter().find_map(|word| word.parse().ok());
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let client = Client::try_from(config)?;

    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    println!("begin");
    commands.next_line().await?;
    let seen = Arc::new(Seen { in_flight, ..Seen::default() });
    if in_flight.is_some() {
        tokio::spawn(run::<ConfigMap>(client, seen.clone(), stripped));
    } else {
        tokio::spawn(run::<Pod>(client, seen.clone(), stripped));
    }
    if let Some(most) = in_flight {
        seen.wait(Awaited::Unfinished(most)).await;
        println!("full");
        commands.next_line().await?;
        let mut inner = seen.inner.lock().unwrap();
        inner.goes_on = true;
        inner.end_oldest();
    }
    seen.wait(Awaited::Reconciles(pods)).await;
    println!("all");
    commands.next_line().await?;
    seen.inner.lock().unwrap().watching = true;
    println!("settled");
    let events: usize = commands.next_line().await?.unwrap_or_default().parse()?;
    seen.wait(Awaited::Changes(events)).await;
    for (sent, reconciled) in &seen.inner.lock().unwrap().noted {
        println!("{sent} {reconciled}");
    }
    std::process::exit(0);
}

async fn run<K>(client: Client, seen: Arc<Seen>, stripped: bool)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let objects: Api<K> = Api::all(client);
    let controller = if stripped {
        let (reader, writer) = reflector::store();
        let stream = watcher(objects, watcher::Config::default().streaming_lists())
            .default_backoff()
            .modify(|object: &mut K| object.managed_fields_mut().clear())
            .reflect(writer)
            .applied_objects();
        Controller::for_stream(stream, reader)
    } else {
        Controller::new(objects, watcher::Config::default())
    };
    controller
        .with_config(Workers::default().concurrency(seen.in_flight.map_or(10, |most| most as u16)))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), seen)
        .for_each(|_| ready(()))
        .await;
}

async fn reconcile<K: ResourceExt>(object: Arc<K>, seen: Arc<Seen>) -> Result<Action, Infallible> {
    if seen.in_flight.is_some() {
        let _ = seen.hold().await;
    }
    seen.reconciled(&*object);
    Ok(Action::await_change())
}
