//! A controller as a process, and the few words exchanged with it.
//!
//! It says `begin` once its client is there and waits for a line; then it starts its controller and
//! says `all` when every Pod was reconciled. Where reconciles are kept unfinished it says `full` when
//! there are so many and waits for a line; from then on the oldest ends whenever one more begins, and
//! `all` is when as many have ended as there are Pods. After the next line it says `settled`; from then on it
//! notes of each Pod it reconciles which change it has (the annotation [`crate::sent::SENT`]) and the
//! time, in nanoseconds since 1970. The last line it gets is a number: when it has noted so many, it
//! prints both, a line each, and ends.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::server::Answered;
use super::spoken::Spoken;
use crate::process;

/// So long after its last word a controller has nothing left to do.
const QUIET: Duration = Duration::from_secs(3);

pub(super) struct Running {
    program: Spoken,
    /// Processor time when the last event was reconciled.
    cpu: Duration,
}

impl Running {
    /// Starts it and waits until it has begun.
    pub(super) fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        let program = Spoken::start(Command::new(program).args(arguments))
            .with_context(|| format!("{} does not start", program.display()))?;
        let mut running = Self { program, cpu: Duration::ZERO };
        running.hears("begin")?;
        Ok(running)
    }

    pub(super) fn tell(&mut self, line: &str) -> Result<()> {
        self.program.tell(line)
    }

    pub(super) fn hears(&mut self, word: &str) -> Result<()> {
        let line = self.program.line()?;
        ensure!(line == word, "a controller said {line:?} instead of {word:?}");
        Ok(())
    }

    /// Has it reconcile every object, and waits until it is quiet.
    pub(super) async fn settle(&mut self) -> Result<()> {
        self.tell("go")?;
        self.hears("all")?;
        self.tell("settle")?;
        self.hears("settled")?;
        tokio::time::sleep(QUIET).await;
        Ok(())
    }

    /// How long it takes until it has had every object, and its processor time by then.
    pub(super) fn until_all(mut self) -> Result<(Duration, Duration)> {
        self.tell("go")?;
        let begin = Instant::now();
        self.hears("all")?;
        Ok((begin.elapsed(), self.processor_time()?))
    }

    /// Its processor time from when it is full and quiet until as many reconciles have ended as there
    /// are Pods.
    pub(super) async fn processor_time_once_full(mut self) -> Result<Duration> {
        self.tell("go")?;
        self.hears("full")?;
        tokio::time::sleep(QUIET).await;
        let before = self.processor_time()?;
        self.tell("on")?;
        self.hears("all")?;
        Ok(self.processor_time()?.saturating_sub(before))
    }

    /// How long after they were answered the changes were reconciled, shortest first.
    pub(super) fn latencies(&mut self, answered: &Answered) -> Result<Vec<Duration>> {
        let events = answered.len();
        self.tell(&events.to_string())?;
        let mut latencies = Vec::with_capacity(events);
        let id = self.program.id();
        for line in self.program.lines() {
            if latencies.is_empty() {
                self.cpu = process::processor_time(id)?;
            }
            let line = line?;
            let (sent, reconciled) = line.trim().split_once(' ').context("a time is missing")?;
            let answered = answered.get(sent).context("a change that nobody made")?;
            let taken = reconciled.parse::<u64>()?.saturating_sub(*answered);
            latencies.push(Duration::from_nanos(taken));
        }
        ensure!(latencies.len() >= events, "a controller ended too soon");
        ensure!(self.program.ends_well()?, "a controller failed");
        latencies.sort_unstable();
        Ok(latencies)
    }

    /// Processor time when the first of the latencies was read.
    pub(super) fn latency_cpu(&self) -> Duration {
        self.cpu
    }

    pub(super) fn resident(&self) -> Result<u64> {
        process::resident(self.program.id())
    }

    pub(super) fn peak(&self) -> Result<u64> {
        process::peak(self.program.id())
    }

    pub(super) fn processor_time(&self) -> Result<Duration> {
        self.program.processor_time()
    }
}

/// The next line of whoever measures this process.
pub(super) async fn line() -> Result<String> {
    let read = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
    Ok(read.await?.context("nobody speaks to it any more")??)
}
