//! Our controller, as a process of its own: every Pod is reconciled, nothing is done. Where reconciles
//! are kept unfinished the objects are ConfigMaps.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Pod};
use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Manager, Outcome};
use tokio::sync::{Notify, oneshot};

use super::peer::line;
use super::pods::SENT;

/// `homeostat-bench peer`
#[derive(clap::Args)]
pub(crate) struct Peer {
    kubeconfig: PathBuf,
    pods: usize,
    /// So many reconciles are kept unfinished until the last has begun.
    in_flight: Option<usize>,
}

/// Counts reconciles and notes when changes were reconciled.
#[derive(Default)]
struct Seen {
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
    begun: usize,
    unfinished: VecDeque<oneshot::Sender<()>>,
}

/// What the main task waits for; it is woken only then.
#[derive(Clone, Copy)]
enum Awaited {
    Reconciles(usize),
    Changes(usize),
}

impl Inner {
    fn is_reached(&self) -> bool {
        match self.awaited {
            Some(Awaited::Reconciles(count)) => self.count >= count,
            Some(Awaited::Changes(count)) => self.noted.len() >= count,
            None => false,
        }
    }
}

impl Seen {
    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn reconciled(&self, object: &impl ResourceExt) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let reached = self.with(|inner| {
            inner.count += 1;
            let sent = object.annotations().get(SENT);
            if let Some(sent) = sent.and_then(|sent| sent.parse().ok()).filter(|_| inner.watching) {
                inner.noted.push((sent, now));
            }
            inner.is_reached()
        });
        if reached {
            self.changed.notify_one();
        }
    }

    /// Ends when `most` later reconciles have begun, or all.
    fn hold(&self, most: usize, all: usize) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        self.with(|inner| {
            inner.begun += 1;
            inner.unfinished.push_back(end);
            let kept = if inner.begun >= all { 0 } else { most - 1 };
            while inner.unfinished.len() > kept {
                // Whoever waits is there: nothing cancels a reconcile here.
                let _ = inner.unfinished.pop_front().map(|end| end.send(()));
            }
        });
        ended
    }

    async fn wait(&self, awaited: Awaited) {
        self.with(|inner| inner.awaited = Some(awaited));
        while !self.with(|inner| inner.is_reached()) {
            self.changed.notified().await;
        }
    }
}

impl Peer {
    pub(crate) async fn run(self) -> Result<()> {
        let manager = Manager::from_kubeconfig(&self.kubeconfig).await?;
        let seen = Arc::<Seen>::default();
        let told = Arc::clone(&seen);
        let manager = if let Some(most) = self.in_flight {
            let reconcile = move |object: Arc<ConfigMap>, _: Context<ConfigMap>| {
                let told = Arc::clone(&told);
                async move {
                    let _ = told.hold(most, self.pods).await;
                    told.reconciled(&*object);
                    Ok(Outcome::Done)
                }
            };
            manager.with(Controller::new(reconcile).concurrency(most))
        } else {
            let reconcile = move |pod: Arc<Pod>, _: Context<Pod>| {
                told.reconciled(&*pod);
                async { Ok(Outcome::Done) }
            };
            manager.with(Controller::new(reconcile).concurrency(10))
        };
        println!("begin");
        line().await?;
        let running = manager.start().await?;
        seen.wait(Awaited::Reconciles(self.pods)).await;
        println!("all");
        line().await?;
        seen.with(|inner| inner.watching = true);
        println!("settled");
        let events: usize = line().await?.parse()?;
        seen.wait(Awaited::Changes(events)).await;
        for (sent, reconciled) in seen.with(|inner| inner.noted.clone()) {
            println!("{sent} {reconciled}");
        }
        running.stop().await?;
        Ok(())
    }
}
