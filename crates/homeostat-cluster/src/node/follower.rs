//! Follows the Pods of the node and keeps one worker for each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat::cache::{Caches, Delta, Informer, Scope};
use homeostat::{Key, Kind};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::directory::Present;
use super::host::Host;
use super::proxy::{self, Proxy};
use super::remains;
use super::worker::{Mailbox, Message, Worker};

enum Change {
    Pod(Delta),
    /// A Secret or ConfigMap of that namespace.
    Configuration(String),
    /// A Service or an EndpointSlice.
    Network,
}

pub(super) struct Follower {
    host: Arc<Host>,
    changes: mpsc::UnboundedReceiver<Change>,
    slices: Informer,
    pods: Informer,
    /// Held so that they go on.
    _others: [Informer; 2],
    proxy: Proxy,
    workers: BTreeMap<String, (Key, Mailbox)>,
    tasks: JoinSet<()>,
    /// Uids of Pods that ended here and are still in the API.
    finished: BTreeSet<String>,
    /// Pods that ended before this agent began and are still in the API.
    remains: BTreeMap<String, Key>,
}

impl Follower {
    pub(super) fn new(host: Arc<Host>, caches: &Caches) -> Self {
        let (sender, changes) = mpsc::unbounded_channel();
        let informer = |kind: Kind| caches.informer(kind, Scope::default());
        let follow = |informer: Informer, change: fn(&Delta) -> Change| {
            let sender = sender.clone();
            informer.on_event(move |delta| {
                // The follower is gone only when the agent stops.
                let _ = sender.send(change(delta));
            });
            informer.start();
            informer
        };
        let configuration: fn(&Delta) -> Change =
            |delta| Change::Configuration(delta.key().namespace().unwrap_or_default().to_owned());
        follow(host.services.clone(), |_| Change::Network);
        let slices = follow(informer(Kind::of::<EndpointSlice>()), |_| Change::Network);
        let pods = follow(informer(Kind::of::<Pod>()), |delta| Change::Pod(delta.clone()));
        let others = [
            follow(informer(Kind::of::<Secret>()), configuration),
            follow(informer(Kind::of::<ConfigMap>()), configuration),
        ];
        Self {
            host,
            changes,
            slices,
            pods,
            _others: others,
            proxy: Proxy::default(),
            workers: BTreeMap::new(),
            tasks: JoinSet::new(),
            finished: BTreeSet::new(),
            remains: BTreeMap::new(),
        }
    }

    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let (host, pods) = (self.host.clone(), self.pods.clone());
        self.tasks.spawn(async move {
            let sweep = remains::sweep(&host, pods);
            let _ = host.stopping.run_until_cancelled(sweep).await;
        });
        loop {
            let first = tokio::select! {
                biased;
                _ = &mut stopped => break,
                Some(_) = self.tasks.join_next() => { self.bury(); continue; }
                change = self.changes.recv() => change,
            };
            let Some(first) = first else { break };
            let mut network = false;
            let mut configuration = BTreeSet::new();
            let mut next = Some(first);
            // Many changes at once are one change of the routes.
            while let Some(change) = next {
                match change {
                    Change::Pod(delta) => self.pod(&delta).await,
                    Change::Configuration(namespace) => drop(configuration.insert(namespace)),
                    Change::Network => network = true,
                }
                next = self.changes.try_recv().ok();
            }
            for (key, worker) in self.workers.values() {
                if configuration.contains(key.namespace().unwrap_or_default()) {
                    worker.poke();
                }
            }
            if network {
                let (services, slices) = (self.host.services.list(None), self.slices.list(None));
                let routes = proxy::routes(&services, &slices, self.host.low_ports);
                self.proxy.sync(&self.host, routes);
            }
        }
        for (_, worker) in self.workers.values() {
            worker.send(Message::Leave).await;
        }
        while self.tasks.join_next().await.is_some() {}
    }

    /// Notes which workers have ended.
    fn bury(&mut self) {
        let ended: Vec<String> = self
            .workers
            .iter()
            .filter(|(_, (_, worker))| worker.is_closed())
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in ended {
            self.workers.remove(&uid);
            self.finished.insert(uid);
        }
    }

    async fn pod(&mut self, delta: &Delta) {
        if let Some(old) = &delta.old {
            let replaced = delta.new.as_ref().is_none_or(|new| new.header.uid != old.header.uid);
            if replaced {
                self.gone(&old.header.uid).await;
            }
        }
        let Some(new) = &delta.new else { return };
        let pod = match new.decode::<Pod>() {
            Ok(pod) => pod,
            Err(error) => {
                tracing::warn!(pod = %delta.key(), %error, "a Pod that cannot be read is not run");
                return;
            }
        };
        let mine =
            pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&self.host.node);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if !mine || self.finished.contains(&uid) {
            return;
        }
        if let Some((_, worker)) = self.workers.get(&uid) {
            worker.send(Message::Pod(Box::new(pod))).await;
            return;
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return self.remember(uid, delta.key()).await;
        }
        let worker = Worker::spawn(self.host.clone(), pod, &mut self.tasks);
        self.workers.insert(uid, (delta.key().clone(), worker));
    }

    /// Shows what an earlier agent left of a Pod that has ended.
    async fn remember(&mut self, uid: String, key: &Key) {
        if self.remains.contains_key(&uid) {
            return;
        }
        let containers = remains::runs(&self.host, &uid).await;
        let present = Present { uid: uid.clone(), ip: None, containers };
        let namespace = key.namespace().unwrap_or_default();
        self.host.directory.show(namespace, key.name(), present);
        self.remains.insert(uid, key.clone());
    }

    async fn gone(&mut self, uid: &str) {
        self.finished.remove(uid);
        if let Some(key) = self.remains.remove(uid) {
            let namespace = key.namespace().unwrap_or_default();
            self.host.directory.hide(namespace, key.name(), uid);
            remains::remove(&self.host, uid).await;
        }
        if let Some((_, worker)) = self.workers.remove(uid) {
            worker.send(Message::Gone).await;
        }
    }
}
