//! The metadata in a template of claims: labels and annotations, which its objects take over, and
//! nothing else.

use serde_json::Value;

use super::place::Place;
use super::report::{Report, at};
use crate::validate::metadata;

/// What only an object itself can have, with the names that errors call it.
const NOT_FOR_TEMPLATES: &[(&str, &str)] = &[
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

pub(super) fn template_meta(meta: &Value, place: &Place<'_>, report: &mut Report) {
    if !meta.is_object() {
        return;
    }
    let path = place.field("annotations").to_string();
    report.errors.extend(metadata::annotations(meta.get("annotations"), &path));
    report.labels(at(meta, "/labels"), &place.field("labels").to_string());
    for (field, shown) in NOT_FOR_TEMPLATES {
        let is_set = match meta.get(*field) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            // Zero seconds of grace are some.
            Some(Value::Number(number)) => *field != "generation" || number.as_i64() != Some(0),
            Some(_) => true,
        };
        if is_set {
            report.forbidden(place.field(shown), "cannot be set");
        }
    }
}
