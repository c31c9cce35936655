//! When `metadata.generation` moves.

use serde_json::Value;

use super::metadata;
use crate::kinds::{Generation, Kind};

/// The generation after an update of the main resource from `old` to `new`.
pub(crate) fn after_update(kind: &Kind, old: &Value, new: &Value) -> Option<i64> {
    let current = metadata::generation(old);
    let changed = match kind.strategy.generation {
        Generation::None | Generation::Once => return (current != 0).then_some(current),
        Generation::Spec | Generation::SpecChanges => old.get("spec") != new.get("spec"),
        Generation::SpecAndAnnotations => {
            old.get("spec") != new.get("spec")
                || metadata::field(old, "annotations") != metadata::field(new, "annotations")
        }
        Generation::AllButMetadataAndStatus => content(kind, old) != content(kind, new),
        Generation::AsWrittenAndLabels => {
            content(kind, old) != content(kind, new)
                || metadata::labels(old) != metadata::labels(new)
        }
    };
    if kind.strategy.generation == Generation::SpecChanges && !changed && current == 0 {
        return None;
    }
    // It may come from the client, and kube-apiserver counts on from there, too.
    Some(if changed { current.wrapping_add(1) } else { current })
}

/// The top-level fields whose change is a new generation.
fn content<'a>(kind: &Kind, object: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let fields = object.as_object().into_iter().flatten();
    let mut fields: Vec<_> = fields
        .filter(|(name, _)| match name.as_str() {
            "apiVersion" | "kind" | "metadata" => false,
            "status" => !kind.strategy.status,
            _ => true,
        })
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}
