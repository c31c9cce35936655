//! The runtime beside its peers: one server, one set of Pods, the same no-op controller on each.

mod ours;
mod peer;
mod pods;
mod queue;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use kube::Client;

use crate::{results, serve};

pub(crate) use ours::Peer;
use peer::Running;
pub(crate) use queue::ours as measure_queue;

/// `homeostat-bench runtime`
#[derive(clap::Args)]
pub(crate) struct Runtime {
    /// The controller on kube-rs.
    #[arg(long)]
    kube_rs: PathBuf,
    /// The controller on controller-runtime.
    #[arg(long)]
    controller_runtime: PathBuf,
    /// Where the table goes.
    #[arg(long)]
    results: PathBuf,
    /// How many Pods there are.
    #[arg(long, default_value_t = 20_000)]
    pods: usize,
    /// How many of them change once, for each controller.
    #[arg(long, default_value_t = 5000)]
    events: usize,
}

/// What came out, for one controller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pod_bytes: f64,
    peak_pod_bytes: f64,
    cold_cpu: Duration,
    cold_wall: Duration,
    median: Duration,
    p99: Duration,
    event_cpu: Duration,
    /// Processor time per reconcile with few and with many of them unfinished.
    in_flight: [Duration; 2],
}

/// How many reconciles are unfinished at once, for [`Figures::in_flight`].
const IN_FLIGHT: [usize; 2] = [10, 10_000];
/// The pace of a machine changes from one second to the next: the median of so many starts counts.
const STARTS: usize = 5;

impl Runtime {
    pub(crate) async fn run(self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        // Pods are changed without a connection: what is measured begins with the event, and the
        // way of a request to the server is none of it.
        let client = Client::new(serve::in_memory(&kubeconfig).await?, "default");
        let table = self.measure(&client, &kubeconfig).await?;
        print!("{table}");
        results::write(&self.results, "The runtime", &table)
    }

    async fn measure(&self, client: &Client, kubeconfig: &Path) -> Result<String> {
        println!("{} Pods are made", self.pods);
        let size = pods::fill(client, self.pods).await?;
        println!("a Pod has {size} bytes");
        let this = std::env::current_exe()?;
        let mut all = Vec::new();
        let (count, config) = (self.pods.to_string(), kubeconfig.to_string_lossy());
        for (name, program, arguments) in [
            ("homeostat", &this, vec!["peer", &config, &count]),
            ("kube-rs", &self.kube_rs, vec![&config, &count]),
            ("kube-rs, no managedFields", &self.kube_rs, vec![&config, &count, "stripped"]),
            ("controller-runtime", &self.controller_runtime, vec![&config, &count]),
        ] {
            println!("{name}");
            let mut figures =
                self.measure_one(client, Running::start(program, &arguments)?).await?;
            (figures.cold_wall, figures.cold_cpu) = cold_start(program, &arguments)?;
            figures.in_flight = self.in_flight(program, &arguments)?;
            println!("  {figures:?}");
            all.push((name, figures));
        }
        let mut queues = vec![queue::ours()?];
        queues.extend(queue::theirs(&self.controller_runtime)?);
        let events = self.events.min(self.pods);
        Ok(table::render(&all, &queues, [self.pods, size, events]))
    }

    async fn measure_one(&self, client: &Client, mut peer: Running) -> Result<Figures> {
        let idle = peer.resident()?;
        peer.tell("go")?;
        peer.hears("all")?;
        peer.tell("settle")?;
        peer.hears("settled")?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (settled, peak) = (peer.resident()?, peer.peak()?);
        let before = peer.processor_time()?;
        let answered = pods::change(client, self.pods, self.events).await?;
        let (events, latencies) = (answered.len(), peer.latencies(&answered)?);
        let cpu = peer.latency_cpu().saturating_sub(before);
        let at = |share: usize| latencies[(latencies.len() * share / 100).min(events - 1)];
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let per_pod = |bytes: u64| bytes.saturating_sub(idle) as f64 / self.pods as f64;
        Ok(Figures {
            pod_bytes: per_pod(settled),
            peak_pod_bytes: per_pod(peak),
            median: at(50),
            p99: at(99),
            event_cpu: cpu / u32::try_from(events)?,
            ..Figures::default()
        })
    }

    /// Processor time of a whole run per ConfigMap, from the start of the process on.
    fn in_flight(&self, program: &Path, arguments: &[&str]) -> Result<[Duration; 2]> {
        let mut each = IN_FLIGHT.map(|_| Duration::ZERO);
        for (most, taken) in IN_FLIGHT.iter().zip(&mut each) {
            let most = most.to_string();
            let (_, cpu) = cold_start(program, &[arguments, &[&most]].concat())?;
            *taken = cpu / u32::try_from(self.pods)?;
        }
        Ok(each)
    }
}

/// How long a controller takes to have had every object, and its processor time from its start on.
fn cold_start(program: &Path, arguments: &[&str]) -> Result<(Duration, Duration)> {
    let (mut walls, mut cpus) = ([Duration::ZERO; STARTS], [Duration::ZERO; STARTS]);
    for (wall, cpu) in walls.iter_mut().zip(&mut cpus) {
        (*wall, *cpu) = Running::start(program, arguments)?.until_all()?;
    }
    walls.sort_unstable();
    cpus.sort_unstable();
    Ok((walls[STARTS / 2], cpus[STARTS / 2]))
}
