//! What changed between two objects, as three sets of fields that have nothing in common.

use serde_json::{Map, Value};

use super::collect::by_element;
use super::path::PathElement;
use super::set::{Entry, FieldSet};
use super::shape::{Fields, Items, Place, Shape};

/// The fields that differ between an old and a new object.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// In the old object only.
    pub(super) removed: FieldSet,
    /// In both, with different values.
    pub(super) modified: FieldSet,
    /// In the new object only.
    pub(super) added: FieldSet,
    /// Whether the new object has an item that cannot be named, among what changed.
    pub(super) has_nameless: bool,
}

/// The same, at and below one place.
#[derive(Default)]
struct Found {
    removed: Entry,
    modified: Entry,
    added: Entry,
    has_nameless: bool,
}

impl Changes {
    /// Compares two whole objects.
    pub(super) fn between(place: Place<'_>, old: &Value, new: &Value) -> Self {
        let found = compare(place, Some(old), Some(new));
        Self {
            removed: found.removed.below,
            modified: found.modified.below,
            added: found.added.below,
            has_nameless: found.has_nameless,
        }
    }

    /// Forgets changes to these fields and to what is below them.
    pub(super) fn without(self, fields: &FieldSet) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.difference_with_descendants(fields),
            modified: self.modified.difference_with_descendants(fields),
            added: self.added.difference_with_descendants(fields),
            has_nameless: self.has_nameless,
        }
    }

    /// Modified or added.
    pub(super) fn set(&self) -> FieldSet {
        self.modified.clone().union(&self.added)
    }

    /// The same; most changes are one or the other.
    pub(super) fn into_set(self) -> FieldSet {
        if self.modified.is_empty() { self.added } else { self.modified.union(&self.added) }
    }
}

impl Found {
    /// Adds what was found below an element, which is made when there is something; when all are there,
    /// they must be put in order.
    fn attach(&mut self, element: impl Fn() -> PathElement, below: Found) {
        let Found { removed, modified, added, has_nameless } = below;
        self.has_nameless |= has_nameless;
        for (set, entry) in [
            (&mut self.removed.below, removed),
            (&mut self.modified.below, modified),
            (&mut self.added.below, added),
        ] {
            // Nothing is made of what is not there.
            if !entry.is_empty() {
                set.entries.push(element(), entry);
            }
        }
    }

    fn put_in_order(&mut self) {
        for found in [&mut self.removed, &mut self.modified, &mut self.added] {
            found.below.entries.put_in_order();
        }
    }

    fn mark(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, Some(_)) => self.added.member = true,
            (Some(_), None) => self.removed.member = true,
            (Some(old), Some(new)) if !same(old, new) => self.modified.member = true,
            _ => {}
        }
    }
}

fn compare(place: Place<'_>, old: Option<&Value>, new: Option<&Value>) -> Found {
    let mut found = Found::default();
    if let (Some(before), Some(after)) = (old, new)
        && changed_kind(before, after)
    {
        // Where the schema leaves it open, a map may become a list or a scalar: all parts of the
        // one go and all parts of the other come.
        compare_parts(place.shape(before), old, None, &mut found);
        compare_parts(place.shape(after), None, new, &mut found);
        found.modified.member = true;
        return found;
    }
    let has_parts = compare_parts(place.shape_of_pair(old, new), old, new, &mut found);
    // A container that came or went is itself added or removed, besides its parts; one that is
    // there before and after is not itself modified.
    if !has_parts || old.is_none() || new.is_none() {
        found.mark(old, new);
    }
    found
}

/// Compares part by part; false where there are none: a leaf, or empty on both sides.
fn compare_parts(
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    found: &mut Found,
) -> bool {
    match shape {
        Shape::Leaf => false,
        Shape::Fields(fields) => {
            let (old, new) = (map_of(old), map_of(new));
            compare_fields(fields, old, new, found);
            !(old.is_none_or(Map::is_empty) && new.is_none_or(Map::is_empty))
        }
        Shape::Items(items) => {
            let (old, new) = (list_of(old), list_of(new));
            if old != new {
                compare_items(items, old, new, found);
            }
            !(old.is_empty() && new.is_empty())
        }
    }
}

fn compare_fields(
    fields: Fields<'_>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    found: &mut Found,
) {
    let mut visit = |name: &str, old_value: Option<&Value>, new_value: Option<&Value>| {
        if let (Some(old), Some(new)) = (old_value, new_value)
            && is_scalar(new)
            && old == new
        {
            // Whatever the schema says.
            return;
        }
        let place = fields.field(name).place;
        // Only below a container that is there: in one that comes or goes, all of it does.
        let absent = if old.is_some() && new.is_some() { fields.absent(name) } else { None };
        let below = compare(place, old_value.or(absent), new_value.or(absent));
        found.attach(|| PathElement::field(name), below);
    };
    for (name, old_value) in old.into_iter().flatten() {
        visit(name, Some(old_value), new.and_then(|new| new.get(name)));
    }
    for (name, new_value) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(name)) {
            visit(name, None, Some(new_value));
        }
    }
    found.put_in_order();
}

fn compare_items(items: Items<'_>, old: &[Value], new: &[Value], found: &mut Found) {
    let (mut old, named) = (by_element(items, old), by_element(items, new));
    found.has_nameless |= named.values().map(Vec::len).sum::<usize>() != new.len();
    for (element, new_items) in named {
        let old_items = old.remove(&element).unwrap_or_default();
        compare_same(items, &element, &old_items, &new_items, found);
    }
    for (element, old_items) in old {
        compare_same(items, &element, &old_items, &[], found);
    }
    found.put_in_order();
}

/// Compares the items of one key; several items of a key count as one leaf.
fn compare_same(
    items: Items<'_>,
    element: &PathElement,
    old: &[&Value],
    new: &[&Value],
    found: &mut Found,
) {
    let below = match (old, new) {
        ([_, _, ..], [_, _, ..]) => {
            let mut below = Found::default();
            below.modified.member = old != new;
            below
        }
        ([_, _, ..], _) => {
            let mut below = compare_single(items, None, new.first().copied());
            below.removed.member = true;
            below
        }
        (_, [_, _, ..]) => {
            let mut below = compare_single(items, old.first().copied(), None);
            below.added.member = true;
            below
        }
        _ => compare_single(items, old.first().copied(), new.first().copied()),
    };
    found.attach(|| element.clone(), below);
}

fn compare_single(items: Items<'_>, old: Option<&Value>, new: Option<&Value>) -> Found {
    if old.is_none() && new.is_none() { Found::default() } else { compare(items.place, old, new) }
}

fn map_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn list_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_scalar(value: &Value) -> bool {
    !(value.is_object() || value.is_array())
}

fn changed_kind(old: &Value, new: &Value) -> bool {
    if old.is_null() || new.is_null() || (is_scalar(old) && is_scalar(new)) {
        return false;
    }
    old.is_object() != new.is_object() || old.is_array() != new.is_array()
}

/// Equal values; a whole number equals the same number written with a fraction.
pub(super) fn same(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Number(old), Value::Number(new)) => old == new || old.as_f64() == new.as_f64(),
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new))
        }
        (Value::Object(old), Value::Object(new)) => {
            old.len() == new.len()
                && old.iter().all(|(name, old)| new.get(name).is_some_and(|new| same(old, new)))
        }
        _ => old == new,
    }
}
