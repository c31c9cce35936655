//! Taking a set of fields out of an object, in place.

use serde_json::Value;

use super::path::PathElement;
use super::set::FieldSet;
use super::shape::{Place, Shape};

/// Removes every field of `set` with all that is below it. Maps and lists that lose their last
/// entry this way go too.
pub(super) fn remove(place: Place<'_>, value: &mut Value, set: &FieldSet) {
    match (place.shape(value), value) {
        (Shape::Fields(fields), Value::Object(map)) => {
            map.retain(|name, value| {
                let Some(entry) = set.entries.get(&PathElement::field(name)) else { return true };
                if entry.member {
                    return false;
                }
                remove(fields.field(name).place, value, &entry.below);
                !is_empty(value)
            });
        }
        (Shape::Items(items), Value::Array(list)) => {
            list.retain_mut(|item| {
                let Ok(element) = items.element(item) else { return true };
                let Some(entry) = set.entries.get(&element) else { return true };
                if entry.member {
                    return false;
                }
                remove(items.place, item, &entry.below);
                !is_empty(item)
            });
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
