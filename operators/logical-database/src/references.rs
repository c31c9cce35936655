//! Who refers to which Secret, learnt from reconciles, so that a Secret's change wakes them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use homeostat::Key;

/// A map from the object that refers to the Secret it refers to.
#[derive(Debug, Default)]
pub(crate) struct References {
    secrets: Mutex<BTreeMap<Key, Key>>,
}

impl References {
    /// Remembers that `object` refers to `secret`, and to no other.
    pub(crate) fn set(&self, object: &Key, secret: Key) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.insert(object.clone(), secret);
    }

    /// Forgets an object that is going.
    pub(crate) fn forget(&self, object: &Key) {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).remove(object);
    }

    /// The objects that refer to `secret`.
    pub(crate) fn to(&self, secret: &Key) -> Vec<Key> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let referring = secrets.iter().filter(|(_, referred)| *referred == secret);
        referring.map(|(object, _)| object.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_reference_leaves_the_old_secret() {
        let references = References::default();
        let (object, old, new) = (
            Key::namespaced("ns", "a"),
            Key::namespaced("ns", "old"),
            Key::namespaced("ns", "new"),
        );
        references.set(&object, old.clone());
        references.set(&object, new.clone());
        assert!(references.to(&old).is_empty());
        assert_eq!(references.to(&new), vec![object.clone()]);
        references.forget(&object);
        assert!(references.to(&new).is_empty());
    }
}
