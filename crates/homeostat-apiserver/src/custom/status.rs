//! The status of a definition: whether its names are accepted and its resources served.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::accepted::{NamesInUse, Outcome, examine};
use crate::decode::moment::seconds;

/// Whether the definition is served.
pub(crate) fn is_established(definition: &Value) -> bool {
    super::list(definition, "/status/conditions")
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// Whether anybody looked at the names of the definition.
pub(crate) fn was_looked_at(definition: &Value) -> bool {
    super::list(definition, "/status/conditions").next().is_some()
}

/// The status of a definition that nobody has looked at.
pub(crate) fn new_status(definition: &Value) -> Value {
    let mut status = json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null});
    if let Some(name) = storage(definition) {
        status["storedVersions"] = json!([name]);
    }
    status
}

/// Adds the version that objects are stored in to those that they may be stored in.
pub(crate) fn note_storage(definition: &mut Value) {
    let Some(name) = storage(definition).map(Value::from) else { return };
    if !super::list(definition, "/status/storedVersions").any(|stored| *stored == name) {
        match definition.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut) {
            Some(stored) => stored.push(name),
            None => definition["status"]["storedVersions"] = json!([name]),
        }
    }
}

fn storage(definition: &Value) -> Option<&str> {
    let mut versions = super::list(definition, "/spec/versions");
    versions
        .find(|version| super::flag(version, "storage"))
        .map(|found| super::text(found, "/name"))
}

/// The status a definition has once its names were looked at, given those that others of its group
/// have. A definition that gets all of its names is established at once; one that served before goes
/// on serving under the names it has. Times move only when a condition does.
#[must_use]
pub fn conditions(definition: &Value, others: &NamesInUse, now: Timestamp) -> Value {
    let mut definition = definition.clone();
    loop {
        // What it has already is in use, too: it is looked at until nothing changes any more.
        let mut used = others.clone();
        used.add(&NamesInUse::of(&definition));
        let status = looked_at(&definition, &used, now);
        if definition.get("status") == Some(&status) {
            return status;
        }
        definition["status"] = status;
    }
}

fn looked_at(definition: &Value, used: &NamesInUse, now: Timestamp) -> Value {
    let mut status = definition.get("status").cloned().unwrap_or_else(|| json!({}));
    let spec = definition.pointer("/spec/names");
    if spec.is_some() && status.get("acceptedNames") == spec && was_looked_at(definition) {
        return status;
    }
    let Outcome { accepted, refusal } = examine(definition, used);
    let accepts = refusal.is_none();
    let names = match &refusal {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    let mut all = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let now = seconds(now);
    set(&mut all, "NamesAccepted", names, &now);
    if accepts && !is_established(definition) {
        let words = "the initial names have been accepted";
        set(&mut all, "Established", ("True", "InitialNamesAccepted", words), &now);
    } else if !all.iter().any(|condition| condition["type"] == "Established") {
        let words = "not all names are accepted";
        set(&mut all, "Established", ("False", "NotAccepted", words), &now);
    }
    status["conditions"] = Value::Array(all);
    status["acceptedNames"] = accepted;
    status
}

/// Sets a condition; it is as old as its state.
fn set(conditions: &mut Vec<Value>, ty: &str, said: (&str, &str, &str), now: &str) {
    let (state, reason, message) = said;
    let found = conditions.iter().position(|condition| condition["type"] == ty);
    let since = found
        .filter(|at| conditions[*at]["status"] == state)
        .map_or_else(|| json!(now), |at| conditions[at]["lastTransitionTime"].clone());
    let condition = json!({
        "lastTransitionTime": since,
        "message": message,
        "reason": reason,
        "status": state,
        "type": ty,
    });
    match found {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}
