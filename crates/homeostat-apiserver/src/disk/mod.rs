//! What durability rests on: the few calls to the file system that the log and its directory need.
//!
//! Nothing here is cached, retried or synced on its own. Real files are the only ones in use; the
//! tests of the log put a disk in their place that loses whatever was not synced.

#[cfg(test)]
pub(crate) mod lossy;

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt, OpenOptionsExt as _};
use std::path::Path;

/// How a file is opened; always to be written, and made for its owner only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It must be there.
    Existing,
    /// It is made if it is not there.
    Kept,
    /// It is made if it is not there, and emptied if it is.
    Emptied,
}

/// A place for files and the names that they have.
pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// A file to write to.
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn DiskFile>>;
    /// All of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The names in a directory, in any order; those that are no text are left out.
    fn names(&self, directory: &Path) -> io::Result<Vec<String>>;
    /// Moves a file to another name, whoever had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory for its owner only, in one that is there.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Makes names that were made, moved or removed in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// A file that is written to.
pub(crate) trait DiskFile: fmt::Debug + Send {
    /// Writes all of `bytes` at a place.
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Cuts the file, or fills it with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes everything about the file durable, but not its name.
    fn sync_all(&self) -> io::Result<()>;
}

/// The real file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileSystem;

impl Disk for FileSystem {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn DiskFile>> {
        let mut options = private(opening != Opening::Existing);
        options.truncate(opening == Opening::Emptied);
        Ok(Box::new(options.open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path).and_then(|directory| directory.sync_all())
    }
}

impl DiskFile for File {
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, at)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        File::set_len(self, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)
    }
}

/// How files with secrets in them are opened: for the owner only.
pub(crate) fn private(create: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).mode(0o600);
    options
}
