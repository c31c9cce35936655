//! The scale subresource: one view of how many, whatever the kind calls it.

use serde_json::{Value, json};

use super::{Registry, metadata};
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::Stored;

/// Where a kind keeps its numbers, as JSON pointers.
pub(super) struct Places {
    pub(super) spec: String,
    status: String,
    selector: Option<String>,
}

pub(super) fn places(kind: &Kind) -> Option<Places> {
    let pointer = |path: &str| path.replace('.', "/");
    match &kind.custom {
        Some(custom) => custom.scale.as_ref().map(|scale| Places {
            spec: pointer(&scale.spec),
            status: pointer(&scale.status),
            selector: scale.selector.as_deref().map(pointer),
        }),
        None => kind.subresource("scale").map(|_| Places {
            spec: "/spec/replicas".to_owned(),
            status: "/status/replicas".to_owned(),
            selector: Some("/spec/selector".to_owned()),
        }),
    }
}

/// The `Scale` of an object.
pub(super) fn view(kind: &Kind, places: &Places, object: &Value) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let mut meta = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let value = metadata::text(object, field);
        if !value.is_empty() {
            meta[field] = value.into();
        }
    }
    let mut status = json!({"replicas": number(&places.status)});
    let selector = places.selector.as_deref().and_then(|pointer| object.pointer(pointer));
    let selector = match selector {
        Some(Value::String(text)) => text.clone(),
        Some(selector) if kind.custom.is_none() => selector_text(selector),
        _ => String::new(),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let replicas = number(&places.spec);
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": meta,
        "spec": if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) },
        "status": status,
    })
}

/// A label selector as query parameters spell it; a plain map (ReplicationController) works too.
fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").unwrap_or(selector).as_object();
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    parts.sort();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or("");
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let (key, values) = (text("key"), values.join(","));
        parts.push(match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

impl Registry {
    /// The `Scale` of an object as its kind shows it.
    ///
    /// # Errors
    /// 404 when the kind has no scale.
    pub(crate) fn scale(kind: &Kind, shown: &Stored) -> Result<Value, Status> {
        let places = places(kind).ok_or_else(Status::no_such_resource)?;
        Ok(view(kind, &places, &super::convert::value(kind, shown)))
    }
}
