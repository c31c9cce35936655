//! Conversion by webhook: what it is asked (`ConversionReview`), and what of its answer is taken.
//!
//! Nothing is called here: whoever has the question open asks it.

use serde_json::{Map, Value, json};

use super::{list, text};
use crate::validate;

/// How long a webhook may take, in seconds.
pub(crate) const PATIENCE: u64 = 30;

/// The versions of `ConversionReview` that are spoken.
const SPOKEN: &[&str] = &["v1", "v1beta1"];

/// The webhook that converts between the versions of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The definition, for people.
    pub definition: String,
    /// Where the webhook is: a `clientConfig`.
    pub client: Value,
    /// The version of `ConversionReview`; `None` when it reads none that is spoken here.
    review: Option<String>,
}

impl Conversion {
    /// The conversion that a definition asks for; `None` where versions differ by name only.
    pub(super) fn of(definition: &Value) -> Option<Self> {
        if text(definition, "/spec/conversion/strategy") != "Webhook" {
            return None;
        }
        let webhook = definition.pointer("/spec/conversion/webhook")?;
        let read = list(webhook, "/conversionReviewVersions").filter_map(Value::as_str);
        Some(Self {
            definition: text(definition, "/metadata/name").to_owned(),
            client: webhook.get("clientConfig").cloned().unwrap_or(Value::Null),
            review: read.filter(|version| SPOKEN.contains(version)).map(str::to_owned).next(),
        })
    }

    /// The question, all but its uid.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub(crate) fn question(&self, objects: &[Value], to: &str) -> Result<Value, String> {
        let Some(version) = &self.review else {
            return Err("no supported conversion review versions".to_owned());
        };
        Ok(json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{version}"),
            "request": {"uid": "", "desiredAPIVersion": to, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        }))
    }
}

/// The list of objects in a reply that fits the question with this uid.
///
/// # Errors
/// Why there is none, in the words of kube-apiserver.
pub(crate) fn objects_of(review: &Value, uid: &str, mut reply: Value) -> Result<Value, String> {
    let (asked, given) = (text(review, "/apiVersion"), text(&reply, "/apiVersion"));
    if text(&reply, "/kind") != "ConversionReview" || !given.starts_with("apiextensions.k8s.io/") {
        let why = format!(
            "no kind {:?} is registered for version {given:?} in scheme \
             \"pkg/runtime/scheme.go:111\"",
            text(&reply, "/kind")
        );
        return Err(why);
    }
    if asked != given {
        let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
        return Err(format!(
            "converting ({}.ConversionReview) to ({}.ConversionReview): unknown conversion",
            short(given),
            short(asked)
        ));
    }
    let strict = asked.ends_with("/v1");
    let mut response = reply["response"].take();
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    let answered = text(&response, "/uid");
    if strict && answered != uid {
        return Err(format!("expected response.uid={uid:?}, got {answered:?}"));
    }
    let (status, message) = (text(&response, "/result/status"), text(&response, "/result/message"));
    if status != "Success" {
        return Err(match message {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    Ok(response["convertedObjects"].take())
}

/// `group/version, Kind=kind` of an object.
pub(crate) fn type_of(object: &Value) -> String {
    format!("{}, Kind={}", text(object, "/apiVersion"), text(object, "/kind"))
}

/// What was asked about, in the version it was asked for: the webhook may change everything but
/// the identity and, of the metadata, only labels and annotations.
///
/// # Errors
/// What is wrong with the object that came back, in the words of kube-apiserver.
pub(crate) fn accept(original: &Value, mut converted: Value, to: &str) -> Result<Value, String> {
    let what = format!("conversion webhook for {}", type_of(original));
    if text(&converted, "/kind").is_empty() {
        return Err(format!("Object 'Kind' is missing in '{converted}'"));
    }
    for (name, field, expected) in
        [("groupVersion", "/apiVersion", to), ("kind", "/kind", text(original, "/kind"))]
    {
        let received = text(&converted, field);
        if received != expected {
            return Err(format!(
                "{what} returned invalid object at index 0: invalid {name} (expected {expected}, \
                 received {received})"
            ));
        }
    }
    for (name, field) in
        [("name", "/metadata/name"), ("namespace", "/metadata/namespace"), ("UID", "/metadata/uid")]
    {
        let (before, after) = (text(original, field), text(&converted, field));
        if before != after {
            return Err(format!(
                "{what} returned invalid object: must have the same {name}: {before} != {after}"
            ));
        }
    }
    let metadata = restored(original, &converted["metadata"])
        .map_err(|why| format!("{what} returned invalid metadata: {why}"))?;
    converted["metadata"] = metadata;
    Ok(converted)
}

/// The metadata as it was, with the labels and annotations that came back.
fn restored(original: &Value, given: &Value) -> Result<Value, String> {
    let mut metadata =
        original.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field) {
            None | Some(Value::Null) => drop(metadata.shift_remove(field)),
            Some(Value::Object(pairs)) => {
                check_pairs(field, metadata.get(field), pairs)?;
                metadata.insert(field.to_owned(), Value::Object(pairs.clone()));
            }
            Some(other) => {
                let ty = go_type(other);
                return Err(format!("invalid metadata.{field} of type {ty} in converted object"));
            }
        }
    }
    Ok(Value::Object(metadata))
}

/// What a webhook changes must be as valid as if a client had written it.
fn check_pairs(
    field: &str,
    before: Option<&Value>,
    pairs: &Map<String, Value>,
) -> Result<(), String> {
    for (name, value) in pairs {
        if !value.is_string() {
            let ty = go_type(value);
            return Err(format!(
                "metadata.{field}[{name}] must be a string, but is {ty} in converted object"
            ));
        }
    }
    if before.and_then(Value::as_object) == Some(pairs) {
        return Ok(());
    }
    let pairs = Value::Object(pairs.clone());
    let errors = match field {
        "labels" => validate::labels(Some(&pairs), "metadata.labels"),
        _ => validate::annotations(Some(&pairs), "metadata.annotation"),
    };
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match &messages[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// What a value is called in messages.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
