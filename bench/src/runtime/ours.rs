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
use crate::sent::SENT;

/// `homeostat-bench peer`
#[derive(clap::Args)]
pub(crate) struct Peer {
    kubeconfig: PathBuf,
    pods: usize,
    /// So many reconciles are kept unfinished.
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
        // Whoever waits is there: nothing cancels a reconcile here.
        let _ = self.unfinished.pop_front().map(|end| end.send(()));
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

    /// Ends when as many later reconciles have begun as are kept unfinished.
    fn hold(&self) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        let reached = self.with(|inner| {
            inner.unfinished.push_back(end);
            if inner.goes_on {
                inner.end_oldest();
            }
            inner.is_reached()
        });
        if reached {
            self.changed.notify_one();
        }
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
                    let _ = told.hold().await;
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
        if let Some(most) = self.in_flight {
            seen.wait(Awaited::Unfinished(most)).await;
            println!("full");
            line().await?;
            seen.with(|inner| {
                inner.goes_on = true;
                inner.end_oldest();
            });
        }
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
