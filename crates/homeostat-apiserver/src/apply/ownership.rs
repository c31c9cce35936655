//! Who gains and who loses ownership when an object changes.
//!
//! Everything here works on sets of fields; objects are only compared. Times are set by the
//! callers, which know whether the object changed at all.

use std::sync::LazyLock;

use serde_json::Value;

use super::error::{ApplyError, Conflict};
use super::forms::{Forms, Seen};
use super::managed::{Managed, Operation, Owned, Owner};
use super::set::FieldSet;

/// Updaters beyond this number share one entry per version.
const MOST_UPDATERS: usize = 10;

/// The owner that the oldest updaters are merged into.
const ANCIENT: &str = "ancient-changes";

/// Fields of every object that nobody owns: the server writes them, or they are the name itself.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let fields: [&[&str]; 12] = [
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ];
    FieldSet::of_fields(fields)
});

/// Drops what nobody may own and what this endpoint never writes.
pub(super) fn ownable(fields: FieldSet, reset: &FieldSet) -> FieldSet {
    fields.difference_with_descendants(reset).difference(&UNOWNED)
}

/// Brings all sets in line with the schemas as they are now; `own` is the version of the request.
pub(super) fn fit_to_schema(forms: Forms<'_>, own: &str, managed: &mut Managed) {
    for owned in managed.values_mut() {
        if let Some(place) = forms.place_in(own, &owned.api_version) {
            owned.fields = std::mem::take(&mut owned.fields).fit_to_schema(place);
        }
    }
}

/// What others own and the change would take from them.
pub(super) fn conflicts(
    managed: &Managed,
    applier: &Owner,
    seen: &mut Seen<'_>,
) -> Result<Vec<Conflict>, ApplyError> {
    let mut conflicts = Vec::new();
    for (owner, owned) in managed.iter().filter(|(owner, _)| *owner != applier) {
        let Some(changes) = seen.of(&owned.api_version)? else { continue };
        for path in owned.fields.intersection(&changes.set()).paths() {
            conflicts.push(Conflict { manager: owner.to_string(), path });
        }
    }
    Ok(conflicts)
}

/// Everybody but `keeper` loses what was changed, added or removed; who owns nothing, or something
/// in a version that is gone, is forgotten.
pub(super) fn take(
    managed: &mut Managed,
    keeper: Option<&Owner>,
    seen: &mut Seen<'_>,
) -> Result<(), ApplyError> {
    for (_, owned) in managed.iter_mut().filter(|(owner, _)| Some(*owner) != keeper) {
        let fields = std::mem::take(&mut owned.fields);
        if let Some(changes) = seen.of(&owned.api_version)? {
            owned.fields = fields
                .difference(&changes.modified)
                .difference(&changes.added)
                .difference(&changes.removed);
        }
    }
    managed.retain(|_, owned| !owned.fields.is_empty());
    Ok(())
}

/// An update: `updater` comes to own what it changed; nobody owns what it removed.
///
/// # Errors
/// When the change cannot be seen in a version in which somebody owns fields, or nobody can be said to
/// own what came.
pub(super) fn update(
    forms: Forms<'_>,
    (old, new): (&Value, &Value),
    managed: &mut Managed,
    updater: Owner,
    time: &str,
    reset: &FieldSet,
) -> Result<(), ApplyError> {
    let own = updater.api_version.clone();
    fit_to_schema(forms, &own, managed);
    let mut seen = Seen::new(forms, &own, (old, new), reset);
    take(managed, None, &mut seen)?;
    let changes = seen.into_own()?.unwrap_or_default();
    if changes.has_nameless {
        return Err(ApplyError::Untypable("an item of a list has no key".to_owned()));
    }
    let changed = changes.into_set();
    let gained = ownable(changed, reset);
    if gained.is_empty() {
        return Ok(());
    }
    let previous = managed.remove(&updater).map(|owned| owned.fields).unwrap_or_default();
    let owned = Owned {
        fields: gained.union(&previous),
        api_version: updater.api_version.clone(),
        time: Some(time.to_owned()),
    };
    managed.insert(updater, owned);
    Ok(())
}

/// Merges the oldest updaters until there are few enough; the first of a version to be merged
/// keeps its own name until a second one joins it.
pub(super) fn cap_updaters(managed: &mut Managed) {
    let mut updaters: Vec<Owner> =
        managed.keys().filter(|owner| owner.operation == Operation::Update).cloned().collect();
    let mut surplus = updaters.len().saturating_sub(MOST_UPDATERS);
    if surplus == 0 {
        return;
    }
    let age = |owner: &Owner| managed[owner].time.as_deref().map_or(0, super::managed::seconds_of);
    updaters.sort_by_cached_key(|owner| (age(owner), owner.clone()));
    let mut first_of_version: Vec<Owner> = Vec::new();
    for updater in updaters {
        if surplus == 0 {
            return;
        }
        let Some(first) =
            first_of_version.iter().find(|first| first.api_version == updater.api_version)
        else {
            first_of_version.push(updater);
            continue;
        };
        let bucket = Owner {
            name: ANCIENT.to_owned(),
            operation: Operation::Update,
            api_version: updater.api_version.clone(),
            subresource: String::new(),
        };
        if !managed.contains_key(&bucket)
            && let Some(owned) = managed.remove(first)
        {
            managed.insert(bucket.clone(), owned);
        }
        if updater == bucket {
            continue;
        }
        if let Some(owned) = managed.remove(&updater)
            && let Some(ancient) = managed.get_mut(&bucket)
        {
            ancient.fields = std::mem::take(&mut ancient.fields).union(&owned.fields);
            ancient.time = owned.time;
            surplus -= 1;
        }
    }
}
