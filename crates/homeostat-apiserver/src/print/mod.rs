//! Objects as rows of a `meta.k8s.io` Table: what `kubectl get` shows.
//!
//! Columns are rows of a table of data (heading, type, priority, how to make the cell). It never
//! aligns or colours anything; that is the client's part.

mod about;
mod address;
mod age;
mod autoscaler;
mod cells;
mod columns;
mod jsonpath;
mod pod;
mod seldom;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::autoscaling;
use crate::kinds::Kind;
use crate::registry::{TEMPLATE_COUNT, metadata};

pub use age::human_duration;
pub use jsonpath::JsonPath;

/// How much of the object travels with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata; the default.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// The version of `meta.k8s.io` that tables and bare metadata are in; they are the same but for its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetaVersion {
    /// The one that clients ask for today; the default.
    #[default]
    V1,
    /// The one that clients of old ask for.
    V1Beta1,
}

impl MetaVersion {
    /// What `apiVersion` says.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// How a table looks.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// What travels with each row.
    pub include: IncludeObject,
    /// When it is shown: there are ages in it.
    pub now: Timestamp,
    /// Whether the columns are named: not in all but the first table of a watch.
    pub headers: bool,
    /// The version of the table and of the metadata in it.
    pub version: MetaVersion,
}

/// One column: a heading and how a cell is made. One without a name has cells only.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    ty: &'static str,
    format: &'static str,
    priority: i32,
    cell: fn(&Row<'_>) -> Value,
}

/// What a cell is made from.
#[derive(Clone, Copy)]
struct Row<'a> {
    object: &'a Value,
    now: Timestamp,
}

/// Makes the cells of one object.
type MakeCells<'a> = Box<dyn Fn(&Value) -> Vec<Value> + 'a>;

/// A Table of the objects. `list_meta` is the list's metadata (or an object's, for a table of
/// one).
#[must_use]
pub fn table(kind: &Kind, objects: &[&Value], list_meta: &Value, look: Look) -> Value {
    let now = look.now;
    let (definitions, cells): (Vec<Value>, MakeCells<'_>) = match &kind.custom {
        Some(custom) => (
            custom_definitions(&custom.columns),
            Box::new(move |object| custom_cells(&custom.columns, object, now)),
        ),
        None => {
            let columns = columns::of(&kind.group, &kind.kind);
            let make = move |object: &Value| {
                let row = Row { object, now };
                columns.iter().map(|column| (column.cell)(&row)).collect()
            };
            let define = |column: &Column| {
                let about = about::about(&kind.group, &kind.kind, column.name);
                definition(column.name, column.ty, column.format, about, column.priority)
            };
            let headed = columns.iter().filter(|column| !column.name.is_empty());
            (headed.map(define).collect(), Box::new(make))
        }
    };
    let is_pod = kind.group.is_empty() && kind.kind == "Pod";
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({ "cells": cells(object) });
            if is_pod && let Some(conditions) = pod::row_conditions(object) {
                row["conditions"] = conditions;
            }
            row["object"] = carried(object, look);
            row
        })
        .collect();
    // Kinds without columns of their own show no list of rows at all.
    let plain =
        kind.custom.is_none() && definitions.last().is_some_and(|d| d["name"] == "Created At");
    let rows = if rows.is_empty() && plain { Value::Null } else { rows.into() };
    let mut metadata = Map::new();
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = list_meta.get(field).filter(|value| !value.is_null()) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    json!({
        "kind": "Table",
        "apiVersion": look.version.api_version(),
        "metadata": metadata,
        "columnDefinitions": look.headers.then_some(definitions),
        "rows": rows,
    })
}

/// The metadata of an object without what a version of it has there, and the kind somewhere else.
fn own_metadata(object: &Value) -> Value {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let elsewhere: &[&str] = match (text("apiVersion"), text("kind")) {
        (autoscaling::FIRST, "HorizontalPodAutoscaler") => &autoscaling::CARRIED,
        ("apps/v1", "DaemonSet") => &[TEMPLATE_COUNT],
        _ => &[],
    };
    let mut own = object.get("metadata").cloned().unwrap_or_default();
    metadata::take_annotations(&mut own, elsewhere);
    own
}

fn carried(object: &Value, look: Look) -> Value {
    match look.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => partial(object, look.version),
    }
}

/// `PartialObjectMetadata` of an object.
pub(crate) fn partial(object: &Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": own_metadata(object),
    })
}

fn definition(name: &str, ty: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({
        "name": name,
        "type": ty,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

/// The name, then what the definition asks for; the age when it asks for nothing.
fn custom_definitions(columns: &[crate::kinds::Column]) -> Vec<Value> {
    let mut all = vec![definition("Name", "string", "name", about::about("", "", "Name"), 0)];
    if columns.is_empty() {
        all.push(definition("Age", "date", "", about::about("", "", "Age"), 0));
    }
    for column in columns {
        let path =
            format!("Custom resource definition column (in JSONPath format): {}", column.json_path);
        let about = if column.description.is_empty() { &path } else { &column.description };
        all.push(definition(&column.name, &column.ty, &column.format, about, column.priority));
    }
    all
}

fn custom_cells(columns: &[crate::kinds::Column], object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object.pointer("/metadata/name").cloned().unwrap_or(Value::Null);
    let mut cells = vec![name];
    if columns.is_empty() {
        cells.push(cells::age(&Row { object, now }));
    }
    for column in columns {
        let path = JsonPath::parse(&column.json_path);
        let value = path.and_then(|path| path.first(object).cloned());
        cells.push(value.map_or(Value::Null, |value| custom_cell(&column.ty, value, now)));
    }
    cells
}

fn custom_cell(ty: &str, value: Value, now: Timestamp) -> Value {
    match (ty, value) {
        ("integer", Value::Number(number)) => {
            #[expect(clippy::cast_possible_truncation, reason = "a column of whole numbers")]
            let whole = number.as_i64().or_else(|| number.as_f64().map(|n| n as i64));
            Value::from(whole)
        }
        ("number", value @ Value::Number(_)) | ("boolean", value @ Value::Bool(_)) => value,
        ("string", Value::Null) => Value::Null,
        ("string", Value::String(text)) => Value::String(text),
        ("string", other) => Value::String(other.to_string()),
        ("date", Value::String(text)) => Value::String(age::since(&text, now)),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests;
