//! The `homeostat` binary: an embedded cluster with operators, in one process.
//!
//! The only crate with words for people: what it prints and how it fails is decided here. Failures
//! are told as `clap` tells its own, `error: …` and a tip. Exit code 2 is a command line that is not
//! understood, 1 is everything else that goes wrong.

mod advice;
mod demo;
mod failure;
mod kubeconfig;
mod lease;
mod log;
mod operators;
mod parts;
mod range;
mod say;
mod untended;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

/// A server makes and drops small values all the time, on one thread what another one drops.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Parser)]
#[command(
    name = "homeostat",
    version,
    about = "The controller runtime for Rust, with a cluster to run it on"
)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run an embedded cluster, with operators if asked, until interrupted.
    Up(up::Up),
}

fn main() -> ExitCode {
    // A Pod's processes begin as this very binary, which then becomes something else.
    homeostat_cluster::node::sandbox::main_if_asked();
    let Verb::Up(up) = Command::parse().verb;
    match up.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::FAILURE
        }
    }
}
