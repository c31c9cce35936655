//! The fields that a value sets: what somebody who applies it comes to own.

use std::collections::BTreeMap;

use serde_json::Value;

use super::path::PathElement;
use super::set::{Entry, FieldSet};
use super::shape::{Items, Place, Shape};
use crate::schema::Schema;

impl FieldSet {
    /// Every leaf, map entry and list item that `value` mentions.
    ///
    /// Structs are not in the set themselves unless they are empty. Items that cannot be named
    /// (no key, `null`) are left out.
    #[must_use]
    pub fn of_value(schema: Schema<'_>, value: &Value) -> Self {
        Self::of_place(Place::root(schema), value)
    }

    /// The same, at a place.
    pub(super) fn of_place(place: Place<'_>, value: &Value) -> Self {
        collect(place, value).below
    }

    /// Adds the fields that the schema names and that have something of the set below them: a set
    /// leaves those out, but they go when all that is below them goes.
    pub(super) fn with_named_parents(mut self, place: Place<'_>) -> Self {
        add_named_parents(&mut self, place);
        self
    }

    /// Where the schema now takes a place as a whole, ownership of its parts becomes ownership of
    /// the place.
    pub(super) fn fit_to_schema(mut self, place: Place<'_>) -> Self {
        fold_atomic(&mut self, place);
        self
    }
}

fn collect(place: Place<'_>, value: &Value) -> Entry {
    match place.shape(value) {
        Shape::Leaf => Entry::leaf(),
        Shape::Fields(fields) => {
            let mut entry = Entry::default();
            let Value::Object(map) = value else { return entry };
            for (name, value) in map {
                let field = fields.field(name);
                let mut below = collect(field.place, value);
                let empty =
                    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                below.member |= empty || !field.named;
                entry.below.attach(PathElement::field(name), below);
            }
            entry.below.entries.put_in_order();
            entry
        }
        Shape::Items(items) => {
            let mut entry = Entry::default();
            let list = value.as_array().map_or(&[][..], Vec::as_slice);
            for (element, same) in by_element(items, list) {
                // Items that share a key are owned as one: nobody can own a part of either.
                let below = match same.as_slice() {
                    [item] => Entry { member: true, ..collect(items.place, item) },
                    _ => Entry::leaf(),
                };
                // They come in order.
                entry.below.attach(element, below);
            }
            entry
        }
    }
}

/// The items of a list under the path elements that name them.
pub(super) fn by_element<'v>(
    items: Items<'_>,
    list: &'v [Value],
) -> BTreeMap<PathElement, Vec<&'v Value>> {
    let mut index: BTreeMap<PathElement, Vec<&'v Value>> = BTreeMap::new();
    for item in list {
        if let Ok(element) = items.element(item) {
            index.entry(element).or_default().push(item);
        }
    }
    index
}

fn add_named_parents(set: &mut FieldSet, place: Place<'_>) {
    for (element, entry) in set.entries.iter_mut() {
        let below = match element {
            PathElement::Field(name) => {
                let field = place.declared_field(name);
                entry.member |= field.is_some_and(|field| field.named);
                field.map_or(Place::Opaque, |field| field.place)
            }
            PathElement::Key(_) => place.item(),
            PathElement::Value(_) | PathElement::Index(_) => Place::Opaque,
        };
        add_named_parents(&mut entry.below, below);
    }
}

fn fold_atomic(set: &mut FieldSet, place: Place<'_>) {
    for (element, entry) in set.entries.iter_mut() {
        if entry.below.is_empty() {
            continue;
        }
        let below = match element {
            PathElement::Field(name) => place.declared_field(name).map(|field| field.place),
            PathElement::Key(_) => Some(place.item()),
            PathElement::Value(_) | PathElement::Index(_) => None,
        };
        let Some(below) = below else { continue };
        if below.is_declared_atomic() {
            *entry = Entry::leaf();
        } else {
            fold_atomic(&mut entry.below, below);
        }
    }
}
