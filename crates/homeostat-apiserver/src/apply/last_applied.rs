//! The annotation that `kubectl apply` without `--server-side` keeps, for those who change over.
//!
//! Only the manager named `kubectl` is treated this way.

use serde_json::Value;

use super::Manager;
use super::compare::Changes;
use super::set::FieldSet;
use super::shape::Place;
use crate::schema::Schema;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const KUBECTL: &str = "kubectl";

/// All annotations of an object together may not be larger.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION)?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// The fields that kubectl set through client-side apply and nobody has changed since: it may take
/// them over without a conflict.
pub(super) fn allowed_conflicts(
    schema: Schema<'_>,
    live: &Value,
    manager: &Manager<'_>,
) -> Option<FieldSet> {
    if manager.name != KUBECTL {
        return None;
    }
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    if applied.get("apiVersion").and_then(Value::as_str) != Some(manager.api_version) {
        return None;
    }
    let changes = Changes::between(Place::root(schema), &applied, live);
    let fields = FieldSet::of_value(schema, &applied)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed);
    Some(fields)
}

/// Keeps the annotation, where there is one, equal to what was applied last.
pub(super) fn refresh(object: &mut Value, config: &Value, manager: &Manager<'_>) {
    if manager.name != KUBECTL || annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) =
        config.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    {
        annotations.remove(ANNOTATION);
    }
    config.sort_all_objects();
    let text = format!("{config}\n");
    if let Some(Value::Object(annotations)) =
        object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    {
        annotations.insert(ANNOTATION.to_owned(), text.into());
        let size =
            |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
        if annotations.iter().map(size).sum::<usize>() > ANNOTATIONS_LIMIT {
            annotations.remove(ANNOTATION);
        }
    }
}
