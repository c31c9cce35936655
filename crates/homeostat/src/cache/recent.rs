//! The objects that were read lately, as they were decoded; a small memo beside the bytes.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use super::Entry;

/// How many typed objects an informer keeps decoded.
const MOST: usize = 32;

/// Typed views of the last objects read, oldest first.
#[derive(Default)]
pub(crate) struct Recent(VecDeque<View>);

/// A version of an object and what it was decoded to.
type View = (Arc<Entry>, Arc<dyn Any + Send + Sync>);

impl Recent {
    /// The typed view of exactly that version of an object, if it is still there.
    pub(crate) fn get<K: Send + Sync + 'static>(&self, entry: &Arc<Entry>) -> Option<Arc<K>> {
        let same = self.0.iter().filter(|(known, _)| Arc::ptr_eq(known, entry));
        same.into_iter().find_map(|(_, typed)| Arc::clone(typed).downcast().ok())
    }

    /// Keeps a typed view; returns what had to go for it, to be dropped where nobody waits.
    pub(crate) fn put<K: Send + Sync + 'static>(
        &mut self,
        entry: &Arc<Entry>,
        typed: &Arc<K>,
    ) -> Option<View> {
        let oldest = if self.0.len() == MOST { self.0.pop_front() } else { None };
        self.0.push_back((Arc::clone(entry), Arc::clone(typed) as _));
        oldest
    }
}
