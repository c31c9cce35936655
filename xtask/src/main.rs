//! The project's own commands. `cargo xtask help` lists them.

// A task runner's output is what it prints, and it measures real time.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod bench;
mod conformance;
mod crash;
mod demo;
mod figures;
mod fuzz;
mod generate;
mod oracle;
mod postgres;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up, tests and generated tables of this project")]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Build everything and run an embedded cluster with the four operators.
    Demo(demo::Demo),
    /// Install or build what is missing and run every check and test.
    Test(test::Test),
    /// The real kube-apiserver, kubectl and etcd that judge the embedded server.
    Oracle {
        #[command(subcommand)]
        verb: oracle::Verb,
    },
    /// Judge the embedded server by the official conformance suite.
    Conformance(conformance::Conformance),
    /// Write the tables of built-in kinds from the published API of Kubernetes.
    Generate(generate::Generate),
    /// Measure beside the peers, and write `bench/RESULTS.md`.
    Bench {
        #[command(subcommand)]
        what: bench::Bench,
    },
    /// Kill the store in the middle of its work and look for what it lost.
    Crash(crash::Crash),
    /// Send random requests to the embedded server and look for what it gets wrong by itself.
    Fuzz(fuzz::Fuzz),
    /// Measure the start and the memory of an embedded cluster with the four operators.
    Figures,
    /// Check the rules of the code base that the compiler and clippy do not know.
    Tidy,
}

fn main() -> ExitCode {
    match run(Command::parse().verb) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    let done = match verb {
        Verb::Demo(demo) => demo.run(),
        Verb::Test(test) => test.run(),
        Verb::Oracle { verb } => oracle::run(&verb),
        Verb::Conformance(conformance) => conformance.run(),
        Verb::Generate(generate) => generate.run(),
        Verb::Bench { what } => what.run(),
        Verb::Crash(crash) => crash.run(),
        Verb::Fuzz(fuzz) => fuzz.run(),
        Verb::Figures => figures::run_all(),
        Verb::Tidy => tidy::run(),
    };
    done.map(|()| ExitCode::SUCCESS)
}
