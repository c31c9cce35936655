//! CertificateSigningRequests: who asks is on record, what was asked for stays as it is, and what
//! was decided says when.

use serde_json::{Value, json};

use super::{Hooks, NONE};

/// What only the server says about the one who asks.
const REQUESTER: [&str; 4] = ["username", "uid", "groups", "extra"];

pub(super) const HOOKS: Hooks = Hooks {
    asked: |user, object| {
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
        let user = user.to_value();
        for field in REQUESTER {
            match user.get(field) {
                Some(said) => drop(spec.insert(field.to_owned(), said.clone())),
                None => drop(spec.shift_remove(field)),
            }
        }
        object["status"] = json!({});
    },
    part: |writer, part, live, object| {
        if part == "status" {
            ["Approved", "Denied"].iter().for_each(|ty| keep(ty, live, object));
        }
        date(live, object, &writer.now());
    },
    ..NONE
};

fn conditions(object: &Value) -> &[Value] {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    all.map_or(&[], Vec::as_slice)
}

/// A verdict that is repeated is the one that was spoken.
fn keep(ty: &str, live: &Value, object: &mut Value) {
    let spoken: Vec<&Value> = conditions(live).iter().filter(|c| c["type"] == ty).collect();
    let all = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    let repeated: Vec<&mut Value> =
        all.into_iter().flatten().filter(|condition| condition["type"] == ty).collect();
    if repeated.len() == spoken.len() {
        repeated.into_iter().zip(spoken).for_each(|(new, old)| *new = old.clone());
    }
}

/// Fills in when a condition was written, and since when it is so.
fn date(live: &Value, object: &mut Value, now: &str) {
    let is_absent =
        |condition: &Value, field: &str| condition.get(field).is_none_or(Value::is_null);
    let all = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in all.into_iter().flatten() {
        if is_absent(condition, "lastUpdateTime") {
            condition["lastUpdateTime"] = now.into();
        }
        if is_absent(condition, "lastTransitionTime") {
            let before = conditions(live).iter().find(|before| {
                before["type"] == condition["type"]
                    && before["status"] == condition["status"]
                    && !is_absent(before, "lastTransitionTime")
            });
            condition["lastTransitionTime"] =
                before.map_or_else(|| now.into(), |before| before["lastTransitionTime"].clone());
        }
    }
}
