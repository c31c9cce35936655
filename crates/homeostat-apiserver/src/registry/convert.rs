//! One stored object, several served forms: kinds that are served in more than one group or version.
//!
//! Events are kept as core/v1; autoscalers as autoscaling/v2; custom resources in the version that
//! their definition names, or in the one it named when they were written. What a webhook has to
//! say about the latter is asked in [`webhook`](super::webhook); nothing here asks.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::kinds::{Custom, Kind};
use crate::store::Stored;

/// Names of an Event's fields in core/v1 and in events.k8s.io/v1, where they differ.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The name under which objects of the kind are stored, whatever version they are served in.
#[must_use]
pub(crate) fn resource(kind: &Kind) -> String {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("events.k8s.io", "events") => "events".to_owned(),
        _ => kind.resource(),
    }
}

fn is_new_event(kind: &Kind) -> bool {
    kind.group == "events.k8s.io" && kind.plural == "events"
}

fn is_old_autoscaler(kind: &Kind) -> bool {
    kind.group == "autoscaling" && kind.version == "v1" && kind.plural == "horizontalpodautoscalers"
}

/// Whether a webhook decides how objects of the kind look in other versions. They are shown as it
/// says before anything else happens to them.
pub(crate) fn is_by_webhook(kind: &Kind) -> bool {
    kind.custom.as_ref().is_some_and(|custom| custom.versions.conversion.is_some())
}

/// From the form the kind speaks to the form that is stored.
pub(super) fn to_storage(kind: &Kind, object: &mut Value) {
    if is_new_event(kind) {
        rename(object, |(core, new)| (new, core));
        object["apiVersion"] = "v1".into();
    } else if is_old_autoscaler(kind) {
        object["apiVersion"] = "autoscaling/v2".into();
        let target = object.get_mut("spec").and_then(Value::as_object_mut);
        if let Some(percent) =
            target.and_then(|spec| spec.shift_remove("targetCPUUtilizationPercentage"))
        {
            object["spec"]["metrics"] = json!([{
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": percent},
                },
            }]);
        }
    } else if let Some(custom) = &kind.custom
        && kind.version != custom.versions.storage
    {
        custom.versions.rename(object, &custom.versions.stored_as());
        custom.versions.complete(object);
    }
}

/// From the form that is stored to the form the kind speaks.
pub(super) fn from_storage(kind: &Kind, object: &mut Value) {
    if let Some(custom) = &kind.custom {
        custom.versions.refresh(object);
        custom.versions.rename(object, &kind.api_version());
        return;
    }
    if is_new_event(kind) {
        rename(object, |pair| pair);
        // Here they are left out when empty.
        if let Some(event) = object.as_object_mut() {
            event.retain(|name, value| !(name.starts_with("reporting") && *value == json!("")));
        }
    } else if is_old_autoscaler(kind) {
        let percent = object.pointer("/spec/metrics/0/resource/target/averageUtilization").cloned();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.shift_remove("metrics");
            if let Some(percent) = percent {
                spec.insert("targetCPUUtilizationPercentage".into(), percent);
            }
        }
    }
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.clone().into();
}

/// How the stored bytes of an object of that kind begin.
pub(crate) fn head(kind: &Kind) -> String {
    format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", kind.kind, kind.api_version())
}

fn rename(
    object: &mut Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(object) = object.as_object_mut() else { return };
    for pair in EVENT_FIELDS {
        let (from, to) = direction(*pair);
        if let Some(value) = object.shift_remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

/// The stored object as the kind's JSON: the very bytes, unless it is kept in another form.
pub(crate) fn body<'a>(kind: &Kind, stored: &'a Stored) -> Cow<'a, [u8]> {
    if is_as_stored(kind, stored) {
        return Cow::Borrowed(&stored.body);
    }
    Cow::Owned(value(kind, stored).to_string().into_bytes())
}

/// The stored object, decoded, in the form the kind speaks.
pub(crate) fn value(kind: &Kind, stored: &Stored) -> Value {
    let mut value = stored.value();
    if !is_as_stored(kind, stored) {
        from_storage(kind, &mut value);
    }
    value
}

/// Whether the stored bytes are what the kind shows.
fn is_as_stored(kind: &Kind, stored: &Stored) -> bool {
    let current =
        |custom: &Custom| custom.versions.conversion.is_some() || is_current(custom, stored);
    stored.api_version == kind.api_version()
        && kind.custom.as_ref().is_none_or(|custom| current(custom))
}

/// Whether the object was written under the schema that is in force.
pub(crate) fn is_current(custom: &Custom, stored: &Stored) -> bool {
    stored.revision > custom.since
}
