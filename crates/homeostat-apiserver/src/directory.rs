//! The data directory of a server: one process at a time, readable by its owner only. Never takes a
//! directory with somebody else's files in it.
//!
//! ```text
//! DIR/lock        held while a process uses the directory
//! DIR/store/      the log and its snapshots
//! DIR/<name>      small secrets: the authority's key, the admin's token
//! ```

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, FileSystem, private};
use crate::store::StorageError;

/// The first file that is made in a directory, always empty: the directories that have it are ours.
const LOCK: &str = "lock";

/// A directory that this process, and no other, uses; clones share the lock.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    path: PathBuf,
    _lock: Arc<File>,
}

impl DataDirectory {
    /// Makes the directory if it is not there (mode 0700) and takes it for this process until the
    /// last clone is dropped. The system takes it back however the process ends.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another process has it, [`StorageError::NotADirectory`] when it
    /// is something else, [`StorageError::OfAnother`] when something is in it and nothing of ours,
    /// [`StorageError::Io`] when it cannot be made or opened.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        if path.exists() && !path.is_dir() {
            return Err(StorageError::NotADirectory { path: path.to_owned() });
        }
        make_private(&FileSystem, path)?;
        let path = path.canonicalize().map_err(|source| failed("find", path, source))?;
        let lock = path.join(LOCK);
        if let Some(found) = strangers(&path)? {
            return Err(StorageError::OfAnother { path, found });
        }
        let file = private(true)
            .truncate(false)
            .open(&lock)
            .map_err(|source| failed("open", &lock, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, _lock: Arc::new(file) }),
            Err(fs::TryLockError::WouldBlock) => Err(StorageError::InUse { path }),
            Err(fs::TryLockError::Error(source)) => Err(failed("lock", &lock, source)),
        }
    }

    /// Where it is, as an absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory below this one, made if it is not there (mode 0700).
    ///
    /// # Errors
    /// [`StorageError::Io`] when it cannot be made.
    pub fn below(&self, name: &str) -> Result<PathBuf, StorageError> {
        let path = self.path.join(name);
        make_private(&FileSystem, &path)?;
        Ok(path)
    }

    /// The text of the small file `name`, written with what `make` gives (mode 0600, whole or not
    /// at all) when there is none.
    ///
    /// # Errors
    /// [`StorageError::Io`] when it cannot be read or written, [`StorageError::Damaged`] when it is no
    /// text, or whatever `make` fails with.
    pub fn keep<E: From<StorageError>>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<String, E>,
    ) -> Result<String, E> {
        let path = self.path.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(StorageError::damaged(path, 0, "it is no text").into());
            }
            Err(source) => return Err(failed("read", &path, source).into()),
        }
        let text = make()?;
        write_whole(&path, text.as_bytes())?;
        Ok(text)
    }
}

/// Writes a file beside its place, makes it durable and moves it there.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let beside = path.with_extension("new");
    let written = || -> std::io::Result<()> {
        let mut file = private(true).truncate(true).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    written().map_err(|source| failed("write", path, source))?;
    let Some(parent) = path.parent() else { return Ok(()) };
    FileSystem.sync_directory(parent).map_err(|source| failed("sync", parent, source))
}

pub(crate) fn failed(what: &'static str, path: &Path, source: std::io::Error) -> StorageError {
    StorageError::Io { what, path: path.to_owned(), source }
}

/// What is in a directory that is not ours, in words, unless it is as good as empty.
fn strangers(path: &Path) -> Result<Option<String>, StorageError> {
    let ours = fs::symlink_metadata(path.join(LOCK));
    if ours.is_ok_and(|lock| lock.is_file() && lock.len() == 0) {
        return Ok(None);
    }
    let listed = || -> std::io::Result<Vec<String>> {
        let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().display().to_string()));
        names.collect()
    };
    let mut names = listed().map_err(|source| failed("list", path, source))?;
    // Every new file system has it.
    names.retain(|name| name != "lost+found");
    names.sort();
    Ok(match names.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        [first, second] => Some(format!("{first} and {second}")),
        [first, second, more @ ..] => Some(format!("{first}, {second} and {} more", more.len())),
    })
}

/// Makes a directory and those above it, where they are not there, and its name durable: what is
/// written below is only as durable as the way to it.
fn make_private(disk: &dyn Disk, path: &Path) -> Result<(), StorageError> {
    let path = std::path::absolute(path).map_err(|source| failed("find", path, source))?;
    let Some(parent) = path.parent() else { return Ok(()) };
    let mut made = disk.make_directory(&path);
    if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        make_private(disk, parent)?;
        made = disk.make_directory(&path);
    }
    let was_there = match made {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => true,
        Err(source) => return Err(failed("make the directory", &path, source)),
    };
    match disk.sync_directory(parent) {
        // Whoever made it in a place that we may not read has seen to it.
        Err(error) if was_there && error.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced.map_err(|source| failed("sync", parent, source)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use homeostat_env::Env;
    use jiff::Timestamp;

    use super::*;
    use crate::disk::Opening;
    use crate::disk::lossy::{LossyDisk, Trouble};

    #[test]
    fn the_way_to_a_durable_file_is_durable_too_whoever_began_it() {
        for seed in 0..20 {
            let disk = LossyDisk::new();
            let (path, file) = (Path::new("/srv/data/store"), Path::new("/srv/data/store/file"));
            make_private(&disk, Path::new("/srv")).unwrap();
            if seed % 2 == 0 {
                // By a process that was killed right then.
                disk.make_directory(Path::new("/srv/data")).unwrap();
            }
            make_private(&disk, Path::new("/srv/data")).unwrap();
            make_private(&disk, path).unwrap();
            disk.open(file, Opening::Kept).unwrap().sync_all().unwrap();
            disk.sync_directory(path).unwrap();
            disk.expect(0, Trouble::PowerLoss);
            disk.remove(file).unwrap_err();
            disk.restart(&Env::simulated(seed, Timestamp::UNIX_EPOCH));
            assert!(disk.read(file).is_ok(), "seed {seed}");
        }
    }

    #[test]
    fn only_one_at_a_time_has_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        let first = DataDirectory::open(&path).unwrap();
        assert!(matches!(DataDirectory::open(&path), Err(StorageError::InUse { .. })));
        drop(first);
        DataDirectory::open(&path).unwrap();
    }

    #[test]
    fn what_is_kept_is_made_once_and_for_the_owner_only() {
        let place = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(&place.path().join("data")).unwrap();
        let keep =
            |text: &str| directory.keep::<StorageError>("token", || Ok(text.to_owned())).unwrap();
        assert_eq!((keep("first"), keep("second")), ("first".into(), "first".into()));
        let mode = |name: &str| {
            fs::metadata(directory.path().join(name)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!((mode("token"), mode("lock"), mode("")), (0o600, 0o600, 0o700));
    }

    #[test]
    fn a_directory_of_somebody_else_is_left_alone_and_one_of_ours_opens_again() {
        let place = tempfile::tempdir().unwrap();
        let names = || fs::read_dir(place.path()).unwrap().count();
        fs::create_dir(place.path().join("lost+found")).unwrap();
        fs::write(place.path().join("thesis"), "a year of work").unwrap();
        let found = |path: &Path| match DataDirectory::open(path) {
            Err(StorageError::OfAnother { found, .. }) => found,
            other => panic!("{other:?}"),
        };
        assert_eq!((found(place.path()), names()), ("thesis".to_owned(), 2));
        fs::write(place.path().join("lock"), "of another program").unwrap();
        assert_eq!((found(place.path()), names()), ("lock and thesis".to_owned(), 3));
        let file = place.path().join("thesis");
        let refused = DataDirectory::open(&file);
        assert!(matches!(refused, Err(StorageError::NotADirectory { path }) if path == file));

        fs::remove_file(place.path().join("lock")).unwrap();
        fs::remove_file(file).unwrap();
        drop(DataDirectory::open(place.path()).unwrap());
        fs::write(place.path().join("notes"), "added by its owner").unwrap();
        DataDirectory::open(place.path()).unwrap();
    }
}
