//! What earlier agents left on disk of the Pods of this node: the logs of those that are still in
//! the API, and the directories of those that are not, which go.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};

use homeostat::cache::Informer;
use tokio::fs::read_dir;

use super::directory::Runs;
use super::host::Host;
use super::logs::{self, Log};

/// Where a Pod lives on disk.
pub(super) fn directory(host: &Host, uid: &str) -> PathBuf {
    host.data.join("pods").join(uid)
}

/// Removes a Pod's directory, if there is one.
pub(super) async fn remove(host: &Host, uid: &str) {
    let directory = directory(host, uid);
    if let Err(error) = tokio::fs::remove_dir_all(&directory).await
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(path = %directory.display(), %error, "not removed");
    }
}

/// The last runs of each container of a Pod, as far as their logs are there.
pub(super) async fn runs(host: &Host, uid: &str) -> BTreeMap<String, Runs> {
    let containers = directory(host, uid).join("containers");
    let mut found = BTreeMap::new();
    for name in names(&containers).await.unwrap_or_default() {
        match last_runs(&containers.join(&name)).await {
            Ok(runs) if runs.newest.is_some() => drop(found.insert(name, runs)),
            Ok(_) => {}
            Err(error) => tracing::warn!(container = name, %error, "its old logs cannot be read"),
        }
    }
    found
}

async fn last_runs(container: &Path) -> Result<Runs> {
    let there = logs::runs(container).await?;
    let mut stems = there.into_keys().rev().map(|run| container.join(run.to_string()));
    let (newest, older) = (stems.next(), stems.next());
    let open = async |stem: Option<PathBuf>| match stem {
        Some(stem) => Log::reopen(stem).await.map(Some),
        None => Ok(None),
    };
    let (newest, older) = (open(newest).await?, open(older).await?);
    Ok(Runs { newest, older, ..Runs::default() })
}

/// Removes the directories of Pods that the API does not know any more. Asked before any Pod runs:
/// only what is there now is looked at.
pub(super) async fn sweep(host: &Host, pods: Informer) {
    let there = names(&host.data.join("pods")).await.unwrap_or_default();
    if there.is_empty() || !pods.wait_for_sync().await {
        return;
    }
    let entries = pods.entries();
    for uid in there.iter().filter(|uid| !entries.iter().any(|pod| *pod.header.uid == ***uid)) {
        remove(host, uid).await;
    }
}

async fn names(directory: &Path) -> Result<Vec<String>> {
    let mut entries = read_dir(directory).await?;
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
