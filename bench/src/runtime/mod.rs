//! The runtime beside its peers: one server, one set of Pods, the same no-op controller on each.

mod ours;
mod peer;
mod queue;
mod server;
mod spoken;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::{process, results};

pub(crate) use ours::Peer;
use peer::Running;
pub(crate) use queue::ours as measure_queue;
use server::PodServer;

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
    pod_bytes: u64,
    peak_pod_bytes: u64,
    cold_cpu: Duration,
    cold_wall: Duration,
    median: Duration,
    p99: Duration,
    event_cpu: Duration,
    /// Processor time per reconcile that ends, with few and with more and more of them unfinished.
    in_flight: [Duration; IN_FLIGHT.len()],
}

/// How many reconciles are unfinished at once, for [`Figures::in_flight`]. Those in between tell a cost
/// that grows with their number from one that a cache of the processor adds once.
const IN_FLIGHT: [usize; 4] = [10, 1000, 5000, 10_000];
/// The pace of a machine changes from one second to the next: so many times all of them are started in
/// turn, and the medians count.
const STARTS: usize = 5;
/// So many times in turn all of them are weighed, and told of changes.
const ROUNDS: usize = 5;
/// So many times the queues are measured in turn.
const QUEUE_ROUNDS: usize = 5;

/// A controller that is measured, and what came out.
struct Contender<'a> {
    name: &'static str,
    program: &'a Path,
    arguments: Vec<&'a str>,
    figures: Figures,
}

impl Runtime {
    pub(crate) async fn run(self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        println!("{} Pods are made", self.pods);
        let most = IN_FLIGHT[IN_FLIGHT.len() - 1];
        let server = PodServer::start(&kubeconfig, self.pods, self.pods + most)?;
        println!("a Pod has {} bytes", server.pod_bytes);
        let table = self.measure(server, &kubeconfig).await?;
        print!("{table}");
        results::write(&self.results, "The runtime", &table)
    }

    async fn measure(&self, mut server: PodServer, kubeconfig: &Path) -> Result<String> {
        let server = &mut server;
        let this = std::env::current_exe()?;
        let (count, config) = (self.pods.to_string(), kubeconfig.to_string_lossy());
        let (kube_rs, go) = (&*self.kube_rs, &*self.controller_runtime);
        let contender = |name, program, arguments| Contender {
            name,
            program,
            arguments,
            figures: Figures::default(),
        };
        let mut all = [
            contender("homeostat", &*this, vec!["peer", &config, &count]),
            contender("kube-rs", kube_rs, vec![&config, &count]),
            contender("kube-rs, no managedFields", kube_rs, vec![&config, &count, "stripped"]),
            contender("controller-runtime", go, vec![&config, &count]),
        ];
        println!("memory and events, in turn");
        self.settled(server, &mut all).await?;
        println!("starts, in turn");
        cold_starts(&mut all)?;
        println!("many reconciles under way, in turn");
        self.in_flight(&mut all).await?;
        println!("queues, in turn");
        let queues = queue::in_turn(go, QUEUE_ROUNDS)?;
        let all = all.map(|one| (one.name, one.figures));
        let events = self.events.min(self.pods);
        Ok(table::render(&all, &queues, [self.pods, server.pod_bytes, events]))
    }

    /// What they hold once all is reconciled, and how soon they reconcile what changes then.
    async fn settled(&self, server: &mut PodServer, all: &mut [Contender<'_>]) -> Result<()> {
        let mut measured = vec![Vec::with_capacity(ROUNDS); all.len()];
        for _ in 0..ROUNDS {
            for (one, measured) in all.iter().zip(&mut measured) {
                let running = Running::start(one.program, &one.arguments)?;
                measured.push(self.measure_one(server, running).await?);
                println!("  {}: {:?}", one.name, measured.last());
            }
        }
        for (one, rounds) in all.iter_mut().zip(measured) {
            let bytes = |figure: fn(&Figures) -> u64| median(rounds.iter().map(figure));
            let times = |figure: fn(&Figures) -> Duration| median(rounds.iter().map(figure));
            one.figures = Figures {
                pod_bytes: bytes(|it| it.pod_bytes),
                peak_pod_bytes: bytes(|it| it.peak_pod_bytes),
                median: times(|it| it.median),
                p99: times(|it| it.p99),
                event_cpu: times(|it| it.event_cpu),
                ..Figures::default()
            };
        }
        Ok(())
    }

    async fn measure_one(&self, server: &mut PodServer, mut peer: Running) -> Result<Figures> {
        let idle = peer.resident()?;
        peer.settle().await?;
        let (settled, peak) = (peer.resident()?, peer.peak()?);
        let before = peer.processor_time()?;
        let answered = server.change(self.events.min(self.pods))?;
        let (events, latencies) = (answered.len(), peer.latencies(&answered)?);
        let cpu = peer.latency_cpu().saturating_sub(before);
        let at = |share: usize| latencies[(latencies.len() * share / 100).min(events - 1)];
        let per_pod = |bytes: u64| bytes.saturating_sub(idle) / self.pods as u64;
        Ok(Figures {
            pod_bytes: per_pod(settled),
            peak_pod_bytes: per_pod(peak),
            median: at(50),
            p99: at(99),
            event_cpu: cpu / u32::try_from(events)?,
            ..Figures::default()
        })
    }

    /// Processor time per reconcile that ends while another begins, on one processor.
    async fn in_flight(&self, all: &mut [Contender<'_>]) -> Result<()> {
        for (which, most) in IN_FLIGHT.iter().map(usize::to_string).enumerate() {
            let mut cpus = vec![Vec::with_capacity(STARTS); all.len()];
            for _ in 0..STARTS {
                for (one, cpus) in all.iter().zip(&mut cpus) {
                    let arguments = [&*one.arguments, &[&*most]].concat();
                    let start = || Running::start(one.program, &arguments);
                    let running = process::on_one_processor(start)?;
                    cpus.push(running.processor_time_once_full().await?);
                }
            }
            for (one, cpus) in all.iter_mut().zip(cpus) {
                println!("  {most} of {}: {cpus:?}", one.name);
                one.figures.in_flight[which] = median(cpus.into_iter()) / u32::try_from(self.pods)?;
            }
        }
        Ok(())
    }
}

/// How soon changes are reconciled by a controller, ours if none is named: so many times, in percentiles.
pub(crate) async fn measure_events(
    peer: Option<PathBuf>,
    events: usize,
    rounds: usize,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let mut server = PodServer::start(&kubeconfig, events, events)?;
    let this = std::env::current_exe()?;
    let (count, config) = (events.to_string(), kubeconfig.to_string_lossy());
    for _ in 0..rounds {
        let mut running = match &peer {
            Some(peer) => Running::start(peer, &[&config, &count])?,
            None => Running::start(&this, &["peer", &config, &count])?,
        };
        running.settle().await?;
        let before = [running.processor_time()?, server.processor_time()?];
        let answered = server.change(events)?;
        let latencies = running.latencies(&answered)?;
        let at = |share: usize| latencies[latencies.len() * share / 1000];
        let [median, p90, p99, p999] = [500, 900, 990, 999].map(at);
        let each = |cpu: Duration, before| {
            cpu.saturating_sub(before) / u32::try_from(events).unwrap_or(u32::MAX)
        };
        let ours = each(running.latency_cpu(), before[0]);
        let theirs = each(server.processor_time()?, before[1]);
        println!(
            "median {median:?}, p90 {p90:?}, p99 {p99:?}, p99.9 {p999:?}; CPU {ours:?}, of the server {theirs:?}"
        );
    }
    Ok(())
}

/// How long controllers take to have had every object, and their processor time from their start on.
fn cold_starts(all: &mut [Contender<'_>]) -> Result<()> {
    let mut taken = vec![Vec::with_capacity(STARTS); all.len()];
    for _ in 0..STARTS {
        for (one, taken) in all.iter().zip(&mut taken) {
            taken.push(Running::start(one.program, &one.arguments)?.until_all()?);
        }
    }
    for (one, taken) in all.iter_mut().zip(taken) {
        println!("  {}: {taken:?}", one.name);
        one.figures.cold_wall = median(taken.iter().map(|(wall, _)| *wall));
        one.figures.cold_cpu = median(taken.iter().map(|(_, cpu)| *cpu));
    }
    Ok(())
}

fn median<T: Ord + Copy>(figures: impl Iterator<Item = T>) -> T {
    let mut figures: Vec<T> = figures.collect();
    figures.sort_unstable();
    figures[figures.len() / 2]
}
