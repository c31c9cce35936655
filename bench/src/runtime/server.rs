//! The server with the Pods, as a process, and the few words exchanged with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::spoken::Spoken;

/// When the server answered each change, in nanoseconds since 1970, by what the Pod says of it.
pub(super) type Answered = BTreeMap<String, u64>;

pub(super) struct PodServer {
    program: Spoken,
    /// How many bytes a Pod has in its API.
    pub(super) pod_bytes: usize,
}

impl PodServer {
    /// Starts it and waits until all is there.
    pub(super) fn start(kubeconfig: &Path, pods: usize, configmaps: usize) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("homeostat-bench-pods");
        let counts = [pods, configmaps].map(|count| count.to_string());
        let mut program = Spoken::start(Command::new(&program).arg(kubeconfig).args(counts))
            .with_context(|| format!("{} is built with all of this package", program.display()))?;
        let pod_bytes = program.line()?.parse()?;
        Ok(Self { program, pod_bytes })
    }

    /// Changes so many Pods once each.
    pub(super) fn change(&mut self, events: usize) -> Result<Answered> {
        self.program.tell(&events.to_string())?;
        let change = |_| {
            let line = self.program.line()?;
            let (sent, answered) = line.split_once(' ').context("a time is missing")?;
            Ok((sent.to_owned(), answered.parse()?))
        };
        (0..events).map(change).collect()
    }

    /// Its processor time so far.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        self.program.processor_time()
    }
}
