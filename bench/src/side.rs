//! One side of the comparison: its processes, a client, and what the system says about them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// The processor's time is counted in these.
const TICK: Duration = Duration::from_millis(10);
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
        let child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .args([&folder.join("data"), &kubeconfig])
            .stdin(Stdio::null())
            .spawn()?;
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
    async fn wait(child: Child, kubeconfig: &PathBuf, below: usize) -> Result<Self> {
        let begin = Instant::now();
        let deadline = begin + Duration::from_secs(120);
        loop {
            if Instant::now() > deadline {
                bail!("a server is not ready after two minutes");
            }
            tokio::time::sleep(ASK_EVERY).await;
            let Ok(kubeconfig) = Kubeconfig::read_from(kubeconfig) else { continue };
            let options = KubeConfigOptions::default();
            let Ok(config) = Config::from_custom_kubeconfig(kubeconfig, &options).await else {
                continue;
            };
            let client = Client::try_from(config.clone())?;
            let request = http::Request::get("/readyz").body(Vec::new())?;
            if client.request_text(request).await.is_ok() {
                let ready = begin.elapsed();
                let mut pids = children(child.id());
                if below == 0 {
                    pids = vec![child.id()];
                }
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

fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}

/// The fields of `/proc/PID/stat` after the name, which may hold anything.
fn stat(pid: u32) -> Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = stat.rsplit_once(") ").context("no name")?;
    Ok(rest.split(' ').map(str::to_owned).collect())
}

fn processor_time(pid: u32) -> Result<Duration> {
    let fields = stat(pid)?;
    let ticks = fields[11].parse::<u32>()? + fields[12].parse::<u32>()?;
    Ok(TICK * ticks)
}

fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of = |pid: &u32| stat(*pid).is_ok_and(|fields| fields[1] == parent.to_string());
    pids.filter(of).collect()
}
