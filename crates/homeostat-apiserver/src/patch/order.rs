//! The order of items after a strategic merge: what the patch names stands as the patch says, all
//! else as it stood, and the two are interleaved as they were.

use std::collections::BTreeMap;

use serde_json::Value;

use super::PatchError;
use super::list::ListRule;
use super::strategic::DIRECTIVE;
use crate::alike;

/// Orders a merged list: `named` is the order of the patch, `before` the list as it was.
pub(super) fn order_merged(
    rule: &ListRule<'_>,
    merged: Vec<Value>,
    named: &[Value],
    before: &[Value],
) -> Result<Vec<Value>, PatchError> {
    let named = places(&identities(rule, named)?);
    let before = places(&identities(rule, before)?);
    let place = |order: &BTreeMap<String, usize>, item: &Value| {
        rule.identity(item).ok().and_then(|identity| order.get(&alike::key(identity)).copied())
    };
    let (mut of_patch, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(&named, item).is_some());
    of_patch.sort_by_cached_key(|item| place(&named, item));
    others.sort_by_cached_key(|item| place(&before, item));

    let mut ordered = Vec::with_capacity(of_patch.len() + others.len());
    let mut of_patch = of_patch.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    while let (Some(other), Some(next)) = (others.peek(), of_patch.peek()) {
        let earlier = match (place(&before, other), place(&before, next)) {
            (Some(other), Some(next)) => other < next,
            _ => false,
        };
        ordered.extend(if earlier { others.next() } else { of_patch.next() });
    }
    ordered.extend(others);
    ordered.extend(of_patch);
    Ok(ordered)
}

/// A `$setElementOrder` must name every item of the patch list, in the same order.
pub(super) fn check_order(
    rule: &ListRule<'_>,
    patch: &[Value],
    order: &[Value],
) -> Result<(), PatchError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut order = identities(rule, order)?.into_iter().peekable();
    let deletes =
        |item: &&Value| item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
    for item in patch.iter().filter(|item| !deletes(item)) {
        let left = order.peek().is_some();
        let found = item.get(DIRECTIVE).is_some() || {
            let identity = rule.identity(item)?;
            order.any(|other| other == identity)
        };
        if !left || !found {
            return Err(PatchError::Unmergeable(
                "the order in the patch list does not match the $setElementOrder list".to_owned(),
            ));
        }
    }
    Ok(())
}

/// Where each of them stands first.
fn places(identities: &[&Value]) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for (place, identity) in identities.iter().enumerate() {
        places.entry(alike::key(identity)).or_insert(place);
    }
    places
}

fn identities<'v>(rule: &ListRule<'_>, items: &'v [Value]) -> Result<Vec<&'v Value>, PatchError> {
    items.iter().map(|item| rule.identity(item)).collect()
}
