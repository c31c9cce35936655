//! The path elements of one level of a field set, in order.
//!
//! A sorted vector: most levels hold a few elements, are built once and only read afterwards. A level is
//! filled in any order and then put in order once, so that the order of an object's fields never makes
//! it slow.

use super::path::PathElement;
use super::set::Entry;

/// Path elements with what is below them, each element once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entries {
    elements: Vec<(PathElement, Entry)>,
}

impl Entries {
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.elements.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&PathElement, &Entry)> {
        self.elements.iter().map(|(element, entry)| (element, entry))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&PathElement, &mut Entry)> {
        self.elements.iter_mut().map(|(element, entry)| (&*element, entry))
    }

    pub(super) fn get(&self, element: &PathElement) -> Option<&Entry> {
        let place = self.place(element).ok()?;
        Some(&self.elements[place].1)
    }

    pub(super) fn get_mut(&mut self, element: &PathElement) -> Option<&mut Entry> {
        let place = self.place(element).ok()?;
        Some(&mut self.elements[place].1)
    }

    /// The entry of a field, without a path element made for the question.
    pub(super) fn field(&self, name: &str) -> Option<&Entry> {
        self.debug_assert_order();
        let place = self.elements.binary_search_by(|(known, _)| known.cmp_field(name)).ok()?;
        Some(&self.elements[place].1)
    }

    /// The entry of that element, an empty one if there was none.
    pub(super) fn entry(&mut self, element: PathElement) -> &mut Entry {
        let place = self.place(&element).unwrap_or_else(|place| {
            self.elements.insert(place, (element, Entry::default()));
            place
        });
        &mut self.elements[place].1
    }

    /// Adds at the end, whatever the order; [`Entries::put_in_order`] must follow.
    pub(super) fn push(&mut self, element: PathElement, entry: Entry) {
        self.elements.push((element, entry));
    }

    /// Sorts what was pushed; of two entries for one element the later one stays.
    pub(super) fn put_in_order(&mut self) {
        if self.is_in_order() {
            return;
        }
        self.elements.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.elements.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(&mut later.1, &mut kept.1);
            }
            same
        });
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        self.elements.retain(|(_, entry)| keep(entry));
    }

    fn place(&self, element: &PathElement) -> Result<usize, usize> {
        self.debug_assert_order();
        self.elements.binary_search_by(|(known, _)| known.cmp(element))
    }

    fn is_in_order(&self) -> bool {
        self.elements.is_sorted_by(|(a, _), (b, _)| a < b)
    }

    /// What is searched must be in order, or somebody would lose what they own.
    fn debug_assert_order(&self) {
        debug_assert!(self.is_in_order(), "a level was not put in order: {:?}", self.elements);
    }
}
