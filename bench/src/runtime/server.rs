//! The server with the Pods, as a process, and the few words exchanged with it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process;

/// When the server answered each change, in nanoseconds since 1970, by what the Pod says of it.
pub(super) type Answered = BTreeMap<String, u64>;

pub(super) struct PodServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// How many bytes a Pod has in its API.
    pub(super) pod_bytes: usize,
}

impl PodServer {
    /// Starts it and waits until all is there.
    pub(super) fn start(kubeconfig: &Path, pods: usize, configmaps: usize) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("homeostat-bench-pods");
        let mut child = Command::new(&program)
            .arg(kubeconfig)
            .args([pods, configmaps].map(|count| count.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} is built with all of this package", program.display()))?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        let mut server = Self { child, input, output, pod_bytes: 0 };
        server.pod_bytes = server.line()?.parse()?;
        Ok(server)
    }

    /// Changes so many Pods once each.
    pub(super) fn change(&mut self, events: usize) -> Result<Answered> {
        writeln!(self.input, "{events}")?;
        self.input.flush()?;
        let change = |_| {
            let line = self.line()?;
            let (sent, answered) = line.split_once(' ').context("a time is missing")?;
            Ok((sent.to_owned(), answered.parse()?))
        };
        (0..events).map(change).collect()
    }

    /// Its processor time so far.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        process::processor_time(self.child.id())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for PodServer {
    fn drop(&mut self) {
        // Nobody needs what it has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
