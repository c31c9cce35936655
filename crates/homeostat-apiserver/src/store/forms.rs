//! What is kept of changes in other forms than the stored one: tables, metadata, other versions.
//!
//! Watchers ask for the same form at about the same time, so the newest ones are worth their room
//! and the others are not: they are made again for who comes late. It knows how much was made of
//! which change, in the order of the making, and never what.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Change;

/// What a form costs besides its bytes.
const OVERHEAD: usize = 100;

#[derive(Debug)]
pub(super) struct Forms {
    kept: Mutex<Kept>,
    most: usize,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first; some of the changes may be gone already.
    made: VecDeque<(Weak<Change>, usize)>,
    bytes: usize,
}

impl Forms {
    /// So many bytes are kept of all changes together.
    pub(super) fn with_room_for(most: usize) -> Self {
        Self { kept: Mutex::default(), most }
    }

    /// So many bytes were made of `change`. Those of which something was made first make room; the
    /// caller holds no lock of any change.
    pub(super) fn note(&self, change: &Arc<Change>, bytes: usize) {
        let mut strip = Vec::new();
        {
            let mut kept = self.kept();
            let bytes = OVERHEAD + bytes;
            kept.made.push_back((Arc::downgrade(change), bytes));
            kept.bytes += bytes;
            while kept.bytes > self.most {
                let Some((change, bytes)) = kept.made.pop_front() else { break };
                kept.bytes -= bytes;
                strip.extend(change.upgrade());
            }
        }
        strip.iter().for_each(|change| change.strip());
    }

    /// The bytes that are kept at the most.
    pub(super) fn bytes(&self) -> usize {
        self.kept().bytes
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;

    use super::*;
    use crate::store::{Key, Pairs, Stored};

    fn change(forms: &Arc<Forms>, revision: u64) -> Arc<Change> {
        let stored = |revision| {
            Arc::new(Stored {
                revision,
                key: Key::new("default", "a"),
                api_version: "v1".into(),
                labels: Pairs::default(),
                fields: Pairs::default(),
                body: Bytes::from_static(b"{\"metadata\":{\"resourceVersion\":\"1\"}}"),
            })
        };
        Arc::new(Change::new(stored(revision), Some(stored(revision - 1)), false, forms))
    }

    #[test]
    fn the_forms_of_old_changes_make_room_for_those_of_new_ones() {
        let forms = Arc::new(Forms::with_room_for(10_000));
        let made = Cell::new(0);
        let show = |change: &Arc<Change>| {
            change.form("table", || {
                made.set(made.get() + 1);
                vec![b'x'; 900].into()
            })
        };
        let changes: Vec<_> = (2..1002).map(|revision| change(&forms, revision)).collect();
        let shown: Vec<Bytes> = changes.iter().map(&show).collect();
        assert_eq!(made.get(), 1000);
        let unique = shown.into_iter().filter(Bytes::is_unique).count();
        assert_eq!(unique, 990, "nobody but who asked has the forms of old changes");
        assert!(forms.bytes() <= 10_000, "{}", forms.bytes());
        show(&changes[999]);
        assert_eq!(made.get(), 1000, "the newest ones are kept");
        show(&changes[0]);
        assert_eq!(made.get(), 1001, "old ones are made again");
    }

    #[test]
    fn what_left_a_selection_and_other_versions_count_too() {
        let forms = Arc::new(Forms::with_room_for(2_000));
        let first = change(&forms, 2);
        let left = first.departed().unwrap();
        let version = first.version("v2");
        *version.try_lock().unwrap() =
            Some(first.converted(first.object.clone(), first.previous.clone()));
        assert_eq!((Arc::strong_count(&left), Arc::strong_count(&version)), (2, 2));
        for revision in 3..30 {
            change(&forms, revision).departed().unwrap();
        }
        assert_eq!((Arc::strong_count(&left), Arc::strong_count(&version)), (1, 1));
    }
}
