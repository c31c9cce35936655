//! The seam to whatever keeps commits beyond the life of the process.
//!
//! The store needs very little of it: everything that was kept, once, at the start; and then to be
//! told when commits are safe. Reads, revisions, history and watches are the store's own, so a
//! storage can be a file of records or a remote database that takes each commit as a transaction.

use std::fmt;
use std::path::PathBuf;

use super::head::Commit;
use super::snapshot::Snapshot;
use super::{Key, Stored};

/// Keeps commits where they survive.
pub trait Storage: Send + fmt::Debug + 'static {
    /// Hands over everything that is kept, in the order of [`Loaded`]. Called once, before
    /// anything else.
    ///
    /// # Errors
    /// [`StorageError`] when it cannot be read or is damaged; the store does not open then.
    fn load(&mut self, each: &mut dyn FnMut(Loaded)) -> Result<(), StorageError>;

    /// Keeps `commits`, in order, and returns when they are safe: they will be loaded again even
    /// if the process or the machine ends right now. `after` is the state that they lead to.
    ///
    /// # Errors
    /// [`StorageError`] when that cannot be said. The store then writes nothing any more: what the
    /// storage holds is unknown until it is opened again.
    fn append(&mut self, commits: &[Commit], after: &Snapshot) -> Result<(), StorageError>;
}

/// A piece of what was kept: first a beginning with its objects, if there is one, then commits.
#[derive(Debug)]
pub enum Loaded {
    /// The following objects are all there were at this revision; nothing older is known.
    Beginning(u64),
    /// An object of the beginning.
    Object {
        /// Its resource.
        resource: String,
        /// The object.
        object: Stored,
    },
    /// A commit after the beginning; their revisions rise by one.
    Commit {
        /// The revision.
        revision: u64,
        /// What it did: the object, or `None` for a deletion.
        changes: Vec<(String, Key, Option<Stored>)>,
    },
}

/// Why a storage cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The system refuses.
    #[error("{path}: cannot {what}", path = path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// What is there is not what was written.
    #[error(
        "{path} is damaged at byte {at}: {what}; nothing was changed",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        at: u64,
        /// What is wrong there.
        what: String,
    },
    /// Somebody else is at it.
    #[error(
        "{path} is in use by another process; stop that one, or choose another directory",
        path = path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// Something else has the name of the directory.
    #[error("{path} is not a directory", path = path.display())]
    NotADirectory {
        /// The name.
        path: PathBuf,
    },
    /// The directory is not empty, and no server has used it.
    #[error("{path} holds {found}, and nothing that a server wrote", path = path.display())]
    OfAnother {
        /// The directory.
        path: PathBuf,
        /// Some of what is in it.
        found: String,
    },
    /// It worked, and then did not.
    #[error("the first objects could not be written; the server's log says why")]
    Failed,
    /// Written by a version that knows more.
    #[error(
        "{path} has format {found}, and this version reads up to {known}",
        path = path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The newest one known.
        known: u32,
    },
}

impl StorageError {
    pub(crate) fn damaged(path: impl Into<PathBuf>, at: usize, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), at: at as u64, what: what.into() }
    }
}
