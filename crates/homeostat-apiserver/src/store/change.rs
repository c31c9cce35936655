//! One change of one object, and the forms of it that all watchers share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use super::Stored;

/// What a commit did to one object.
#[derive(Debug)]
pub struct Change {
    /// The object after the commit; its last state at the deletion's revision when deleted.
    pub object: Arc<Stored>,
    /// The object before the commit; `None` when it was created.
    pub previous: Option<Arc<Stored>>,
    /// Whether the commit removed it.
    pub deleted: bool,
    left: OnceLock<Arc<Stored>>,
    forms: Mutex<VecDeque<(String, Bytes)>>,
    versions: Mutex<VecDeque<(String, Version)>>,
}

/// The same change in another version of its objects. Whoever finds it empty fills it, while the others
/// wait.
pub(crate) type Version = Arc<tokio::sync::Mutex<Option<Arc<Change>>>>;

/// So many forms of a change are kept. Watchers ask for them at the same time, so a few will do.
const FORMS: usize = 4;

/// What a change costs besides the bodies it keeps.
const OVERHEAD: usize = 200;

impl Change {
    pub(crate) fn new(object: Arc<Stored>, previous: Option<Arc<Stored>>, deleted: bool) -> Self {
        let (left, forms, versions) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Self { object, previous, deleted, left, forms, versions }
    }

    /// The object before the commit, shown at the revision of the commit: what those see from whose
    /// selection it went.
    #[must_use]
    pub fn departed(&self) -> Option<Arc<Stored>> {
        let previous = self.previous.as_ref()?;
        Some(self.left.get_or_init(|| Arc::new(previous.at(self.object.revision))).clone())
    }

    /// The form of that name, as `encode` makes it: once for everybody who asks while it is kept.
    pub fn form(&self, name: &str, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = forms.iter().find(|(known, _)| known == name) {
            return bytes.clone();
        }
        let bytes = encode();
        if forms.len() == FORMS {
            forms.pop_front();
        }
        forms.push_back((name.to_owned(), bytes.clone()));
        bytes
    }

    /// The version of that name, as somebody else made it or as the caller is to make it.
    pub(crate) fn version(&self, name: &str) -> Version {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, version)) = versions.iter().find(|(known, _)| known == name) {
            return version.clone();
        }
        if versions.len() == FORMS {
            versions.pop_front();
        }
        let version = Version::default();
        versions.push_back((name.to_owned(), version.clone()));
        version
    }

    /// The bytes that are kept for the sake of this change alone. A live object is not among them,
    /// and one that was replaced belongs to the change that did so.
    pub(super) fn weight(&self) -> usize {
        let last = if self.deleted { self.object.body.len() } else { 0 };
        OVERHEAD + last + self.previous.as_ref().map_or(0, |previous| previous.body.len())
    }
}
