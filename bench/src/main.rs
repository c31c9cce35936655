//! Figures side by side, in one run on one machine: the API server beside kube-apiserver and etcd,
//! the runtime beside kube-rs and controller-runtime.
//!
//! `cargo xtask bench` builds and runs it and writes `bench/RESULTS.md`. Figures, not tests: they
//! depend on the machine, so nothing fails by them; what matters is the ratio.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program with words for people")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

mod load;
mod measure;
mod process;
mod results;
mod runtime;
mod sent;
mod side;
mod start;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use measure::{Figures, Sizes};
use side::Side;

#[derive(Parser)]
#[command(about = "Measure the API server and the runtime beside their peers")]
enum Command {
    /// The API server beside kube-apiserver and etcd.
    Api {
        /// The project's own command, which starts kube-apiserver and etcd.
        #[arg(long)]
        xtask: PathBuf,
        /// Where the table goes.
        #[arg(long)]
        results: PathBuf,
        /// How many objects are held at most.
        #[arg(long, default_value_t = 100_000)]
        objects: usize,
        /// How many watch one kind at the same time.
        #[arg(long, default_value_t = 1000)]
        watchers: usize,
    },
    /// The runtime beside kube-rs and controller-runtime.
    Runtime(runtime::Runtime),
    /// The work queue alone, for whoever works on it.
    Queue,
    /// Our API server alone, for whoever works on it.
    Ours {
        /// How often the requests are measured.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// How soon changes are reconciled by our controller alone, for whoever works on it.
    Events {
        /// How many Pods there are; each changes once.
        #[arg(long, default_value_t = 5000)]
        events: usize,
        /// How often it is measured.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Another controller instead of ours.
        #[arg(long)]
        peer: Option<PathBuf>,
    },
    /// Be the controller that is measured.
    #[command(hide = true)]
    Peer(runtime::Peer),
    /// Measure the first servers of this process.
    #[command(hide = true)]
    Start,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Command::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", in_one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// What went wrong with all its causes: a line that a log still has when it is cut off.
fn in_one_line(error: &anyhow::Error) -> String {
    let words = format!("error: {error:#}");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Runtime(runtime) => runtime.run().await,
        Command::Queue => {
            println!("{:?}", runtime::measure_queue()?);
            Ok(())
        }
        Command::Events { events, rounds, peer } => {
            runtime::measure_events(peer, events, rounds).await
        }
        Command::Peer(peer) => peer.run().await,
        Command::Start => start::here().await,
        Command::Ours { rounds } => ours(rounds).await,
        Command::Api { xtask, results, objects, watchers } => {
            let sizes = Sizes { objects, watchers };
            let in_process = start::in_fresh_processes()?;
            let folder = tempfile::tempdir()?;
            println!("homeostat");
            let ours = Side::ours(&folder.path().join("ours")).await?;
            let ours = measure_and_stop(ours, sizes).await.context("homeostat")?;
            println!("kube-apiserver + etcd");
            let theirs = Side::theirs(&xtask, &folder.path().join("theirs")).await?;
            let theirs = measure_and_stop(theirs, sizes).await.context("kube-apiserver + etcd")?;
            let table = table::render(&ours, &theirs, sizes, in_process);
            print!("{table}");
            results::write(&results, "The API server", &table)
        }
    }
}

async fn ours(rounds: usize) -> Result<()> {
    println!("in-process: first, later {:?}", start::in_fresh_processes()?);
    let folder = tempfile::tempdir()?;
    let mut side = Side::ours(folder.path()).await?;
    println!("  ready after {:?}", side.ready);
    let mut measured = Ok(());
    for round in 0..rounds {
        measured = measure::requests(&side, round * measure::WRITES).await.map(|_| ());
        if measured.is_err() {
            break;
        }
    }
    let stopped = side.stop();
    measured.and(stopped)
}

async fn measure_and_stop(mut side: Side, sizes: Sizes) -> Result<Figures> {
    let figures = measure::all(&side, sizes).await;
    // Why nothing was measured matters more than how it ended.
    let stopped = side.stop();
    figures.and_then(|figures| stopped.map(|()| figures))
}

#[cfg(test)]
mod tests {
    use super::in_one_line;

    #[test]
    fn an_error_with_all_its_causes_is_one_line() {
        let error = anyhow::anyhow!("refused:\n  no such object").context("64 creates at once");
        assert_eq!(in_one_line(&error), "error: 64 creates at once: refused: no such object");
    }
}
