//! What waits for the real kube-apiserver most of its time, and so runs at once: the tests that are
//! for both clusters, once more on it, and the comparison of its answers with ours.

use anyhow::{Context, Result, anyhow};

use super::judges;
use crate::oracle::Oracle;
use crate::workspace::{cargo, run_aside};

/// Some of the tests that run twice: those of the runtime, the cluster's controllers, the operators,
/// the example. (The operators' objects are also compared side by side, in one test.)
struct Share {
    /// The test targets.
    targets: &'static [&'static str],
    /// Of their tests only those with such a name; all if there is none.
    only: &'static [&'static str],
    /// And none with such a name.
    skip: &'static [&'static str],
    /// What they look for to find kube-apiserver: the cluster to run on, or the one to compare with.
    variable: &'static str,
}

/// The comparison of answers: left to its share.
pub(super) const DIFFERENTIAL: [&str; 2] =
    ["answers_are_those_of_kube_apiserver", "random_requests_are_answered_as_by_kube_apiserver"];

/// The runtime's tests take longest, so two shares have them: these, and the others.
const HALF_OF_RUNTIME: [&str; 9] = [
    "children::",
    "contract::",
    "isolation::",
    "leader::",
    "lifecycle::",
    "outside::",
    "sources::",
    "strangers::",
    "trouble::",
];

const RUN_ON: &str = "HOMEOSTAT_TEST_KUBECONFIG";

/// All run at the same time, on different kube-apiservers: most of it is waiting.
const SHARES: [Share; 4] = [
    Share {
        targets: &["differential"],
        only: &DIFFERENTIAL,
        skip: &[],
        variable: "HOMEOSTAT_ORACLE_KUBECONFIG",
    },
    Share { targets: &["runtime"], only: &HALF_OF_RUNTIME, skip: &[], variable: RUN_ON },
    Share {
        targets: &[
            "runtime",
            "webhooks",
            "fixed_fields",
            "found_soon",
            "silent_server",
            "left_behind",
            "schedule",
        ],
        only: &[],
        skip: &HALF_OF_RUNTIME,
        variable: RUN_ON,
    },
    Share {
        targets: &[
            "garbage",
            "quota",
            "workloads",
            "any_cluster",
            "greeting",
            "welcome",
            "converged",
            "deletion",
            "missing_secret",
            "troubled",
        ],
        only: &[],
        skip: &[],
        variable: RUN_ON,
    },
];

/// The targets with tests for both clusters that run only on the embedded one, and why.
#[cfg(test)]
const EXCUSED: [(&str, &str); 0] = [];

/// The tests of the other targets that run only on the embedded cluster, and why. They fail elsewhere.
const EMBEDDED_ONLY: [(&str, &str); 8] = [
    ("a_source_that_hears_nothing_is_not_ready_until_it_does", "it takes hours"),
    (
        "an_api_that_is_away_for_a_moment_leaves_the_process_ready_and_one_that_stays_away_does_not",
        "it takes many minutes",
    ),
    (
        "what_was_written_before_the_history_was_replaced_is_not_waited_for",
        "it takes a server that can be replaced by another",
    ),
    (
        "an_api_that_is_away_for_minutes_at_the_start_is_named_by_the_readiness_and_ends_nothing",
        "it takes minutes",
    ),
    ("an_event_that_gets_no_answer_does_not_hold_back_the_others_for_ever", "it takes minutes"),
    ("a_map_that_waits_is_asked_again_when_it_panics_or_never_answers", "it takes half a minute"),
    ("a_cron_job_runs_as_many_jobs_at_once_as_its_policy_says", "it takes minutes"),
    ("a_cron_job_that_ran_all_day_keeps_its_last_three_jobs", "it takes hours"),
];

/// Tells the test harness to leave out tests with such a name.
pub(super) fn without(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("--skip={name}")).collect()
}

/// Runs them, each share on a kube-apiserver of its own, which nobody has changed before.
pub(super) fn on(oracle: &Oracle) -> Result<()> {
    println!("\nOnce more, on kube-apiserver, and beside it, but for:");
    for (test, why) in EMBEDDED_ONLY {
        println!("  - {test}: {why}");
    }
    let folder = oracle.kubeconfig.parent().context("a kubeconfig is in a folder")?;
    let run = |(number, share): (usize, &'static Share)| {
        share.run(&Oracle::start(&folder.join(format!("share-{number}")))?)
    };
    std::thread::scope(|scope| {
        let running = SHARES.iter().enumerate().map(|each| scope.spawn(move || run(each)));
        let running = running.collect::<Vec<_>>();
        let ended = running.into_iter().map(|one| {
            let (told, ended) = one.join().map_err(|_| anyhow!("a thread panicked"))??;
            println!("{told}");
            ended
        });
        // All of them are heard before one that failed ends it.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

impl Share {
    fn run(&self, oracle: &Oracle) -> Result<(String, Result<()>)> {
        let mut skip = without(self.skip);
        skip.extend(without(&EMBEDDED_ONLY.map(|(test, _)| test)));
        // The whole workspace is named, so that nothing is built anew with other features; one test
        // at a time, because a cluster has one set of controllers.
        let targets = self.targets.iter().flat_map(|name| ["--test", name]);
        let all = ["test", "--workspace", "--no-fail-fast"].into_iter().chain(targets);
        let all = all.chain(["--", "--test-threads=1"]).chain(self.only.iter().copied());
        let all = all.chain(skip.iter().map(String::as_str));
        let told = [
            (self.variable, oracle.kubeconfig.clone()),
            (judges::ALL_THERE.0, judges::ALL_THERE.1.into()),
        ];
        run_aside(&cargo(), &all.collect::<Vec<_>>(), &told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs;
    use std::path::{Path, PathBuf};

    use crate::workspace::root;

    fn entries(folder: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries
    }

    /// Whether the file, or one in the folder, asks for a cluster of either sort.
    fn is_for_both(path: &Path) -> bool {
        if path.is_dir() {
            return entries(path).iter().any(|entry| is_for_both(entry));
        }
        path.extension().is_some_and(|extension| extension == "rs")
            && ["on_world", "on_cluster"]
                .iter()
                .any(|word| fs::read_to_string(path).unwrap().contains(word))
    }

    #[test]
    fn every_test_for_both_clusters_runs_on_both_or_is_excused() {
        let packages = ["crates", "operators", "examples"].map(|folder| root().join(folder));
        let packages = packages.iter().flat_map(|folder| entries(folder));
        let targets = packages.flat_map(|package| entries(&package.join("tests")));
        let found: Vec<String> = targets
            .filter(|target| is_for_both(target))
            .map(|target| target.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert!(found.iter().any(|target| target == "workloads"), "found only {found:?}");
        let listed: Vec<&str> = SHARES.iter().flat_map(|share| share.targets).copied().collect();
        let excused = |target: &str| EXCUSED.iter().any(|(name, _)| *name == target);
        let missing: Vec<_> = found
            .iter()
            .filter(|target| !listed.contains(&target.as_str()) && !excused(target))
            .collect();
        assert!(missing.is_empty(), "in no share, and not excused: {missing:?}");
    }

    /// The tests in the file, or in those of the folder, that refuse to run elsewhere than on the
    /// embedded cluster, or pass there without having run.
    fn embedded_only(path: &Path, found: &mut Vec<String>) {
        entries(path).iter().for_each(|entry| embedded_only(entry, found));
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.starts_with("//")).peekable();
        let mut test = "";
        while let Some(line) = lines.next() {
            test = line.strip_prefix("fn ").unwrap_or(test);
            let refuses = line.starts_with("assert!(") && line.contains(".is_virtual, ");
            let is_silent = line.starts_with("if !") && line.ends_with(".is_virtual {");
            let ends = |next: &&str| next.starts_with("return");
            if refuses || (is_silent && lines.peek().is_some_and(ends)) {
                found.push(test.split('(').next().unwrap_or_default().to_owned());
            }
        }
    }

    #[test]
    fn every_test_for_the_embedded_cluster_alone_is_named_with_its_reason() {
        let mut found = Vec::new();
        for folder in ["crates", "operators", "examples"] {
            for package in entries(&root().join(folder)) {
                embedded_only(&package.join("tests"), &mut found);
            }
        }
        let mut named = EMBEDDED_ONLY.map(|(test, _)| test).to_vec();
        named.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, named);
    }

    #[test]
    fn what_one_share_of_the_runtime_chooses_the_other_leaves_out() {
        let [_, chosen, left, _] = &SHARES;
        assert_eq!(chosen.only, left.skip);
    }
}
