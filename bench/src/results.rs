//! `bench/RESULTS.md`: a section per comparison, each replaced by the run that measures it.

use std::path::Path;

use anyhow::Result;

const TITLE: &str = "# Figures\n\nWritten by `cargo xtask bench`; do not edit. Ratios say how many times better \
                     homeostat is.\n";

/// Puts `body` under the heading `title`, in place of what was there.
pub(crate) fn write(file: &Path, title: &str, body: &str) -> Result<()> {
    let before = std::fs::read_to_string(file).unwrap_or_default();
    std::fs::write(file, with_section(&before, title, body))?;
    Ok(())
}

fn with_section(before: &str, title: &str, body: &str) -> String {
    let mut text = String::from(TITLE);
    let mut done = false;
    for section in before.split("\n## ").skip(1) {
        let (name, old) = section.split_once('\n').unwrap_or((section, ""));
        done |= name == title;
        let body = if name == title { body } else { old };
        text.push_str(&format!("\n## {name}\n\n{}\n", body.trim()));
    }
    if !done {
        text.push_str(&format!("\n## {title}\n\n{}\n", body.trim()));
    }
    text
}
