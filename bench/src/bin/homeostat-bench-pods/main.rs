//! The server that controllers are measured on, with the Pods that they reconcile: nothing but the API,
//! in memory, over TLS, with the allocator of the `homeostat` binary.
//!
//! A program of its own, so that the controllers of the bench keep the allocator that their peers have.
//! It says how many bytes a Pod has once all are there. Then it waits for numbers, a line each: so many
//! Pods it changes once each, and says of every change what tells it apart ([`sent::SENT`]) and when it
//! was answered, in nanoseconds since 1970. It ends with its input.

#![allow(clippy::print_stdout, reason = "it speaks to whoever started it")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

mod pods;
#[path = "../../reach.rs"]
mod reach;
#[path = "../../sent.rs"]
mod sent;
mod serve;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use kube::Client;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Parser)]
struct Serve {
    /// Where the kubeconfig goes.
    kubeconfig: PathBuf,
    /// How many Pods there are.
    #[arg(default_value_t = 20_000)]
    pods: usize,
    /// How many `ConfigMap`s there are, as many as Pods at least.
    #[arg(default_value_t = 20_000)]
    configmaps: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Serve { kubeconfig, pods, configmaps } = Serve::parse();
    // Pods are changed without a connection: what is measured begins with the event, and the way of
    // a request to the server is none of it.
    let client = Client::new(serve::in_memory(&kubeconfig).await?, "default");
    println!("{}", pods::fill(&client, pods, configmaps).await?);
    // The server works in other threads than this one.
    for line in std::io::stdin().lines() {
        let answered = pods::change(&client, pods, line?.trim().parse()?).await?;
        let mut output = std::io::stdout().lock();
        for (sent, answered) in answered {
            writeln!(output, "{sent} {answered}")?;
        }
    }
    Ok(())
}
