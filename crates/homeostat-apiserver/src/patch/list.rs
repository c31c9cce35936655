//! How a strategic merge patch merges two lists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::PatchError;
use super::order::order_merged;
use super::strategic::{DIRECTIVE, cleaned, merge_map, unfit, unknown_directive};
use crate::alike;
use crate::go;
use crate::schema::Schema;

/// What the schema says of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListRule<'a> {
    /// Merged; otherwise replaced.
    merge: bool,
    /// The field that identifies an item; none for lists of scalars.
    key: Option<&'a str>,
    /// The schema of the items.
    items: Option<Schema<'a>>,
}

impl<'a> ListRule<'a> {
    /// The rule of a field; a field that the schema does not know is replaced.
    pub(super) fn of(field: Option<Schema<'a>>) -> Self {
        field.map_or(Self { merge: false, key: None, items: None }, |field| {
            let rule = &field.node().patch;
            Self { merge: rule.merge, key: rule.key.as_deref(), items: field.items() }
        })
    }

    /// What identifies an item: its merge key, or the scalar itself.
    ///
    /// # Errors
    /// The item lacks the merge key or is no map.
    pub(super) fn identity<'v>(&self, item: &'v Value) -> Result<&'v Value, PatchError> {
        let Some(key) = self.key else { return Ok(item) };
        let Value::Object(map) = item else {
            return Err(unfit("map[string]interface {}", item));
        };
        map.get(key).ok_or_else(|| {
            PatchError::Unmergeable(format!(
                "map: {} does not contain declared merge key: {key}",
                go::printed(item)
            ))
        })
    }
}

/// Merges `patch` into `live`: items of both are merged, new ones come behind, and the order of the
/// patch holds among the items that it names.
pub(super) fn merge_list(
    rule: &ListRule<'_>,
    live: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    if !rule.merge {
        return Ok(patch.into_iter().filter_map(cleaned).collect());
    }
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    match kind_of_items(live.iter().chain(&patch))? {
        Kind::Map => merge_maps(rule, live, patch),
        Kind::Scalar(_) => {
            let before = live.clone();
            let mut seen = BTreeSet::new();
            let all = live.into_iter().chain(patch.iter().cloned());
            let merged = all.filter(|value| seen.insert(alike::key(value))).collect();
            order_merged(&ListRule { key: None, ..*rule }, merged, &patch, &before)
        }
    }
}

fn merge_maps(
    rule: &ListRule<'_>,
    mut live: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    if rule.key.is_none() {
        return Err(PatchError::Unmergeable("cannot merge lists without merge key".to_owned()));
    }
    let mut plain = Vec::with_capacity(patch.len());
    let (mut doomed, mut replace) = (BTreeSet::new(), false);
    for item in patch {
        match item.get(DIRECTIVE) {
            None => plain.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    doomed.insert(alike::key(rule.identity(&item)?));
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    let why = "merging lists cannot yet be specified in the patch";
                    return Err(PatchError::Unmergeable(why.to_owned()));
                }
                _ => return Err(unknown_directive(directive, &item)),
            },
        }
    }
    if replace {
        return Ok(plain.into_iter().filter_map(cleaned).collect());
    }
    let key = |item: &Value| rule.identity(item).ok().map(alike::key);
    if !doomed.is_empty() {
        live.retain(|old| key(old).is_none_or(|key| !doomed.contains(&key)));
    }
    let before = live.clone();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, old) in live.iter().enumerate() {
        if let Some(key) = key(old) {
            places.entry(key).or_insert(place);
        }
    }
    for item in &plain {
        let identity = alike::key(rule.identity(item)?);
        let Value::Object(changes) = item else { continue };
        let same = places.get(&identity).and_then(|place| live.get_mut(*place));
        if let Some(Value::Object(old)) = same {
            *old = merge_map(rule.items, std::mem::take(old), changes.clone())?;
        } else {
            places.insert(identity, live.len());
            live.push(Value::Object(merge_map(rule.items, Map::new(), changes.clone())?));
        }
    }
    order_merged(rule, live, &plain, &before)
}

#[derive(PartialEq)]
enum Kind {
    Map,
    Scalar(std::mem::Discriminant<Value>),
}

fn kind_of_items<'v>(items: impl Iterator<Item = &'v Value>) -> Result<Kind, PatchError> {
    let mut kinds = items.map(|item| match item {
        Value::Array(_) => {
            Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()))
        }
        Value::Object(_) => Ok(Kind::Map),
        scalar => Ok(Kind::Scalar(std::mem::discriminant(scalar))),
    });
    let first = kinds.next().unwrap_or(Ok(Kind::Map))?;
    for kind in kinds {
        if kind? != first {
            return Err(PatchError::Unmergeable("list element types are not identical".to_owned()));
        }
    }
    Ok(first)
}
