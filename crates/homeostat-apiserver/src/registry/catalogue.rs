//! The kinds served right now: the built-in table plus whatever definitions added.
//!
//! A catalogue never changes; the registry swaps it as a whole, so a request sees one state of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kinds::Kind;

/// All served kinds, found by where they are served.
#[derive(Debug, Default)]
pub struct Catalogue {
    kinds: Vec<Arc<Kind>>,
    by_path: BTreeMap<(String, String, String), usize>,
    version: u64,
}

impl Catalogue {
    /// A catalogue of these kinds; of two in one place the first is served.
    pub(crate) fn new(kinds: impl IntoIterator<Item = Arc<Kind>>, version: u64) -> Self {
        let mut catalogue = Self { version, ..Self::default() };
        for kind in kinds {
            let path = (kind.group.clone(), kind.version.clone(), kind.plural.clone());
            if let std::collections::btree_map::Entry::Vacant(free) = catalogue.by_path.entry(path)
            {
                free.insert(catalogue.kinds.len());
                catalogue.kinds.push(kind);
            }
        }
        catalogue
    }

    /// The kind served at `group/version/plural`.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let path = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.by_path.get(&path).map(|at| &self.kinds[*at])
    }

    /// Whether anything is served in that group and version.
    #[must_use]
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.kinds.iter().any(|kind| kind.group == group && kind.version == version)
    }

    /// Every kind, built-in ones first.
    #[must_use]
    pub fn all(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    /// Rises with every swap: whoever renders from a catalogue may cache by it.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}
