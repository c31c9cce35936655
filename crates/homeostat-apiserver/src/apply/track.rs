//! `managedFields` after a create, update or patch.

use serde_json::{Map, Value};

use super::managed::{self, Managed, Operation};
use super::{ApplyError, FieldSet, Forms, Manager, ownership};
use crate::decode::moment::seconds;
use crate::schema::Schema;

/// Brings the `managedFields` of `new` up to date after a create (`live` is `None`), update or patch.
///
/// The manager comes to own what it changed; whoever owned that, or what is gone, loses it. A list
/// that `new` itself brings is taken as an edit of the list, and `[{}]` (for built-in
/// kinds `[]` too) as the wish to forget all owners; through a subresource the list cannot be edited. An object whose owners are forgotten
/// is not tracked until it is applied. A list that cannot be read counts as none.
///
/// # Errors
/// When the change cannot be seen in a version in which somebody owns fields.
pub fn track_update<'a>(
    forms: impl Into<Forms<'a>>,
    live: Option<&Value>,
    new: &mut Value,
    manager: &Manager<'_>,
    reset: &FieldSet,
) -> Result<(), ApplyError> {
    track(forms.into(), live, &Value::Object(Map::new()), new, manager, reset)
}

/// The same for a new object that is compared with `blank`, which holds what nobody writes.
///
/// # Errors
/// As [`track_update`].
pub fn track_create<'a>(
    forms: impl Into<Forms<'a>>,
    blank: &Value,
    new: &mut Value,
    manager: &Manager<'_>,
    reset: &FieldSet,
) -> Result<(), ApplyError> {
    track(forms.into(), None, blank, new, manager, reset)
}

fn track(
    forms: Forms<'_>,
    live: Option<&Value>,
    blank: &Value,
    new: &mut Value,
    manager: &Manager<'_>,
    reset: &FieldSet,
) -> Result<(), ApplyError> {
    let mut managed = starting_point(forms.schema, live, new, manager);
    managed::encode(new, Managed::new());
    if managed.is_empty() && live.is_some() {
        return Ok(());
    }
    let updater = manager.owner(manager.name, Operation::Update);
    let time = seconds(manager.now);
    let old = live.unwrap_or(blank);
    ownership::update(forms, (old, new), &mut managed, updater, &time, reset)?;
    ownership::cap_updaters(&mut managed);
    managed::encode(new, managed);
    Ok(())
}

fn starting_point(
    schema: Schema<'_>,
    live: Option<&Value>,
    new: &Value,
    manager: &Manager<'_>,
) -> Managed {
    let stored = || live.and_then(|live| managed::decode(live).ok()).unwrap_or_default();
    if !manager.subresource.is_empty() {
        return stored();
    }
    // Only published types have names.
    let custom = schema.node().name.is_empty();
    if managed::asks_for_reset(new, custom) {
        return Managed::new();
    }
    match managed::decode(new) {
        Ok(edited) if !edited.is_empty() => edited,
        _ => stored(),
    }
}

/// Puts the old times back when nothing but times changed, so that the write is none.
///
/// To be called last, when defaults and admission have had their turn.
pub fn keep_times(live: &Value, new: &mut Value) {
    let (Some(old_list), Some(new_list)) = (managed::entries(live), managed::entries(new)) else {
        return;
    };
    if old_list != new_list && same_but_for_times(old_list, new_list) && same_otherwise(live, new) {
        let old_list = old_list.clone();
        if let Some(list) =
            new.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"))
        {
            *list = old_list;
        }
    }
}

fn same_but_for_times(live: &Value, new: &Value) -> bool {
    let (Some(live), Some(new)) = (live.as_array(), new.as_array()) else { return live == new };
    let others = |entry: &Map<String, Value>| entry.len() - usize::from(entry.contains_key("time"));
    live.len() == new.len()
        && live.iter().zip(new).all(|(live, new)| match (live.as_object(), new.as_object()) {
            (Some(live), Some(new)) => {
                let mut fields = live.iter().filter(|(name, _)| *name != "time");
                others(live) == others(new)
                    && fields.all(|(name, live)| new.get(name).is_some_and(|new| live == new))
            }
            _ => live == new,
        })
}

fn same_otherwise(live: &Value, new: &Value) -> bool {
    let (Some(live), Some(new)) = (live.as_object(), new.as_object()) else { return false };
    let same_metadata = |live: &Value, new: &Value| match (live.as_object(), new.as_object()) {
        (Some(live), Some(new)) => {
            same_fields(live, new, |name, live, new| name == "managedFields" || live == new)
        }
        _ => live == new,
    };
    same_fields(
        live,
        new,
        |name, live, new| {
            if name == "metadata" { same_metadata(live, new) } else { live == new }
        },
    )
}

fn same_fields(
    live: &Map<String, Value>,
    new: &Map<String, Value>,
    same: impl Fn(&str, &Value, &Value) -> bool,
) -> bool {
    live.len() == new.len()
        && live.iter().all(|(name, live)| new.get(name).is_some_and(|new| same(name, live, new)))
}
