//! What one reconcile has done and said so far. One that does nothing has none: every reconcile under
//! way takes memory, and most of those that wait have done little.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};

use super::finalizer::Asked;
use super::follow::Place;
use super::notes::Notes;
use super::status::SaidDegraded;
use super::{Context, Run};

/// The diary of one reconcile.
#[derive(Debug, Default)]
pub(super) struct Diary {
    /// For the journal.
    pub(super) notes: Notes,
    /// What it followed.
    pub(super) followed: BTreeSet<Place>,
    /// Whether it called the primary degraded itself, or not degraded.
    pub(super) said_degraded: Option<SaidDegraded>,
    /// The finalizers it asked for.
    pub(super) finalizers: Asked,
}

impl<K> Context<K> {
    /// Writes into the diary, which is begun if need be.
    pub(super) fn note<R>(&self, write: impl FnOnce(&mut Diary) -> R) -> R {
        write(self.run.diary().get_or_insert_default())
    }

    /// Looks into the diary, if there is one.
    pub(super) fn noted<R>(&self, look: impl FnOnce(&mut Diary) -> R) -> Option<R> {
        self.run.diary().as_deref_mut().map(look)
    }
}

impl<K> Run<K> {
    fn diary(&self) -> MutexGuard<'_, Option<Box<Diary>>> {
        self.diary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
