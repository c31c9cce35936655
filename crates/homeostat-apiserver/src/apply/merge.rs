//! Putting an applied configuration over a live object, in place.
//!
//! Merging only adds and replaces; what the configuration leaves out stays. Removing what is no
//! longer applied is done afterwards, by [`remove`](super::remove).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::path::PathElement;
use super::shape::{Items, Place, Shape};

/// Merges `config` into `live`. The configuration was checked: its items can be named and no two
/// have the same name.
pub(super) fn merge(place: Place<'_>, live: &mut Value, config: &Value) {
    match (place.shape(config), &mut *live, config) {
        (Shape::Fields(_), Value::Object(live), Value::Null) if !live.is_empty() => {}
        (Shape::Fields(fields), Value::Object(live), Value::Object(config)) => {
            for (name, value) in config {
                match live.get_mut(name) {
                    Some(live) => merge(fields.field(name).place, live, value),
                    None => {
                        live.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Shape::Items(_), Value::Array(live), Value::Null) if !live.is_empty() => {}
        (Shape::Items(items), Value::Array(live), Value::Array(config)) => {
            *live = merge_items(items, std::mem::take(live), config);
        }
        (_, live, config) => *live = config.clone(),
    }
}

/// Merges two lists. Items that both have stand in the order of `config`; items that only one has
/// keep their place next to their neighbours, those of `live` first.
fn merge_items(items: Items<'_>, live: Vec<Value>, config: &[Value]) -> Vec<Value> {
    // An item that cannot be named is nobody's and is kept where it is.
    let name = |item: &Value| items.element(item).unwrap_or(PathElement::Index(-1));
    let live_names: Vec<PathElement> = live.iter().map(name).collect();
    let config_names: Vec<PathElement> = config.iter().map(name).collect();
    let in_config: BTreeSet<&PathElement> = config_names.iter().collect();
    // Where an item stands, unless it stands there more than once.
    let mut live_places: BTreeMap<&PathElement, Option<usize>> = BTreeMap::new();
    for (place, name) in live_names.iter().enumerate() {
        live_places.entry(name).and_modify(|place| *place = None).or_insert(Some(place));
    }
    let mut shared = config_names.iter().filter(|name| live_places.contains_key(name)).peekable();

    let mut live: Vec<Option<Value>> = live.into_iter().map(Some).collect();
    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let (mut next_live, mut next_config) = (0, 0);
    while next_live < live_names.len() || next_config < config_names.len() {
        if let Some(live_name) = live_names.get(next_live) {
            let config_name = config_names.get(next_config);
            if config_name == Some(live_name) {
                next_live += 1;
            } else if !in_config.contains(live_name) {
                merged.extend(live[next_live].take());
                next_live += 1;
                continue;
            } else if config_name.is_some() && shared.peek().is_some_and(|turn| *turn != live_name)
            {
                // An item of both, but another one of them comes first: config's order decides.
                next_live += 1;
                continue;
            } else if done.contains(live_name) {
                next_live += 1;
            }
        }
        if let Some(config_name) = config_names.get(next_config) {
            let place = live_places.get(config_name).copied().flatten();
            let live_item = place.and_then(|place| live[place].take());
            merged.push(match live_item {
                Some(mut item) => {
                    merge(items.place, &mut item, &config[next_config]);
                    item
                }
                None => config[next_config].clone(),
            });
            done.insert(config_name);
            if shared.peek() == Some(&config_name) {
                shared.next();
            }
            next_config += 1;
        }
    }
    merged
}
