//! Where the stores of the tests keep what they are told: nowhere, on a disk that is played, or in
//! real files.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::{Just, Strategy, prop_oneof};
use tempfile::TempDir;

use super::super::{Limits, Log, LogOptions, StorageError, Store};
use crate::disk::lossy::LossyDisk;
use crate::disk::{Disk, FileSystem};

/// How a store keeps what it is told; with a log, how long that may grow before a snapshot takes its
/// place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    Memory,
    Played { longest: u64 },
    Files { longest: u64 },
}

/// Every way to keep things; real files seldom, for they are slow.
pub(super) fn keepings() -> impl Strategy<Value = Keeping> {
    prop_oneof![
        10 => Just(Keeping::Memory),
        10 => longest().prop_map(|longest| Keeping::Played { longest }),
        1 => longest().prop_map(|longest| Keeping::Files { longest }),
    ]
}

/// The same without snapshots, so that the past is never cut off, nor in real files.
pub(super) fn keepings_of_the_past() -> impl Strategy<Value = Keeping> {
    prop_oneof![2 => Just(Keeping::Memory), 1 => Just(Keeping::Played { longest: u64::MAX })]
}

/// Snapshots all the time, now and then, or never.
pub(super) fn longest() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0_u64), Just(1500), Just(u64::MAX)]
}

/// A place for one store at a time.
#[derive(Debug)]
pub(super) struct Place {
    disk: Option<Arc<dyn Disk>>,
    directory: PathBuf,
    pub(super) longest: u64,
    _files: Option<TempDir>,
}

impl Place {
    pub(super) fn new(keeping: Keeping) -> Self {
        match keeping {
            Keeping::Memory => {
                let directory = PathBuf::new();
                Self { disk: None, directory, longest: u64::MAX, _files: None }
            }
            Keeping::Played { longest } => Self::on(&LossyDisk::new(), longest),
            Keeping::Files { longest } => {
                let files = TempDir::new().unwrap();
                let (disk, directory) = (Some(Arc::new(FileSystem) as _), files.path().to_owned());
                Self { disk, directory, longest, _files: Some(files) }
            }
        }
    }

    /// The root of that disk.
    pub(super) fn on(disk: &LossyDisk, longest: u64) -> Self {
        let disk = Some(Arc::new(disk.clone()) as _);
        Self { disk, directory: "/".into(), longest, _files: None }
    }

    /// Opens the store that is there; the one before must be gone.
    pub(super) fn open(&self, limits: Limits) -> Result<Store, StorageError> {
        let Some(disk) = &self.disk else { return Ok(Store::new(limits)) };
        let options = LogOptions { longest: self.longest };
        Store::open(limits, Log::on(disk.clone(), self.directory.clone(), options)?)
    }

    /// Whether it can be opened again.
    pub(super) fn keeps(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether snapshots are taken.
    pub(super) fn snapshots(&self) -> bool {
        self.longest < u64::MAX
    }
}
