//! One change of one object, and the forms of it that all watchers share: for as long as there is
//! room for them, see [`Forms`]. It never decides how long a change itself is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::Stored;
use super::forms::Forms;

/// What a commit did to one object.
#[derive(Debug)]
pub struct Change {
    /// The object after the commit; its last state at the deletion's revision when deleted.
    pub object: Arc<Stored>,
    /// The object before the commit; `None` when it was created.
    pub previous: Option<Arc<Stored>>,
    /// Whether the commit removed it.
    pub deleted: bool,
    made: Mutex<Made>,
    /// Knows what is kept of all changes.
    forms: Arc<Forms>,
}

/// What was made of a change for its watchers.
#[derive(Debug, Default)]
struct Made {
    left: Option<Arc<Stored>>,
    forms: VecDeque<(String, Bytes)>,
    versions: VecDeque<(String, Version)>,
}

/// The same change in another version of its objects. Whoever finds it empty fills it, while the others
/// wait.
pub(crate) type Version = Arc<tokio::sync::Mutex<Option<Arc<Change>>>>;

/// So many forms of a change are kept. Watchers ask for them at the same time, so a few will do.
const FORMS: usize = 4;

/// What a change costs besides the bodies it keeps.
const OVERHEAD: usize = 200;

impl Change {
    pub(super) fn new(
        object: Arc<Stored>,
        previous: Option<Arc<Stored>>,
        deleted: bool,
        forms: &Arc<Forms>,
    ) -> Self {
        Self { object, previous, deleted, made: Mutex::default(), forms: forms.clone() }
    }

    /// The object before the commit, shown at the revision of the commit: what those see from whose
    /// selection it went.
    #[must_use]
    pub fn departed(self: &Arc<Self>) -> Option<Arc<Stored>> {
        let previous = self.previous.as_ref()?;
        if let Some(left) = &self.made().left {
            return Some(left.clone());
        }
        let left = Arc::new(previous.at(self.object.revision));
        self.made().left = Some(left.clone());
        self.forms.note(self, left.body.len());
        Some(left)
    }

    /// The form of that name, as `encode` makes it: once for everybody who asks while it is kept.
    pub fn form(self: &Arc<Self>, name: &str, encode: impl FnOnce() -> Bytes) -> Bytes {
        let bytes = {
            let mut made = self.made();
            if let Some((_, bytes)) = made.forms.iter().find(|(known, _)| known == name) {
                return bytes.clone();
            }
            let bytes = encode();
            if made.forms.len() == FORMS {
                made.forms.pop_front();
            }
            made.forms.push_back((name.to_owned(), bytes.clone()));
            bytes
        };
        self.forms.note(self, bytes.len());
        bytes
    }

    /// The version of that name, as somebody else made it or as the caller is to make it.
    pub(crate) fn version(&self, name: &str) -> Version {
        let mut made = self.made();
        if let Some((_, version)) = made.versions.iter().find(|(known, _)| known == name) {
            return version.clone();
        }
        if made.versions.len() == FORMS {
            made.versions.pop_front();
        }
        let version = Version::default();
        made.versions.push_back((name.to_owned(), version.clone()));
        version
    }

    /// The change with these objects, which are its own in another version.
    pub(crate) fn converted(
        self: &Arc<Self>,
        object: Arc<Stored>,
        previous: Option<Arc<Stored>>,
    ) -> Arc<Self> {
        let size = object.body.len() + previous.as_ref().map_or(0, |it| it.body.len());
        let converted = Self::new(object, previous, self.deleted, &self.forms);
        self.forms.note(self, OVERHEAD + size);
        Arc::new(converted)
    }

    /// Lets go of everything that can be made again.
    pub(super) fn strip(&self) {
        let made = std::mem::take(&mut *self.made());
        // Outside of the lock: a version may hold the last of a lot.
        drop(made);
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes that are kept for the sake of this change alone. A live object is not among them,
    /// and one that was replaced belongs to the change that did so. Nor are its forms: those have a
    /// limit of their own.
    pub(super) fn weight(&self) -> usize {
        let last = if self.deleted { self.object.body.len() } else { 0 };
        OVERHEAD + last + self.previous.as_ref().map_or(0, |previous| previous.body.len())
    }
}
