//! One side of the comparison: its processes, a client, and what the system says about them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::process::{children, processor_time, resident};

/// How often a server that starts is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// A running server.
pub(crate) struct Side {
    child: Child,
    /// The processes that do the work.
    pids: Vec<u32>,
    config: Config,
    pub(crate) client: Client,
    /// From the start of the processes to the first request that is answered with "ok".
    pub(crate) ready: Duration,
}

impl Side {
    pub(crate) async fn ours(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let kubeconfig = folder.join("kubeconfig");
        let server = std::env::current_exe()?.with_file_name("homeostat-bench-server");
        let child = Command::new(&server)
            .arg(&kubeconfig)
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("{} is built with all of this package", server.display()))?;
        Self::wait(child, &kubeconfig, 0).await
    }

    pub(crate) async fn theirs(xtask: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let child = Command::new(xtask)
            .args(["oracle", "supervise", "--durable"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        Self::wait(child, &folder.join("kubeconfig"), 2).await
    }

    /// Waits until the server is ready; it has `below` processes below the one that was started.
    async fn wait(child: Child, kubeconfig: &Path, below: usize) -> Result<Self> {
        let begin = Instant::now();
        let deadline = begin + Duration::from_secs(120);
        loop {
            if Instant::now() > deadline {
                bail!("a server is not ready after two minutes");
            }
            tokio::time::sleep(ASK_EVERY).await;
            let Ok(read) = Kubeconfig::read_from(kubeconfig) else { continue };
            let options = KubeConfigOptions::default();
            let Ok(config) = Config::from_custom_kubeconfig(read, &options).await else {
                continue;
            };
            let client = Client::try_from(config.clone())?;
            let request = http::Request::get("/readyz").body(Vec::new())?;
            if client.request_text(request).await.is_ok() {
                let ready = begin.elapsed();
                let pids = if below == 0 {
                    vec![child.id()]
                } else {
                    servers_below(child.id(), below, deadline).await?
                };
                return Ok(Self { child, pids, config, client, ready });
            }
        }
    }

    /// A client with connections of its own.
    pub(crate) fn another_client(&self) -> Result<Client> {
        Ok(Client::try_from(self.config.clone())?)
    }

    /// Resident memory of all processes, in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.pids.iter().map(|pid| resident(*pid)).sum()
    }

    /// Processor time of all processes so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.pids.iter().map(|pid| processor_time(*pid)).sum()
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        // Whoever holds the other end of that pipe stops by itself; the others are ended.
        if self.pids == [self.child.id()] {
            self.child.kill()?;
        }
        self.child.wait()?;
        Ok(())
    }
}

/// The `count` servers below a process, once whatever else it started to set them up has ended.
async fn servers_below(parent: u32, count: usize, deadline: Instant) -> Result<Vec<u32>> {
    loop {
        let pids = children(parent);
        if pids.len() == count {
            return Ok(pids);
        }
        if Instant::now() > deadline {
            bail!("process {parent} has {} processes below it, not {count}", pids.len());
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}
