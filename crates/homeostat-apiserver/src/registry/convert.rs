//! One stored object, several served forms: kinds that are served in more than one group or version.
//!
//! Events are kept as core/v1; autoscalers as autoscaling/v2; custom resources in the version that
//! their definition names, or in the one it named when they were written. What a webhook has to
//! say about the latter is asked in [`webhook`](super::webhook); nothing here asks.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply::{ApplyError, Others};
use crate::kinds::{Custom, Kind, builtin};
use crate::schema::Schema;
use crate::store::Stored;
use crate::{autoscaling, default};

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
        autoscaling::to_second(object);
        if let Some(second) = (OtherForms { kind }).find("autoscaling/v2") {
            default::builtin(second, object);
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
        autoscaling::to_first(object);
    }
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.clone().into();
}

/// Whether objects of a built-in kind are shown in other forms, too.
pub(super) fn has_other_forms(kind: &Kind) -> bool {
    matches!(kind.plural.as_str(), "events" | "horizontalpodautoscalers")
        && matches!(kind.group.as_str(), "" | "events.k8s.io" | "autoscaling")
}

/// The other forms in which objects of a built-in kind are shown.
#[derive(Debug)]
pub(super) struct OtherForms<'a> {
    pub(super) kind: &'a Kind,
}

impl OtherForms<'_> {
    fn find(&self, api_version: &str) -> Option<&'static Kind> {
        let same = |other: &&Arc<Kind>| {
            other.api_version() == api_version && resource(other) == resource(self.kind)
        };
        builtin().iter().find(same).map(AsRef::as_ref)
    }
}

impl Others for OtherForms<'_> {
    fn schema(&self, api_version: &str) -> Option<Schema<'_>> {
        self.find(api_version).map(|kind| kind.schema.root())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ApplyError> {
        let mut object = object.clone();
        let given = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let (Some(from), Some(to)) = (self.find(given), self.find(api_version)) else {
            return Err(ApplyError::Unconverted(format!("{api_version} is not known")));
        };
        to_storage(from, &mut object);
        from_storage(to, &mut object);
        Ok(object)
    }
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
pub(crate) fn is_as_stored(kind: &Kind, stored: &Stored) -> bool {
    let current =
        |custom: &Custom| custom.versions.conversion.is_some() || is_current(custom, stored);
    stored.api_version == kind.api_version()
        && kind.custom.as_ref().is_none_or(|custom| current(custom))
}

/// Whether the object was written under the schema that is in force.
pub(crate) fn is_current(custom: &Custom, stored: &Stored) -> bool {
    stored.revision > custom.since
}
