//! Removing what a manager applied before and leaves out now.

use serde_json::Value;

use super::ApplyError;
use super::forms::Forms;
use super::managed::{Managed, Owned};
use super::remove::{remove, sweep};
use super::set::FieldSet;
use super::shape::Place;

/// Removes from `merged`, which is in the version of `applied`, what `last` has and nobody owns any
/// more. Answers with what is left as `null` and has to be swept out in the end.
///
/// # Errors
/// When the object cannot be seen in a version in which somebody owns fields.
pub(super) fn prune(
    forms: Forms<'_>,
    merged: &mut Value,
    last: &Owned,
    applied: &Owned,
    managed: &Managed,
) -> Result<FieldSet, ApplyError> {
    let own = &applied.api_version;
    let others = managed.values().chain([last]).any(|owned| owned.api_version != *own);
    if forms.others.is_none() || !others {
        return Ok(prune_here(forms.place(), merged, &last.fields, &applied.fields, managed));
    }
    prune_in_versions(forms, merged, last, own, managed)?;
    Ok(FieldSet::default())
}

/// The same where owners speak several versions: each says in its own what must stay.
fn prune_in_versions(
    forms: Forms<'_>,
    merged: &mut Value,
    last: &Owned,
    own: &str,
    managed: &Managed,
) -> Result<(), ApplyError> {
    let Some(last_place) = forms.place_in(own, &last.api_version) else { return Ok(()) };
    let last_fields = last.fields.clone().with_named_parents(last_place);
    let mut all = forms.object(merged, &last.api_version)?;
    let mut kept = all.clone();
    remove(last_place, &mut kept, &last_fields);
    let mut whole = all.clone();
    let mut versions: Vec<&str> = vec![&last.api_version];
    for owned in managed.values() {
        if !versions.contains(&owned.api_version.as_str()) {
            versions.push(&owned.api_version);
        }
    }
    for version in versions {
        let Some(place) = forms.place_in(own, version) else { continue };
        let fields_of = |value: &Value| FieldSet::of_place(place, value).with_named_parents(place);
        let here = managed.values().filter(|owned| owned.api_version == version);
        let owned = here.fold(FieldSet::default(), |all, owner| all.union(&owner.fields));
        whole = forms.object(&whole, version)?;
        let left = fields_of(&forms.object(&kept, version)?);
        let owned = owned.with_named_parents(place);
        let unowned = fields_of(&whole).difference(&left).difference(&owned);
        kept.clone_from(&whole);
        remove(place, &mut kept, &unowned);
    }
    let fields_of =
        |value: &Value| FieldSet::of_place(last_place, value).with_named_parents(last_place);
    let left = fields_of(&forms.object(&kept, &last.api_version)?);
    let gone = fields_of(&all).difference(&left).intersection(&last_fields);
    remove(last_place, &mut all, &gone);
    sweep(last_place, &mut all, &gone);
    *merged = forms.object(&all, own)?;
    Ok(())
}

/// Removes from `merged` the fields of `last` that nobody in `managed` owns; `applied` is what the
/// manager owns now. A field stays as long as somebody owns something below it, and a field that was
/// not applied before is never removed on its own. Answers with what was removed.
fn prune_here(
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
