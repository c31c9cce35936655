//! What a definition says by saying nothing: lists and maps of its schemas that are empty, items that
//! are neither a schema nor several, a webhook without a client.
//!
//! All of it is judged as it was written; nothing of it is kept.

use serde_json::Value;

use super::default_values;

/// Drops what is read and not kept: a conversion that says nothing of its webhook, what schemas leave
/// empty, and what objects in defaults say of themselves that nobody knows.
pub(crate) fn as_kept(definition: &mut Value) {
    drop_unsaid(definition, Items::Dropped);
    schemas(definition).for_each(default_values::shape);
}

/// A definition as it is compared with what was there: items that say nothing make a difference once,
/// before they are gone.
pub(crate) fn as_compared(definition: &Value) -> Value {
    let mut compared = definition.clone();
    drop_unsaid(&mut compared, Items::Counted);
    compared
}

/// What becomes of items that say nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Items {
    Dropped,
    Counted,
}

fn drop_unsaid(definition: &mut Value, items: Items) {
    let holds_any = |versions: &Value| versions.as_array().is_some_and(|list| !list.is_empty());
    if let Some(stanza) = definition.pointer_mut("/spec/conversion") {
        drop_idle_webhook(stanza, holds_any);
    }
    schemas(definition).for_each(|document| drop_empty(document, items));
}

fn schemas(definition: &mut Value) -> impl Iterator<Item = &mut Value> {
    let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    let versions = versions.into_iter().flatten();
    versions.filter_map(|version| version.pointer_mut("/schema/openAPIV3Schema"))
}

/// Drops a webhook without a client and without versions that count.
pub(super) fn drop_idle_webhook(conversion: &mut Value, counts: fn(&Value) -> bool) {
    let is_idle = conversion.get("webhook").is_some_and(|webhook| {
        webhook.get("clientConfig").is_none()
            && !webhook.get("conversionReviewVersions").is_some_and(counts)
    });
    if is_idle && let Some(stanza) = conversion.as_object_mut() {
        stanza.shift_remove("webhook");
    }
}

/// Drops what a schema and those below it leave empty.
pub(super) fn drop_empty(document: &mut Value, items: Items) {
    let Some(keywords) = document.as_object_mut() else { return };
    keywords.retain(|name, value| match (name.as_str(), value) {
        ("default" | "example", _) => true,
        ("items", Value::Null) => items == Items::Counted,
        ("items", Value::Array(schemas)) => items == Items::Counted || !schemas.is_empty(),
        (_, Value::Array(items)) => !items.is_empty(),
        ("properties" | "patternProperties" | "definitions" | "dependencies", map) => {
            map.as_object().is_none_or(|map| !map.is_empty())
        }
        _ => true,
    });
    for (name, value) in keywords {
        match (name.as_str(), value) {
            ("not" | "items" | "additionalProperties" | "additionalItems", schema) => {
                drop_empty(schema, items);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| drop_empty(schema, items));
            }
            ("properties" | "patternProperties" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| drop_empty(schema, items));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{as_compared, as_kept};

    fn definition(schema: &Value) -> Value {
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    }

    #[test]
    fn what_is_empty_is_no_change_but_items_that_say_nothing_are_one() {
        let written = definition(&json!({"type": "object", "required": [], "allOf": [],
            "default": [], "properties": {"a": {"items": null, "properties": {}}}}));
        let compared = definition(&json!({"type": "object", "default": [],
            "properties": {"a": {"items": null}}}));
        assert_eq!(as_compared(&written), compared);
        let mut kept = written;
        as_kept(&mut kept);
        let expected = definition(&json!({"type": "object", "default": [],
            "properties": {"a": {}}}));
        assert_eq!(kept, expected);
    }
}
