//! A set of fields of an object, kept as a tree.
//!
//! The set holds paths, not values. Being below a field says nothing about the field itself:
//! `.spec` is in the set only when it was put there. The whole object is never in a set.

use std::fmt;

use super::entries::Entries;
use super::path::PathElement;

/// An ordered set of paths. Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) entries: Entries,
}

/// What a set holds at and below one path element; never both absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The field itself is in the set.
    pub(super) member: bool,
    /// The fields below it that are in the set.
    pub(super) below: FieldSet,
}

impl Entry {
    pub(super) fn leaf() -> Self {
        Self { member: true, below: FieldSet::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// A set of paths that consist of field names only; an empty path is left out.
    pub fn of_fields<'a>(paths: impl IntoIterator<Item = &'a [&'a str]>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(path.iter().map(|name| PathElement::field(*name)));
        }
        set
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a path; its parents are not added. An empty path changes nothing.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let entry = set.entries.entry(element);
            if path.peek().is_none() {
                entry.member = true;
                return;
            }
            set = &mut entry.below;
        }
    }

    /// Adds what `entry` holds under `element`; an empty entry leaves no trace. When all are there,
    /// the entries must be put in order.
    pub(super) fn attach(&mut self, element: PathElement, entry: Entry) {
        if !entry.is_empty() {
            self.entries.push(element, entry);
        }
    }

    /// Whether exactly this path is in the set.
    #[must_use]
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let mut set = self;
        for element in parents {
            let Some(entry) = set.entries.get(element) else { return false };
            set = &entry.below;
        }
        set.entries.get(last).is_some_and(|entry| entry.member)
    }

    /// Everything in either set.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    fn add(&mut self, other: &Self) {
        if self.is_empty() {
            self.entries = other.entries.clone();
            return;
        }
        let mut others = Vec::new();
        for (element, theirs) in other.entries.iter() {
            if let Some(ours) = self.entries.get_mut(element) {
                ours.member |= theirs.member;
                ours.below.add(&theirs.below);
            } else {
                others.push((element, theirs));
            }
        }
        for (element, theirs) in others {
            self.entries.push(element.clone(), theirs.clone());
        }
        self.entries.put_in_order();
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for (element, ours) in self.entries.iter() {
            if let Some(theirs) = other.entries.get(element) {
                let member = ours.member && theirs.member;
                let below = ours.below.intersection(&theirs.below);
                both.attach(element.clone(), Entry { member, below });
            }
        }
        both
    }

    /// What is in this set and not in `other`; fields below a field of `other` stay.
    #[must_use]
    pub fn difference(mut self, other: &Self) -> Self {
        self.subtract(other, false);
        self
    }

    /// What is in this set and neither in `other` nor below a field of `other`.
    #[must_use]
    pub fn difference_with_descendants(mut self, other: &Self) -> Self {
        self.subtract(other, true);
        self
    }

    fn subtract(&mut self, other: &Self, with_descendants: bool) {
        let mut emptied = false;
        for (element, theirs) in other.entries.iter() {
            let Some(ours) = self.entries.get_mut(element) else { continue };
            if theirs.member {
                ours.member = false;
                if with_descendants {
                    ours.below.entries.clear();
                }
            }
            ours.below.subtract(&theirs.below, with_descendants);
            emptied |= ours.is_empty();
        }
        if emptied {
            self.entries.retain(|ours| !ours.is_empty());
        }
    }

    /// Whether everything in this set is in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.entries.iter().all(|(element, ours)| {
            other.entries.get(element).is_some_and(|theirs| {
                (theirs.member || !ours.member) && ours.below.is_subset(&theirs.below)
            }) || (!ours.member && ours.below.is_empty())
        })
    }

    /// Every path, the fields of a level before those below them: the order of reported conflicts.
    #[must_use]
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for (element, entry) in self.entries.iter() {
            if entry.member {
                let mut path = prefix.clone();
                path.push(element.clone());
                paths.push(path);
            }
        }
        for (element, entry) in self.entries.iter() {
            if !entry.below.is_empty() {
                prefix.push(element.clone());
                entry.below.collect_paths(prefix, paths);
                prefix.pop();
            }
        }
    }
}

/// One path per line.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, path) in self.paths().iter().enumerate() {
            if line > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&display_path(path))?;
        }
        Ok(())
    }
}

/// `.spec.containers[name="web"].image`
pub(super) fn display_path(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}
