//! Strategic merge patch: a merge patch that knows the keys of lists.
//!
//! Maps are merged field by field and lists as the schema says. Directives in the patch say more:
//! `$patch: replace|delete`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and
//! `$setElementOrder/<field>`. No directive and no `null` of the patch reaches the result.

use serde_json::{Map, Value};

use super::PatchError;
use super::list::{ListRule, merge_list};
use super::order::{check_order, order_merged};
use crate::go;
use crate::schema::Schema;

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// Applies a strategic merge patch to an object of a built-in kind.
///
/// Fields that the schema does not know are merged as maps and replaced as lists.
///
/// # Errors
/// [`PatchError::Malformed`] for a patch that is not an object or a directive that is not written
/// as it must be, [`PatchError::Unprocessable`] for lists of lists, and
/// [`PatchError::Unmergeable`] for items without merge key and unknown directives.
pub fn strategic(schema: Schema<'_>, live: &Value, patch: &Value) -> Result<Value, PatchError> {
    let (Value::Object(live), Value::Object(patch)) = (live, patch) else {
        let found = match patch {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            _ => "bool",
        };
        let words = "into Go value of type map[string]interface {}";
        return Err(PatchError::Malformed(format!("json: cannot unmarshal {found} {words}")));
    };
    merge_map(Some(schema), live.clone(), patch.clone()).map(Value::Object)
}

/// Merges one map; `schema` is `None` below fields that the schema does not know.
pub(super) fn merge_map(
    schema: Option<Schema<'_>>,
    mut live: Object,
    mut patch: Object,
) -> Result<Object, PatchError> {
    match patch.get(DIRECTIVE).map(|directive| (directive.as_str(), directive.clone())) {
        None => {}
        Some((Some("replace"), _)) => {
            patch.remove(DIRECTIVE);
            return Ok(without_directives(patch));
        }
        Some((Some("delete"), _)) => return Ok(Object::new()),
        Some((_, directive)) => return Err(unknown_directive(&directive, &Value::Object(patch))),
    }
    retain_keys(&mut live, &mut patch)?;
    set_orders(schema, &mut live, &mut patch)?;
    for (name, value) in patch {
        if name.starts_with(DELETE_FROM) {
            let field = field_of(&name, DELETE_FROM)?;
            delete_from(&mut live, field, &value);
        } else {
            merge_field(schema, &mut live, name, value)?;
        }
    }
    Ok(live)
}

fn merge_field(
    schema: Option<Schema<'_>>,
    live: &mut Object,
    name: String,
    value: Value,
) -> Result<(), PatchError> {
    let field = schema.and_then(|schema| schema.field(&name));
    let merged = match (live.get_mut(&name), value) {
        (_, Value::Null) => {
            live.shift_remove(&name);
            return Ok(());
        }
        (Some(Value::Object(old)), Value::Object(new)) if !replaced(field) => {
            Some(Value::Object(merge_map(field, std::mem::take(old), new)?))
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            let rule = ListRule::of(field);
            Some(Value::Array(merge_list(&rule, std::mem::take(old), new)?))
        }
        (_, value) => cleaned(value),
    };
    match merged {
        Some(merged) => live.insert(name, merged),
        None => live.shift_remove(&name),
    };
    Ok(())
}

fn replaced(field: Option<Schema<'_>>) -> bool {
    field.is_some_and(|field| field.node().patch.replace)
}

/// `$retainKeys`: fields of the live map that are not listed go. The patch may set only listed ones.
fn retain_keys(live: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(keys) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let keys = keys.as_array().ok_or_else(malformed)?;
    let listed = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let exempt = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !exempt(name) && !listed(name)) {
        return Err(malformed());
    }
    live.retain(|name, _| listed(name));
    Ok(())
}

/// `$setElementOrder/<field>`: merges the list of that field and puts it into the given order.
fn set_orders(
    schema: Option<Schema<'_>>,
    live: &mut Object,
    patch: &mut Object,
) -> Result<(), PatchError> {
    let directives: Vec<String> =
        patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let field = field_of(&directive, SET_ORDER)?;
        let Some(Value::Array(order)) = patch.shift_remove(&directive) else {
            return Err(PatchError::Unmergeable(format!("{directive} is not a list")));
        };
        let rule = ListRule::of(schema.and_then(|schema| schema.field(field)));
        let changes = patch.shift_remove(field).map(list).transpose()?;
        let current = live.shift_remove(field).map(list).transpose()?;
        if current.is_none() && changes.is_none() {
            continue;
        }
        check_order(&rule, changes.as_deref().unwrap_or_default(), &order)?;
        let before = current.clone().unwrap_or_default();
        if before.is_empty() && changes.as_ref().is_none_or(Vec::is_empty) {
            let why = "no elements in any of the given slices";
            return Err(PatchError::Unmergeable(why.to_owned()));
        }
        let merged = match (current, changes) {
            (Some(current), Some(changes)) => merge_list(&rule, current, changes)?,
            (Some(current), None) => current,
            (None, changes) => changes.into_iter().flatten().filter_map(cleaned).collect(),
        };
        let ordered = order_merged(&rule, merged, &order, &before)?;
        live.insert(field.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

/// `$deleteFromPrimitiveList/<field>`: these scalars go, whatever the field's strategy is.
fn delete_from(live: &mut Object, field: &str, values: &Value) {
    if values.is_null() {
        live.shift_remove(field);
    } else if let (Some(Value::Array(list)), Value::Array(values)) = (live.get_mut(field), values) {
        list.retain(|item| !values.contains(item));
    }
}

/// The field that a directive is about: what stands after the slash.
fn field_of<'a>(directive: &'a str, prefix: &str) -> Result<&'a str, PatchError> {
    directive.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or_else(|| {
        let what = if prefix == DELETE_FROM { "primitive list" } else { "setElementOrder list" };
        PatchError::Malformed(format!("invalid patch format of {what}"))
    })
}

fn list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(unfit("[]interface {}", &other)),
    }
}

/// The refusal of a value of another type than is wanted.
pub(super) fn unfit(wanted: &str, found: &Value) -> PatchError {
    let found = go::type_of(found);
    PatchError::Unmergeable(format!("expected a {wanted}, but received a {found}"))
}

pub(super) fn unknown_directive(directive: &Value, patch: &Value) -> PatchError {
    let (directive, patch) = (go::printed(directive), go::printed(patch));
    PatchError::Unmergeable(format!("unknown patch type: {directive} in map: {patch}"))
}

/// A value of the patch as it enters the object: without `null` fields and without directives.
/// `None` when the value is itself a directive.
pub(super) fn cleaned(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(without_directives(map))),
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(cleaned).collect())),
        scalar => Some(scalar),
    }
}

fn without_directives(map: Object) -> Object {
    let directive = |name: &str| {
        name == RETAIN_KEYS || name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER)
    };
    map.into_iter()
        .filter(|(name, value)| !value.is_null() && !directive(name))
        .filter_map(|(name, value)| Some((name, cleaned(value)?)))
        .collect()
}
