//! Rules that the compiler and clippy do not know, as a check that can fail.

mod promises;

use std::path::Path;

use anyhow::{Result, bail};

use crate::workspace::{output, root};

/// Longest file that may hold one idea; long tables are listed by name.
const MOST_LINES: usize = 500;

/// The one module with system calls that no safe crate offers.
const UNSAFE: &str = "crates/homeostat-cluster/src/node/network/filter.rs";

pub(crate) fn run() -> Result<()> {
    let listed = output(
        "git",
        &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"],
        &root(),
    )?;
    let mut findings = Vec::new();
    let mut runtime = Vec::new();
    for name in listed.lines() {
        let Ok(text) = std::fs::read_to_string(root().join(name)) else { continue };
        findings.extend(check(name, &text).into_iter().map(|finding| format!("{name}: {finding}")));
        if name.starts_with(promises::CRATE) {
            runtime.push((name.to_owned(), text));
        }
    }
    let broken = promises::broken(&runtime).into_iter();
    findings.extend(broken.map(|finding| format!("{}: {finding}", promises::TABLES)));
    if findings.is_empty() {
        return Ok(());
    }
    bail!("the tree is not tidy:\n  {}", findings.join("\n  "))
}

/// What is wrong with one file.
fn check(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let vague = ["utils", "util", "common", "helpers", "misc"];
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if vague.contains(&stem) {
        findings.push("a name that says nothing".to_owned());
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        findings.push(format!("{lines} lines: more than one idea? (at most {MOST_LINES})"));
    }
    if !text.trim_start().starts_with("//!") && name.contains("/src/") {
        findings.push("no module doc that says what it is".to_owned());
    }
    let lifts = |line: &str| line.trim_start().starts_with('#') && line.contains("unsafe_code");
    if name != UNSAFE && text.lines().any(lifts) {
        findings.push(format!("unsafe code is for {UNSAFE} alone"));
    }
    // An unbiased select! draws its order from thread-local randomness: not replayable.
    for (index, line) in text.lines().enumerate() {
        let opens = line.contains("select! {") && !line.trim_start().starts_with("//");
        let biased = text.lines().nth(index + 1).is_some_and(|next| next.trim() == "biased;");
        if opens && !biased && !name.starts_with("xtask/") {
            findings.push(format!("line {}: select! without biased;", index + 1));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn an_unbiased_select_is_found() {
        let source = "//! Doc.\nfn f() {\n    tokio::select! {\n        a = b => {}\n    }\n}\n";
        assert_eq!(check("crates/x/src/y.rs", source), ["line 3: select! without biased;"]);
    }

    #[test]
    fn a_biased_select_passes() {
        let source = "//! Doc.\nfn f() {\n    tokio::select! {\n        biased;\n        a = b => {}\n    }\n}\n";
        assert!(check("crates/x/src/y.rs", source).is_empty());
    }

    #[test]
    fn unsafe_code_has_one_place() {
        let source = "//! Doc.\n\n#![allow(unsafe_code)]\n";
        assert_eq!(check("crates/x/src/y.rs", source).len(), 1);
        assert!(check(super::UNSAFE, source).is_empty());
    }

    #[test]
    fn a_name_that_says_nothing_is_found() {
        assert_eq!(check("crates/x/src/utils.rs", "//! Doc.\n"), ["a name that says nothing"]);
    }
}
