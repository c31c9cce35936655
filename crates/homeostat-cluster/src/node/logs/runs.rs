//! The logs of a container's runs on disk: which there are, and which go.

use std::collections::BTreeMap;
use std::io::Result;
use std::path::{Path, PathBuf};

/// The files of each run that has any, by its number.
///
/// # Errors
/// When the container's directory cannot be read.
pub(crate) async fn runs(container: &Path) -> Result<BTreeMap<i32, Vec<PathBuf>>> {
    let mut runs: BTreeMap<i32, Vec<PathBuf>> = BTreeMap::new();
    let mut entries = tokio::fs::read_dir(container).await?;
    while let Some(entry) = entries.next_entry().await? {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            let (run, rest) = name.split_once('.')?;
            rest.ends_with("log").then(|| run.parse().ok()).flatten()
        });
        if let Some(number) = number {
            runs.entry(number).or_default().push(entry.path());
        }
    }
    Ok(runs)
}

/// Removes the logs of all runs but the last `kept`. What cannot be removed stays: it is only disk
/// space.
pub(crate) async fn keep_last(container: &Path, kept: usize) {
    let there = runs(container).await.unwrap_or_default();
    for file in there.into_values().rev().skip(kept).flatten() {
        if let Err(error) = tokio::fs::remove_file(&file).await {
            tracing::warn!(path = %file.display(), %error, "an old log was not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_logs_of_the_last_runs_stay_with_all_their_files() {
        let container = tempfile::tempdir().unwrap();
        for name in ["0.0.log", "9.0.log", "10.0.log", "10.1.log", "termination-log"] {
            std::fs::write(container.path().join(name), "").unwrap();
        }
        keep_last(container.path(), 1).await;
        let mut left: Vec<_> = std::fs::read_dir(container.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["10.0.log", "10.1.log", "termination-log"]);
        keep_last(&container.path().join("missing"), 1).await;
    }
}
