//! Taking a set of fields out of an object, in place.

use serde_json::{Map, Value};

use super::set::{Entry, FieldSet};
use super::shape::{Place, Shape};

/// Removes every field of `set` with all that is below it. A map or list that loses its last entry
/// this way becomes `null`: it is still there, and whoever owns it keeps it. [`sweep`] ends that.
pub(super) fn remove(place: Place<'_>, value: &mut Value, set: &FieldSet) {
    walk(place, value, set, &|place, value, entry| {
        if entry.member {
            return false;
        }
        remove(place, value, &entry.below);
        if is_empty(value) {
            *value = Value::Null;
        }
        true
    });
}

/// Drops what [`remove`] with the same set left as `null`, once ownership is settled.
pub(super) fn sweep(place: Place<'_>, value: &mut Value, set: &FieldSet) {
    walk(place, value, set, &|place, value, entry| {
        sweep(place, value, &entry.below);
        entry.member || entry.below.is_empty() || !value.is_null()
    });
}

/// Visits the entries of a container that `set` mentions and keeps those for which `keep` says so.
fn walk(
    place: Place<'_>,
    value: &mut Value,
    set: &FieldSet,
    keep: &dyn Fn(Place<'_>, &mut Value, &Entry) -> bool,
) {
    match (place.shape(value), value) {
        (Shape::Fields(fields), Value::Object(map)) => {
            map.retain(|name, value| match set.entries.field(name) {
                Some(entry) => keep(fields.field(name).place, value, entry),
                None => true,
            });
        }
        (Shape::Items(items), Value::Array(list)) => {
            list.retain_mut(|item| {
                match items.element(item).map(|element| set.entries.get(&element)) {
                    Ok(Some(entry)) => keep(items.place, item, entry),
                    _ => true,
                }
            });
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}
