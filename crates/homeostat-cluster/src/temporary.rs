//! Directories for the time of a process's life: Pods and volumes that nobody will ask for again.
//!
//! Each holds a lock for as long as its process lives, so that whoever starts next can tell what a
//! killed process left behind from what is in use.

use std::fs::{self, DirBuilder, File};
use std::io::Result;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use homeostat_env::Env;
use rustix::fs::{FlockOperation, flock};

const PREFIX: &str = "homeostat-";
const LOCK: &str = "lock";

/// A directory that is removed with this handle, or by whoever starts next when nobody drops it.
#[derive(Debug)]
pub struct TemporaryDirectory {
    path: PathBuf,
    lock: Option<File>,
}

impl TemporaryDirectory {
    /// A fresh one below `parent`, for its owner only. `purpose` is for people who list the folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(parent: &Path, purpose: &str, env: &Env) -> Result<Self> {
        let name = format!("{PREFIX}{purpose}-{:016x}", env.random_u64());
        // It gets the name that others look for only when it is locked.
        let (path, fresh) = (parent.join(&name), parent.join(format!(".{name}")));
        DirBuilder::new().recursive(true).mode(0o700).create(&fresh)?;
        let lock = File::create(fresh.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&fresh, &path)?;
        Ok(Self { path, lock: Some(lock) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if self.lock.is_some()
            && let Err(error) = remove(&self.path)
        {
            // Whoever starts next on this host will.
            tracing::warn!(path = %self.path.display(), %error, "not removed");
        }
    }
}

/// Removes a directory, its lock last: what is interrupted here is taken up by whoever starts next.
fn remove(path: &Path) -> Result<()> {
    for entry in fs::read_dir(path)?.filter_map(Result::ok) {
        if entry.file_name() == LOCK {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(path)
}

/// Removes the temporary directories below `parent` whose processes are gone.
pub(crate) fn sweep(parent: &Path) {
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
        match remove(&entry.path()) {
            Ok(()) => tracing::info!(path = %entry.path().display(), "left by a killed process"),
            Err(error) => tracing::debug!(path = %entry.path().display(), %error, "not removed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let env = Env::system();
        let used = TemporaryDirectory::new(parent.path(), "node", &env).unwrap();
        let mut left = TemporaryDirectory::new(parent.path(), "up", &env).unwrap();
        fs::write(left.path().join("file"), "").unwrap();
        // A process that is killed lets go of its locks and removes nothing.
        drop(left.lock.take());
        let stranger = parent.path().join("homeostat-without-lock");
        fs::create_dir(&stranger).unwrap();
        sweep(parent.path());
        assert!(used.path().exists() && stranger.exists());
        assert!(!left.path().exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
