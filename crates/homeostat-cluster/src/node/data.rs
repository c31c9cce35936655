//! Where Pods live on disk: a directory that was given, or one for the time of the agent's life.
//!
//! A temporary one holds a lock for as long as its agent lives, so that whoever starts next can
//! tell what a killed agent left behind from what is in use.

use std::fs::{self, DirBuilder, File};
use std::io::Result;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use homeostat_env::Env;
use rustix::fs::{FlockOperation, flock};

const PREFIX: &str = "homeostat-node-";
const LOCK: &str = "lock";

/// The directory; a temporary one is removed with this handle.
#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
    /// Held while a temporary directory is in use.
    lock: Option<File>,
}

impl DataDirectory {
    /// A directory that stays.
    pub(super) fn kept(path: &Path) -> Result<Self> {
        private(path)?;
        Ok(Self { path: path.to_owned(), lock: None })
    }

    /// A fresh one below `parent`.
    pub(super) fn temporary(parent: &Path, env: &Env) -> Result<Self> {
        let name = format!("{PREFIX}{:016x}", env.random_u64());
        // It gets the name that others look for only when it is locked.
        let (path, fresh) = (parent.join(&name), parent.join(format!(".{name}")));
        private(&fresh)?;
        let lock = File::create(fresh.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&fresh, &path)?;
        Ok(Self { path, lock: Some(lock) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        if self.lock.is_some()
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            // The next agent on this host will.
            tracing::warn!(path = %self.path.display(), %error, "not removed");
        }
    }
}

fn private(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes the temporary directories below `parent` whose agents are gone.
pub(super) fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry
                .metadata()
                .is_ok_and(|meta| meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw());
        let Some(lock) = ours.then(|| File::open(entry.path().join(LOCK)).ok()).flatten() else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        match fs::remove_dir_all(entry.path()) {
            Ok(()) => tracing::info!(path = %entry.path().display(), "left by a killed agent"),
            Err(error) => tracing::debug!(path = %entry.path().display(), %error, "not removed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_agent_left_is_removed_and_what_is_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let env = Env::system();
        let used = DataDirectory::temporary(parent.path(), &env).unwrap();
        let mut left = DataDirectory::temporary(parent.path(), &env).unwrap();
        fs::write(left.path().join("file"), "").unwrap();
        // A process that is killed lets go of its locks and removes nothing.
        drop(left.lock.take());
        let stranger = parent.path().join("homeostat-node-without-lock");
        fs::create_dir(&stranger).unwrap();
        sweep(parent.path());
        assert!(used.path().exists() && stranger.exists());
        assert!(!left.path().exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
