//! Who gains and who loses ownership when an object changes.
//!
//! Everything here works on sets of fields; objects are only compared. Times are set by the
//! callers, which know whether the object changed at all.

use serde_json::Value;

use super::compare::Changes;
use super::error::Conflict;
use super::managed::{Managed, Operation, Owned, Owner};
use super::set::FieldSet;
use super::shape::Place;

/// Updaters beyond this number share one entry per version.
const MOST_UPDATERS: usize = 10;

/// The owner that the oldest updaters are merged into.
const ANCIENT: &str = "ancient-changes";

/// Fields of every object that nobody owns: the server writes them, or they are the name itself.
fn unowned() -> FieldSet {
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
}

/// Drops what nobody may own and what this endpoint never writes.
pub(super) fn ownable(fields: FieldSet, reset: &FieldSet) -> FieldSet {
    fields.difference_with_descendants(reset).difference(&unowned())
}

/// Brings all sets in line with the schema as it is now.
pub(super) fn fit_to_schema(place: Place<'_>, managed: &mut Managed) {
    for owned in managed.values_mut() {
        owned.fields = std::mem::take(&mut owned.fields).fit_to_schema(place);
    }
}

/// What others own and `changes` would take from them.
pub(super) fn conflicts(managed: &Managed, applier: &Owner, changes: &Changes) -> Vec<Conflict> {
    let taken = changes.set();
    let mut conflicts = Vec::new();
    for (owner, owned) in managed.iter().filter(|(owner, _)| *owner != applier) {
        for path in owned.fields.intersection(&taken).paths() {
            conflicts.push(Conflict { manager: owner.to_string(), path });
        }
    }
    conflicts
}

/// Everybody but `keeper` loses what was changed, added or removed; who owns nothing is forgotten.
pub(super) fn take(managed: &mut Managed, keeper: Option<&Owner>, changes: &Changes) {
    for (_, owned) in managed.iter_mut().filter(|(owner, _)| Some(*owner) != keeper) {
        owned.fields = std::mem::take(&mut owned.fields)
            .difference(&changes.modified)
            .difference(&changes.added)
            .difference(&changes.removed);
    }
    managed.retain(|_, owned| !owned.fields.is_empty());
}

/// An update: `updater` comes to own what it changed; nobody owns what it removed.
pub(super) fn update(
    place: Place<'_>,
    old: &Value,
    new: &Value,
    managed: &mut Managed,
    updater: Owner,
    time: &str,
    reset: &FieldSet,
) {
    fit_to_schema(place, managed);
    let changes = Changes::between(place, old, new).without(reset);
    take(managed, None, &changes);
    let gained = ownable(changes.set(), reset);
    if gained.is_empty() {
        return;
    }
    let previous = managed.remove(&updater).map(|owned| owned.fields).unwrap_or_default();
    let owned = Owned {
        fields: gained.union(&previous),
        api_version: updater.api_version.clone(),
        time: Some(time.to_owned()),
    };
    managed.insert(updater, owned);
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
