//! The status of a definition: whether its names are accepted and its resources served.

use jiff::Timestamp;
use serde_json::{Value, json};

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

/// The status a definition has once its names were looked at. `conflict` says which name is taken
/// and by whom; without one the definition is established at once. Times move only when a
/// condition does.
#[must_use]
pub fn conditions(definition: &Value, conflict: Option<&str>, now: Timestamp) -> Value {
    let mut status = definition.get("status").cloned().unwrap_or_else(|| json!({}));
    let before = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let was_established = is_established(definition);
    let (names, established) = match conflict {
        None => (
            ("True", "NoConflicts", "no conflicts found"),
            ("True", "InitialNamesAccepted", "the initial names have been accepted"),
        ),
        // a definition that served once goes on serving under its accepted names
        Some(message) if was_established => (
            ("False", "NamesConflict", message),
            ("True", "InitialNamesAccepted", "the initial names have been accepted"),
        ),
        Some(message) => (
            ("False", "NamesConflict", message),
            ("False", "NotAccepted", "not all names are accepted"),
        ),
    };
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut conditions = before;
    for (ty, (state, reason, message)) in [("NamesAccepted", names), ("Established", established)] {
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
    status["conditions"] = Value::Array(conditions);
    if conflict.is_none() {
        status["acceptedNames"] = definition.pointer("/spec/names").cloned().unwrap_or(Value::Null);
    } else if status.get("acceptedNames").is_none() {
        status["acceptedNames"] = json!({"plural": "", "kind": ""});
    }
    status
}
