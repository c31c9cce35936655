//! How long a server in-process takes: from the call that makes it until a client has a list from it.
//!
//! The first one of a process is measured in processes that do nothing else, because whatever was done
//! before it would have read some of its tables, or filled the memory it needs.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use homeostat_apiserver::{Server, ServerConfig};
use homeostat_env::Env;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};

/// How many processes are asked.
const PROCESSES: usize = 21;

/// The medians of the first server of a process and of the second one, over fresh processes.
pub(crate) fn in_fresh_processes() -> Result<[Duration; 2]> {
    let program = std::env::current_exe()?;
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..PROCESSES {
        let output = Command::new(&program).arg("start").output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let words = String::from_utf8(output.stdout)?;
        let mut words = words.split_whitespace();
        for taken in &mut all {
            let nanoseconds = words.next().context("a figure is missing")?.parse()?;
            taken.push(Duration::from_nanos(nanoseconds));
        }
    }
    Ok(all.map(|mut taken| {
        taken.sort_unstable();
        taken[PROCESSES / 2]
    }))
}

/// Measures the first two servers of this process, and prints the nanoseconds of each.
pub(crate) async fn here() -> Result<()> {
    for _ in 0..2 {
        println!("{}", one().await?.as_nanos());
    }
    Ok(())
}

async fn one() -> Result<Duration> {
    let begin = Instant::now();
    let server = Server::new(ServerConfig::new(Env::system()));
    let client = kube::Client::new(server, "default");
    let namespaces = Api::<Namespace>::all(client).list(&ListParams::default()).await?;
    let taken = begin.elapsed();
    ensure!(namespaces.items.len() == 4, "a cluster begins with four namespaces");
    Ok(taken)
}
