//! Volumes and claims: a phase from the start, and one way to say what a volume is filled with.

use serde_json::{Map, Value, json};

use super::{Hooks, NONE};
use crate::registry::metadata;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, _, object| {
        let status = json!({"phase": "Pending", "lastPhaseTransitionTime": writer.now()});
        metadata::set_top(object, "status", Some(status));
        Ok(())
    },
    part: |writer, _, live, object| date_phase(&writer.now(), live, object),
    ..NONE
};

/// Notes since when a volume is in its phase, unless the client says so.
fn date_phase(now: &str, live: &Value, volume: &mut Value) {
    let field = "lastPhaseTransitionTime";
    let before = live.pointer("/status/lastPhaseTransitionTime").cloned();
    let is_same_phase = live.pointer("/status/phase") == volume.pointer("/status/phase");
    let Some(status) = volume.get_mut("status").and_then(Value::as_object_mut) else { return };
    let given = status.get(field).filter(|time| !time.is_null()).cloned();
    let time = match (is_same_phase, given) {
        (true, None) => before,
        (false, given) if given.is_none() || given == before => Some(now.into()),
        _ => return,
    };
    if let Some(time) = time {
        status.insert(field.to_owned(), time);
    }
}

pub(super) const CLAIM_HOOKS: Hooks = Hooks {
    create: |_, _, object| {
        metadata::set_top(object, "status", Some(json!({"phase": "Pending"})));
        fill(None, object);
        Ok(())
    },
    update: |_, _, live, object| {
        fill(Some(live), object);
        Ok(())
    },
    ..NONE
};

/// What claims are filled with has two fields: the older one knows claims and snapshots only and is
/// dropped if it names something else. Each is copied to the other one.
fn fill(live: Option<&Value>, claim: &mut Value) {
    let in_use = |field: &str| live.is_some_and(|live| live["spec"].get(field).is_some());
    let (source_in_use, reference_in_use) = (in_use("dataSource"), in_use("dataSourceRef"));
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if !spec.contains_key("dataSource") && !spec.contains_key("dataSourceRef") {
        return;
    }
    // Data of another namespace is not for everybody yet.
    let elsewhere = |spec: &Map<String, Value>| {
        let space = spec.get("dataSourceRef").and_then(|data| data.get("namespace"));
        space.and_then(Value::as_str).is_some_and(|space| !space.is_empty())
    };
    if elsewhere(spec) && !reference_in_use {
        spec.shift_remove("dataSourceRef");
    }
    if !source_in_use && !reference_in_use && !spec.contains_key("dataSourceRef") {
        let source = spec.get("dataSource").unwrap_or(&Value::Null);
        let text = |field| source.get(field).and_then(Value::as_str).unwrap_or("");
        let known = matches!(
            (text("apiGroup"), text("kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        );
        if !known {
            spec.shift_remove("dataSource");
        }
    }
    if !elsewhere(spec) {
        for (from, to) in [("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")] {
            if let (Some(data), false) = (spec.get(from).cloned(), spec.contains_key(to)) {
                let field = |field: &str| data.get(field).cloned().unwrap_or_default();
                let copy = json!({
                    "apiGroup": field("apiGroup"),
                    "kind": field("kind"),
                    "name": field("name"),
                });
                spec.insert(to.to_owned(), copy);
            }
        }
    }
    for field in ["dataSource", "dataSourceRef"] {
        if let Some(data) = spec.get_mut(field).and_then(Value::as_object_mut) {
            data.entry("apiGroup").or_insert(Value::Null);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_another_namespace_alone_leaves_a_claim_without_any() {
        let mut claim = json!({"spec": {"dataSourceRef": {"kind": "Odd", "namespace": "web"}}});
        fill(None, &mut claim);
        assert_eq!(claim, json!({"spec": {}}));
    }
}
