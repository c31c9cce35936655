//! Removing what a manager applied before and leaves out now.

use serde_json::Value;

use super::managed::Managed;
use super::remove::remove;
use super::set::FieldSet;
use super::shape::Place;

/// Removes from `merged` the fields of `last` that nobody in `managed` owns; `applied` is what the
/// manager owns now. A field stays as long as somebody owns something below it, and a field that was
/// not applied before is never removed on its own. Answers with what was removed.
pub(super) fn prune(
    place: Place<'_>,
    merged: &mut Value,
    last: &FieldSet,
    applied: &FieldSet,
    managed: &Managed,
) -> FieldSet {
    if last.is_subset(applied) {
        return FieldSet::default();
    }
    let named = |set: FieldSet| set.with_named_parents(place);
    let fields_of = |value: &Value| named(FieldSet::of_place(place, value));
    let last = named(last.clone());
    let whole = fields_of(merged);
    let owned = managed.values().fold(FieldSet::default(), |all, owner| all.union(&owner.fields));

    // Without everything applied before, and all below it ...
    let mut kept = merged.clone();
    remove(place, &mut kept, &last);
    // ... but with all that has an owner ...
    let unowned = whole.clone().difference(&fields_of(&kept)).difference(&named(owned));
    kept.clone_from(merged);
    remove(place, &mut kept, &unowned);
    // ... and with all that the manager never applied.
    let gone = whole.difference(&fields_of(&kept)).intersection(&last);
    remove(place, merged, &gone);
    gone
}
