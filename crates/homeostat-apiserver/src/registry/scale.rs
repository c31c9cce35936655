//! The scale subresource: one view of how many, whatever the kind calls it.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::create::Tracking;
use super::options::WriteOptions;
use super::subresource::{PartWrite, read_part};
use super::update::{Area, Update, check_uid};
use super::{Patch, Registry, Target, Writer, Written, metadata, posted};
use crate::admission::{self, Operation, Review, Wish};
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::Stored;

/// Where a kind keeps its numbers, as JSON pointers.
struct Places {
    spec: String,
    status: String,
    selector: Option<String>,
}

fn places(kind: &Kind) -> Option<Places> {
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
fn view(kind: &Kind, places: &Places, object: &Value) -> Value {
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

    pub(crate) fn set_scale(
        &self,
        target: &Target,
        write: &PartWrite,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let kind = &target.kind;
        let places = places(kind).ok_or_else(Status::no_such_resource)?;
        let form = posted::form(kind, "scale")?;
        let writer = self.writer_at(&options.inquiry);
        // Only where somebody owns the number does it change hands.
        let owned = is_owned(&writer.live(target)?.1, &places.spec);
        let tracking = if owned { Tracking::Update } else { Tracking::Done };
        let update = Update { area: Area::Part("scale"), tracking, unconditional: true };
        // Admission sees the two scales, not the object behind them.
        let scales = RefCell::new((Value::Null, Value::Null));
        let change = |live: &Value| {
            let current = view(kind, &places, live);
            let scale = wanted(write, form, target, &current, options)?;
            check_uid(target, metadata::uid(live), metadata::uid(&scale), options.dry_run)?;
            let mut review = review(&writer, target, options, scale, &current);
            admission::mutate(&mut review)?;
            let scale = review.object;
            let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
            // What a definition has to say about its numbers comes with the object.
            if replicas < 0 && kind.custom.is_none() {
                let error = FieldError::new(
                    "spec.replicas",
                    Reason::Invalid,
                    replicas.into(),
                    "must be greater than or equal to 0",
                );
                return Err(Status::invalid_kind("autoscaling", "Scale", &target.name, &[error]));
            }
            let mut object = live.clone();
            metadata::copy(&mut object, &scale, "resourceVersion");
            set_pointer(&mut object, &places.spec, replicas.into());
            scales.replace((scale, current));
            Ok(object)
        };
        let judge = || {
            let (scale, current) = scales.take();
            admission::validate(&review(&writer, target, options, scale, &current)).map(drop)
        };
        writer.update_judged(target, update, options, change, judge)
    }
}

/// The change from one `Scale` to another, as admission sees it.
fn review<'r>(
    writer: &'r Writer<'r>,
    target: &'r Target,
    options: &'r WriteOptions,
    object: Value,
    old: &'r Value,
) -> Review<'r> {
    Review {
        subresource: "scale",
        namespace: &target.namespace,
        name: &target.name,
        form: posted::form(&target.kind, "scale").ok(),
        object,
        old: Some(old),
        ..Review::new(writer, &target.kind, Operation::Update, Wish::Write(options))
    }
}

/// The `Scale` that a write asks for.
fn wanted(
    write: &PartWrite,
    form: &Kind,
    target: &Target,
    current: &Value,
    options: &WriteOptions,
) -> Result<Value, Status> {
    let PartWrite::Patch(Patch::Apply(body)) = write else {
        return read_part(form, target, write, current, options);
    };
    let merged = Patch::Merge(body.value.clone());
    read_part(form, target, &PartWrite::Patch(merged), current, options)
}

/// Whether any manager owns the field.
fn is_owned(object: &Value, pointer: &str) -> bool {
    let path: Vec<String> = pointer.split('/').skip(1).map(|name| format!("f:{name}")).collect();
    let path = format!("/fieldsV1/{}", path.join("/"));
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    managers.into_iter().flatten().any(|manager| manager.pointer(&path).is_some())
}

/// Sets the value at a pointer, making the objects on the way.
fn set_pointer(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = value;
}
