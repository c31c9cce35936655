//! `cargo xtask figures`: how fast the cluster starts and how much memory it takes, measured.
//!
//! Figures, not tests: they depend on the machine, so nothing fails by them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::workspace::{cargo, run, target};

const RUNS: usize = 5;
const OPERATORS: &str = "at,webapp,database,logical-database";

/// When nothing has happened for this long after the start, the cluster is idle.
const SETTLE: Duration = Duration::from_secs(5);

pub(crate) fn run_all() -> Result<()> {
    run(cargo(), &["build", "--release", "--package", "homeostat-cli"])?;
    let binary = target()?.join("release/homeostat");
    let mut starts = Vec::new();
    let mut memory = 0;
    for index in 0..RUNS {
        let (mut up, start) = Up::start(&binary)?;
        starts.push(start);
        if index + 1 == RUNS {
            std::thread::sleep(SETTLE);
            memory = up.resident_kilobytes()?;
        }
        up.stop()?;
    }
    starts.sort();
    let median = starts[RUNS / 2].as_secs_f64() * 1000.0;
    println!("start to ready: {median:.0} ms (median of {RUNS}; goal: at most 300 ms)");
    #[expect(clippy::cast_precision_loss, reason = "megabytes for people")]
    let megabytes = memory as f64 / 1024.0;
    println!("memory, four operators idle: {megabytes:.1} MB resident (goal: at most 60 MB)");
    Ok(())
}

/// A running `homeostat up`.
struct Up {
    child: Child,
}

impl Up {
    /// Starts it and takes the time until it says that it is ready.
    fn start(binary: &Path) -> Result<(Self, Duration)> {
        let kubeconfig =
            std::env::temp_dir().join(format!("homeostat-figures-{}", std::process::id()));
        let begin = Instant::now();
        let mut child = Command::new(binary)
            .args(["up", "--with", OPERATORS, "--kubeconfig"])
            .arg(kubeconfig)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let taken = begin.elapsed();
        ensure!(line.starts_with("ready"), "homeostat up said {line:?}");
        Ok((Self { child }, taken))
    }

    fn resident_kilobytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    fn stop(&mut self) -> Result<()> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)?;
        ensure!(self.child.wait()?.success(), "homeostat up did not stop cleanly");
        Ok(())
    }
}
