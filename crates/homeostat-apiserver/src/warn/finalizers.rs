//! Finalizers of custom resources, whose names are for everybody: those without a domain may be
//! somebody else's too.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::validate::STANDARD_FINALIZERS;

/// Warns of finalizers that are new and do not say whose they are.
pub(super) fn of_custom(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let before = old.map(finalizers).unwrap_or_default();
    for name in finalizers(object).difference(&before) {
        if name.contains('/') || STANDARD_FINALIZERS.contains(name) {
            continue;
        }
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        warnings.push(format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid \
             accidental conflicts with other finalizer writers"
        ));
    }
}

fn finalizers(object: &Value) -> BTreeSet<&str> {
    let names = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}
