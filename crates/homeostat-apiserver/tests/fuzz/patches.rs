//! Patches of every type, right and wrong.

use homeostat_apiserver::kinds::Kind;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::values::Values;
use crate::words;

pub(crate) const TYPES: [&str; 5] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];

/// A patch of that type; `object` is what the target looks like, or might.
pub(crate) fn patch(values: &Values<'_>, kind: &Kind, media: &str, object: &Value) -> Value {
    let dice = values.dice;
    match media {
        "application/json-patch+json" => operations(values, object),
        "application/strategic-merge-patch+json" => {
            let mut patch = part(values, kind, object);
            for _ in 0..dice.below(3) {
                direct(dice, &mut patch);
            }
            patch
        }
        "application/merge-patch+json" => part(values, kind, object),
        _ => {
            let mut whole = object.clone();
            values.change(Some(kind.schema.root()), "", &mut whole);
            if let Some(metadata) = whole.get_mut("metadata").and_then(Value::as_object_mut)
                && dice.chance(90)
            {
                metadata.retain(|name, _| {
                    !matches!(name.as_str(), "managedFields" | "resourceVersion" | "uid")
                });
            }
            whole
        }
    }
}

/// A few fields of the object, changed; sometimes nulls.
fn part(values: &Values<'_>, kind: &Kind, object: &Value) -> Value {
    let mut patch = object.clone();
    values.change(Some(kind.schema.root()), "", &mut patch);
    if let Some(fields) = patch.as_object_mut() {
        fields.retain(|_, _| values.dice.chance(50));
        if values.dice.chance(80)
            && let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.retain(|name, _| {
                !matches!(name.as_str(), "managedFields" | "resourceVersion" | "uid")
            });
        }
    }
    if values.dice.chance(20) {
        let path = pointer(values.dice, &patch);
        if let Some(place) = patch.pointer_mut(&path) {
            *place = Value::Null;
        }
    }
    patch
}

/// Puts a directive of strategic merge somewhere.
fn direct(dice: &Dice, patch: &mut Value) {
    let path = pointer(dice, patch);
    let place = patch.pointer_mut(&path);
    match place {
        Some(Value::Object(fields)) => {
            let (name, value) = match dice.below(7) {
                0 => ("$patch", json!("delete")),
                1 => ("$patch", json!("replace")),
                2 => ("$patch", json!(*dice.pick(&["merge", "odd", ""]))),
                3 => ("$retainKeys", json!(["a", "type"])),
                4 => ("$setElementOrder/containers", json!([{"name": "a"}, {"x": 1}])),
                5 => ("$deleteFromPrimitiveList/finalizers", json!(["a", 1])),
                _ => ("$setElementOrder/finalizers", json!(7)),
            };
            fields.insert(name.to_owned(), value);
        }
        Some(Value::Array(items)) => items.push(match dice.below(3) {
            0 => json!({"$patch": "replace"}),
            1 => json!({"$patch": "delete", "name": "a"}),
            _ => json!({"$patch": 7}),
        }),
        _ => {}
    }
}

fn operations(values: &Values<'_>, object: &Value) -> Value {
    let dice = values.dice;
    let one = |_| {
        let mut operation = json!({
            "op": *dice.pick(words::of("op")),
            "path": path(dice, object),
        });
        if dice.chance(80) {
            let found = object.pointer(&pointer(dice, object)).cloned();
            let value = if dice.chance(50) { found } else { None };
            operation["value"] = value.unwrap_or_else(|| values.anything(2));
        }
        if dice.chance(40) {
            operation["from"] = path(dice, object).into();
        }
        if dice.chance(3) { values.anything(2) } else { operation }
    };
    (0..dice.below(5)).map(one).collect()
}

/// A pointer that leads somewhere, ends just beyond, or is none.
fn path(dice: &Dice, object: &Value) -> String {
    let found = pointer(dice, object);
    match dice.below(10) {
        0 => format!("{found}/-"),
        1 => format!("{found}/99999999999999999999"),
        2 => format!("{found}/new"),
        3 => (*dice.pick(&["", "/", "a", "/~", "/~2", "//", "/metadata/-"])).to_owned(),
        _ => found,
    }
}

/// A pointer to some value inside.
fn pointer(dice: &Dice, value: &Value) -> String {
    let (mut path, mut place) = (String::new(), value);
    while dice.chance(80) {
        let (step, below) = match place {
            Value::Object(fields) if !fields.is_empty() => {
                let Some((name, below)) = fields.iter().nth(dice.below(fields.len())) else {
                    break;
                };
                (name.replace('~', "~0").replace('/', "~1"), below)
            }
            Value::Array(items) if !items.is_empty() => {
                let at = dice.below(items.len());
                (at.to_string(), &items[at])
            }
            _ => break,
        };
        path = format!("{path}/{step}");
        place = below;
    }
    path
}
