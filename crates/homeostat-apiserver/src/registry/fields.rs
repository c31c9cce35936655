//! Which fields of which kind a field selector may name: a table, not code per kind.

use std::borrow::Cow;

use serde_json::Value;

use super::selector::Selector;
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::{Pairs, Stored};

/// `(resource, [(field as selected, JSON pointer, value when absent)])`
type Row = (&'static str, &'static [(&'static str, &'static str, &'static str)]);

const ROWS: &[Row] = &[
    (
        "pods",
        &[
            ("spec.nodeName", "/spec/nodeName", ""),
            ("spec.restartPolicy", "/spec/restartPolicy", ""),
            ("spec.schedulerName", "/spec/schedulerName", ""),
            ("spec.serviceAccountName", "/spec/serviceAccountName", ""),
            ("spec.hostNetwork", "/spec/hostNetwork", "false"),
            ("status.phase", "/status/phase", ""),
            ("status.podIP", "/status/podIP", ""),
            ("status.nominatedNodeName", "/status/nominatedNodeName", ""),
        ],
    ),
    ("events", EVENT_FIELDS),
    ("events.events.k8s.io", EVENT_FIELDS),
    (
        "resourceslices.resource.k8s.io",
        &[("spec.nodeName", "/spec/nodeName", ""), ("spec.driver", "/spec/driver", "")],
    ),
    ("secrets", &[("type", "/type", "")]),
    ("nodes", &[("spec.unschedulable", "/spec/unschedulable", "false")]),
    ("namespaces", &[("status.phase", "/status/phase", "")]),
    ("services", &[("spec.clusterIP", "/spec/clusterIP", ""), ("spec.type", "/spec/type", "")]),
    ("replicationcontrollers", &[("status.replicas", "/status/replicas", "0")]),
    ("jobs.batch", &[("status.successful", "/status/succeeded", "0")]),
    (
        "certificatesigningrequests.certificates.k8s.io",
        &[("spec.signerName", "/spec/signerName", "")],
    ),
];

const SOURCE: &str = "/source/component";
const REPORTER: &str = "/reportingComponent";

/// Events are stored once and served in two groups, whose names for the same field differ.
const EVENT_FIELDS: &[(&str, &str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind", ""),
    ("involvedObject.namespace", "/involvedObject/namespace", ""),
    ("involvedObject.name", "/involvedObject/name", ""),
    ("involvedObject.uid", "/involvedObject/uid", ""),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion", ""),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion", ""),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath", ""),
    ("regarding.kind", "/involvedObject/kind", ""),
    ("regarding.namespace", "/involvedObject/namespace", ""),
    ("regarding.name", "/involvedObject/name", ""),
    ("regarding.uid", "/involvedObject/uid", ""),
    ("regarding.apiVersion", "/involvedObject/apiVersion", ""),
    ("regarding.resourceVersion", "/involvedObject/resourceVersion", ""),
    ("regarding.fieldPath", "/involvedObject/fieldPath", ""),
    ("reason", "/reason", ""),
    ("type", "/type", ""),
    ("reportingComponent", REPORTER, ""),
    ("reportingController", REPORTER, ""),
    ("source", SOURCE, ""),
];

/// What one of the two groups does not know, or the beginning of it.
const OF_THE_OTHER: &[(&str, &[&str])] = &[
    ("events", &["regarding.", "reportingController"]),
    ("events.events.k8s.io", &["involvedObject.", "reportingComponent", "source"]),
];

fn is_of_the_other(kind: &Kind, field: &str) -> bool {
    let resource = kind.resource();
    let mut others = OF_THE_OTHER.iter().filter(|(name, _)| *name == resource);
    others.any(|(_, fields)| fields.iter().any(|other| field.starts_with(other)))
}

fn rows(kind: &Kind) -> &'static [(&'static str, &'static str, &'static str)] {
    if kind.custom.is_some() {
        return &[];
    }
    ROWS.iter().find(|(name, _)| kind.is(name)).map_or(&[], |(_, fields)| fields)
}

/// The values of the selectable fields of an object, in the form it is stored in.
pub(crate) fn selectable(kind: &Kind, object: &Value) -> Pairs {
    let own = rows(kind).iter().map(|(field, pointer, absent)| {
        let given = object.pointer(pointer);
        // Events of the newer API name only who reports them.
        let value = match given.and_then(Value::as_str) {
            None | Some("") if *pointer == SOURCE => object.pointer(REPORTER),
            _ => given,
        };
        (Cow::Borrowed(*field), value.map_or(Cow::Borrowed(*absent), scalar))
    });
    let custom = kind.custom.iter().flat_map(|custom| &custom.selectable_fields).map(|path| {
        let value = object.pointer(&path.replace('.', "/"));
        (Cow::Borrowed(path.trim_start_matches('.')), value.map_or(Cow::Borrowed(""), scalar))
    });
    own.chain(custom).collect()
}

fn scalar(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        Value::Null => "".into(),
        other => other.to_string().into(),
    }
}

/// Kinds without fields of their own say which there are; the others only that this one is not.
fn unknown(kind: &Kind, field: &str) -> String {
    let own = rows(kind).is_empty() && kind.custom.is_none();
    if own {
        format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    } else if kind.resource() == "resourceslices.resource.k8s.io" {
        let (version, kind) = (kind.api_version(), &kind.kind);
        format!("field label not supported for {version}, Kind={kind}: {field}")
    } else if kind.resource() == "jobs.batch" {
        format!("field label {field:?} not supported for Job")
    } else {
        format!("field label not supported: {field}")
    }
}

/// Whether the object is selected. The fields of custom resources are those of the version that is
/// asked for, which may be another one than the stored.
pub(crate) fn matches(kind: &Kind, selector: &Selector, stored: &Stored) -> bool {
    let own = |field: &str| !field.starts_with("metadata.");
    if kind.custom.is_none() || !selector.fields().any(own) {
        return selector.matches(stored);
    }
    let fields = selectable(kind, &super::convert::value(kind, stored));
    selector.matches(&Stored { fields, ..stored.clone() })
}

/// Refuses a selector that names a field the kind does not offer.
pub(crate) fn check(kind: &Kind, selector: &Selector) -> Result<(), Status> {
    let custom = kind.custom.iter().flat_map(|custom| &custom.selectable_fields);
    let custom: Vec<&str> = custom.map(|path| path.trim_start_matches('.')).collect();
    for field in selector.fields() {
        let known = field == "metadata.name"
            || (field == "metadata.namespace"
                && (kind.namespaced || (kind.custom.is_none() && rows(kind).is_empty())))
            || (rows(kind).iter().any(|(name, ..)| *name == field)
                && !is_of_the_other(kind, field))
            || custom.contains(&field);
        if !known {
            return Err(Status::bad_request(unknown(kind, field)));
        }
    }
    Ok(())
}
