//! A store whose process is killed in the middle of its work, again and again: nothing that was
//! acknowledged is ever missing, half there, or different.
//!
//! This program runs itself as the victim. `HOMEOSTAT_CRASH_RUNS` says how often (20 by default,
//! `cargo xtask crash` asks for more); the seed of each run is printed when it fails.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ledger;
mod victim;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use homeostat_env::Env;
use ledger::Ledger;

/// The directory that the victim writes to; set only in its own process.
const DIRECTORY: &str = "HOMEOSTAT_CRASH_DIRECTORY";
/// How long its log may grow before a snapshot takes its place.
const LONGEST: &str = "HOMEOSTAT_CRASH_LONGEST";

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        victim::work(Path::new(&directory), number(LONGEST));
        return;
    }
    let runs = match number("HOMEOSTAT_CRASH_RUNS") {
        0 => 20,
        runs => runs,
    };
    let env = Env::system();
    let place = tempfile::tempdir().unwrap();
    let (mut ledger, mut acknowledged) = (Ledger::default(), 0);
    for run in 1..=runs {
        // Snapshots all the time, now and then, or never.
        let longest = [0, 100_000, u64::MAX][usize::try_from(env.random_below(3)).unwrap()];
        let lines = env.random_below(400);
        acknowledged += strike(place.path(), longest, lines, &mut ledger);
        ledger.compare(&victim::open(place.path(), u64::MAX), run);
        if run % 100 == 0 {
            println!("{run} runs, {acknowledged} acknowledged writes, none lost");
        }
    }
    assert!(acknowledged > runs, "hardly anything was written: {acknowledged}");
}

/// Starts the victim, notes what it says until it has said `lines`, kills it, and notes the rest.
fn strike(place: &Path, longest: u64, lines: u64, ledger: &mut Ledger) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_acknowledged_is_lost_when_the_process_is_killed", "--nocapture"])
        .env(DIRECTORY, place)
        .env(LONGEST, longest.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut said, mut acknowledged) = (0, 0);
    if lines == 0 {
        child.kill().unwrap();
    }
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // The last line may be cut off: then it was not said.
        let Some(line) = line.ok().filter(|line| line.ends_with('.')) else { continue };
        acknowledged += u64::from(ledger.note(&line));
        said += 1;
        if said == lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}

fn number(name: &str) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}
