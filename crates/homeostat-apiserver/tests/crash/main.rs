//! A store whose process is killed in the middle of its work, again and again: nothing that was
//! acknowledged is ever missing, half there, or different.
//!
//! This program runs itself as the victim. `HOMEOSTAT_CRASH_RUNS` says how often (20 by default,
//! `cargo xtask crash` asks for more). `HOMEOSTAT_CRASH_SEED` decides what every victim writes, how
//! soon its log is replaced and after how many words it is killed; it is printed, and the same one
//! does the same again, up to what only the system decides: whose write comes first, and how far the
//! victim gets while the blow falls.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ledger;
mod victim;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use homeostat_env::Env;
use jiff::Timestamp;
use ledger::Ledger;

/// The directory that the victim writes to; set only in its own process.
const DIRECTORY: &str = "HOMEOSTAT_CRASH_DIRECTORY";
/// How long its log may grow before a snapshot takes its place.
const LONGEST: &str = "HOMEOSTAT_CRASH_LONGEST";
/// What it draws its choices from.
const VICTIM: &str = "HOMEOSTAT_CRASH_VICTIM";

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let (longest, seed) = (number(LONGEST).unwrap_or(0), number(VICTIM).unwrap_or(0));
        victim::work(Path::new(&directory), longest, seed);
        return;
    }
    let runs = number("HOMEOSTAT_CRASH_RUNS").unwrap_or(20);
    let seed = number("HOMEOSTAT_CRASH_SEED").unwrap_or_else(|| Env::system().random_u64());
    println!("{runs} runs from HOMEOSTAT_CRASH_SEED={seed}");
    let env = Env::simulated(seed, Timestamp::UNIX_EPOCH);
    let place = tempfile::tempdir().unwrap();
    let (mut ledger, mut acknowledged) = (Ledger::default(), 0);
    for run in 1..=runs {
        // Snapshots all the time, now and then, or never.
        let longest = [0, 100_000, u64::MAX][usize::try_from(env.random_below(3)).unwrap()];
        let lines = env.random_below(400);
        let victim = env.random_u64();
        acknowledged += strike(place.path(), longest, lines, victim, &mut ledger);
        ledger.compare(&victim::open(place.path(), u64::MAX), run);
        if run % 100 == 0 || run == runs {
            println!("{run} runs, {acknowledged} acknowledged writes, none lost");
        }
    }
    assert!(acknowledged > runs, "hardly anything was written: {acknowledged}");
}

/// Starts the victim, notes what it says until it has said `lines`, kills it, and notes the rest.
fn strike(place: &Path, longest: u64, lines: u64, seed: u64, ledger: &mut Ledger) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_acknowledged_is_lost_when_the_process_is_killed", "--nocapture"])
        .env(DIRECTORY, place)
        .env(LONGEST, longest.to_string())
        .env(VICTIM, seed.to_string())
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

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}
