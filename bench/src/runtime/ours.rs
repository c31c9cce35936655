//! Our controller, as a process of its own: every Pod is reconciled, nothing is done.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::{Context, Controller, Manager, Outcome};
use tokio::sync::Notify;

use super::pods::SENT;

/// `homeostat-bench peer`
#[derive(clap::Args)]
pub(crate) struct Peer {
    kubeconfig: PathBuf,
    pods: usize,
}

/// Counts reconciles and collects how long events took.
#[derive(Default)]
struct Seen {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    count: usize,
    watching: bool,
    latencies: Vec<Duration>,
}

impl Seen {
    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn reconciled(&self, pod: &Pod) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.with(|inner| {
            inner.count += 1;
            let sent = pod.metadata.annotations.as_ref().and_then(|all| all.get(SENT));
            if let Some(sent) = sent.and_then(|sent| sent.parse().ok()).filter(|_| inner.watching) {
                inner.latencies.push(now.saturating_sub(Duration::from_nanos(sent)));
            }
        });
        self.changed.notify_one();
    }

    async fn wait(&self, enough: impl Fn(&Inner) -> bool) {
        while !self.with(|inner| enough(inner)) {
            self.changed.notified().await;
        }
    }
}

impl Peer {
    pub(crate) async fn run(self) -> Result<()> {
        let manager = Manager::from_kubeconfig(&self.kubeconfig).await?;
        let seen = Arc::<Seen>::default();
        let told = Arc::clone(&seen);
        let reconcile = move |pod: Arc<Pod>, _: Context<Pod>| {
            told.reconciled(&pod);
            async { Ok(Outcome::Done) }
        };
        let controller = Controller::new(reconcile).concurrency(10);
        println!("begin");
        line().await?;
        let running = manager.with(controller).start().await?;
        seen.wait(|inner| inner.count >= self.pods).await;
        println!("all");
        line().await?;
        seen.with(|inner| inner.watching = true);
        println!("settled");
        let events: usize = line().await?.parse()?;
        seen.wait(|inner| inner.latencies.len() >= events).await;
        for latency in seen.with(|inner| inner.latencies.clone()) {
            println!("{}", latency.as_nanos());
        }
        running.stop().await?;
        Ok(())
    }
}

async fn line() -> Result<String> {
    let read = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
    Ok(read.await?.context("nobody speaks to it any more")??)
}
