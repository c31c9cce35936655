//! The lists of specs: what is asked, and what passed before.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use regex::Regex;

use super::report::{Outcome, Report};

/// The committed lists.
pub(super) struct Specs {
    /// Everything that is asked.
    asked: Vec<String>,
    passing: BTreeSet<String>,
    passing_file: PathBuf,
}

/// What a run says about the specs that were chosen for it.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) passed: Vec<String>,
    pub(super) failed: Vec<(String, String)>,
    pub(super) skipped: Vec<String>,
    /// Chosen, but unknown to the suite.
    pub(super) missing: Vec<String>,
    /// Passed, and not yet in the list of passing specs.
    pub(super) new: Vec<String>,
    /// In the list of passing specs, and did not pass.
    pub(super) lost: Vec<String>,
}

impl Specs {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let asked = names(&folder.join("api.txt"))?;
        let passing_file = folder.join("passing.txt");
        let passing = names(&passing_file)?.into_iter().collect();
        Ok(Self { asked, passing, passing_file })
    }

    /// The specs of a run.
    pub(super) fn chosen(&self, focus: Option<&str>, passing: bool) -> Result<Vec<&str>> {
        let focus = focus.map(Regex::new).transpose()?;
        let chosen = |name: &&String| {
            focus.as_ref().is_none_or(|focus| focus.is_match(name))
                && (!passing || self.passing.contains(*name))
        };
        Ok(self.asked.iter().filter(chosen).map(String::as_str).collect())
    }

    pub(super) fn compare(&self, chosen: &[&str], report: &Report) -> Verdict {
        let mut verdict = Verdict::default();
        for &name in chosen {
            let name = name.to_owned();
            let passed = matches!(report.outcome(&name), Some(Outcome::Passed));
            match (passed, self.passing.contains(&name)) {
                (true, false) => verdict.new.push(name.clone()),
                (false, true) => verdict.lost.push(name.clone()),
                _ => {}
            }
            match report.outcome(&name) {
                Some(Outcome::Passed) => verdict.passed.push(name),
                Some(Outcome::Failed(why)) => verdict.failed.push((name, why.clone())),
                Some(Outcome::Skipped) => verdict.skipped.push(name),
                None => verdict.missing.push(name),
            }
        }
        verdict
    }

    /// Adds to the list of passing specs, in the order of the list of all.
    pub(super) fn add(&self, new: &[String]) -> Result<()> {
        let passes = |name: &&String| self.passing.contains(*name) || new.contains(*name);
        let lines: Vec<&str> = self.asked.iter().filter(passes).map(String::as_str).collect();
        let text = format!(
            "{}\n{}\n",
            "# Written by `cargo xtask conformance --update`.",
            lines.join("\n")
        );
        std::fs::write(&self.passing_file, text)?;
        Ok(())
    }
}

fn names(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::{Report, Specs};
    use crate::workspace::root;

    fn specs() -> Specs {
        Specs {
            asked: ["old", "new", "broken", "skipped"].map(str::to_owned).into(),
            passing: ["old", "broken", "skipped"].map(str::to_owned).into(),
            passing_file: "unused".into(),
        }
    }

    fn report() -> Report {
        let spec = |name: &str, state: &str| {
            format!(r#"{{"LeafNodeType":"It","LeafNodeText":"{name}","State":"{state}"}}"#)
        };
        let specs = [
            spec("old", "passed"),
            spec("new", "passed"),
            spec("broken", "panicked"),
            spec("skipped", "skipped"),
            spec("never asked", "failed"),
        ];
        Report::parse(&format!(r#"[{{"SpecReports":[{}]}}]"#, specs.join(","))).unwrap()
    }

    #[test]
    fn a_listed_spec_that_did_not_pass_is_lost_however_it_did_not() {
        let specs = specs();
        let verdict = specs.compare(&specs.chosen(None, false).unwrap(), &report());
        assert_eq!(verdict.lost, ["broken", "skipped"]);
        assert_eq!(verdict.new, ["new"]);
        assert_eq!(verdict.passed, ["old", "new"]);
    }

    #[test]
    fn the_list_of_passing_specs_never_gets_shorter() {
        /// How many there are; raise it with the list.
        const PASSING: usize = 127;
        let specs = Specs::read(&root().join("oracle/conformance")).unwrap();
        assert!(specs.passing.len() >= PASSING, "{} specs are listed", specs.passing.len());
        let strangers: Vec<_> =
            specs.passing.iter().filter(|name| !specs.asked.contains(*name)).collect();
        assert!(strangers.is_empty(), "passing, and never asked: {strangers:?}");
    }

    #[test]
    fn a_spec_the_suite_does_not_know_is_named() {
        let mut specs = specs();
        specs.asked.push("renamed".to_owned());
        let verdict = specs.compare(&["renamed"], &report());
        assert_eq!(verdict.missing, ["renamed"]);
    }
}
