//! The defaults of a schema: values that it allows and keeps, and that break none of its rules.
//!
//! Nothing is filled in here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{arena, flag, list, prune, structural};
use crate::decode;
use crate::field::{FieldError, Reason};
use crate::go::internal;
use crate::schema::Schema;
use crate::validate::{self, Defaults, NOWHERE, Rules};

/// All that is wrong with the defaults of a schema that is structural.
pub(super) fn check(document: &Value, path: &str) -> Vec<FieldError> {
    let mut root = Cow::Borrowed(document);
    if !flag(document, "x-kubernetes-embedded-resource") {
        root.to_mut()["x-kubernetes-embedded-resource"] = Value::Bool(true);
    }
    let mut walk = Walk { rules: Defaults::new(), errors: Vec::new() };
    walk.node(&root, path, &Place { object: &root, way: Vec::new(), in_metadata: false });
    walk.errors
}

/// Whether a definition has rules, and defaults that they may be about.
pub(crate) fn has_ruled_defaults(definition: &Value) -> bool {
    fn says(document: &Value, keyword: &str) -> bool {
        match document {
            Value::Object(fields) => {
                fields.contains_key(keyword) || fields.values().any(|below| says(below, keyword))
            }
            Value::Array(items) => items.iter().any(|item| says(item, keyword)),
            _ => false,
        }
    }
    list(definition, "/spec/versions").any(|version| {
        let keywords = ["default", "x-kubernetes-validations"];
        keywords.iter().all(|keyword| says(&version["schema"], keyword))
    })
}

/// Brings the objects in defaults into shape.
pub(super) fn shape(document: &mut Value) {
    if document.get("default").is_some_and(|default| default.is_object() || default.is_array()) {
        let (schemas, root) = arena::build_value(document);
        let default = &mut document["default"];
        // What cannot be read was refused.
        let _ = decode::embedded(schemas.at(root), default, "", &mut Vec::new());
    }
    let Some(document) = document.as_object_mut() else { return };
    for (name, below) in document {
        match (name.as_str(), below) {
            ("items", items) => shape(items),
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(shape),
            _ => {}
        }
    }
}

/// Where a node is in the object around it.
struct Place<'a> {
    /// The schema of that object.
    object: &'a Value,
    /// The fields that lead from there to the node; nothing for items of a list.
    way: Vec<Option<&'a str>>,
    /// Whether the node is in the metadata of the object, or says what it is.
    in_metadata: bool,
}

struct Walk {
    rules: Defaults,
    errors: Vec<FieldError>,
}

impl Walk {
    fn node<'a>(&mut self, document: &'a Value, path: &str, place: &Place<'a>) {
        let is_object = flag(document, "x-kubernetes-embedded-resource");
        let here = Place { object: document, way: Vec::new(), in_metadata: false };
        let place = if is_object { &here } else { place };
        if let Some(default) = document.get("default").filter(|default| !default.is_null()) {
            self.value(document, default, &format!("{path}.default"), place);
        }
        // There are no defaults for the values of maps.
        let fields: BTreeMap<_, _> = structural::fields(document).collect();
        let items = structural::below(document, "items").map(|items| (None, items));
        let fields = fields.into_iter().map(|(name, field)| (Some(name.as_str()), field));
        for (name, below) in items.into_iter().chain(fields) {
            if self.rules.is_spent() {
                return;
            }
            let path = match name {
                None => format!("{path}.items"),
                Some(name) => format!("{path}.properties[{name}]"),
            };
            let way = place.way.iter().copied().chain([name]).collect();
            let is_meta = matches!(name, Some("apiVersion" | "kind" | "metadata"));
            let in_metadata = place.in_metadata || (is_object && is_meta);
            self.node(below, &path, &Place { way, in_metadata, ..*place });
        }
    }

    fn value(&mut self, document: &Value, default: &Value, path: &str, place: &Place<'_>) {
        let (schemas, root) = arena::build_value(document);
        let schema = schemas.at(root);
        let shown = |detail: String| {
            FieldError::new(path, Reason::Invalid, internal::in_order(default), detail)
        };
        let found = if place.in_metadata {
            metadata_problems(default, place).into_iter().map(shown).collect()
        } else {
            let mut pruned = default.clone();
            if !prune(schema, &mut pruned).is_empty() {
                self.errors.push(shown("must not have unknown fields".to_owned()));
            }
            within(schema, default, path)
        };
        if !found.is_empty() {
            self.errors.extend(found);
            return;
        }
        let found = validate::schema(schema, default, None);
        if !found.is_empty() {
            self.errors.extend(found.into_iter().map(|error| below(error, path)));
            return;
        }
        let is_object = flag(document, "x-kubernetes-embedded-resource");
        let rules = Rules::compile(schema, document, is_object);
        self.errors.extend(self.rules.judge(&rules, schema, default, path));
    }
}

/// An error of the value, told of the default.
fn below(error: FieldError, path: &str) -> FieldError {
    let path = match error.path.as_str() {
        "" | NOWHERE => path.to_owned(),
        below if below.starts_with('.') => format!("{path}{below}"),
        // Items of a list that is the default itself are told of as its fields.
        below => format!("{path}.{below}"),
    };
    FieldError { path, ..error }
}

/// What is wrong with the objects in a value: first what cannot be read, then what may not be.
fn within(schema: Schema<'_>, value: &Value, path: &str) -> Vec<FieldError> {
    match decode::embedded(schema, &mut value.clone(), path, &mut Vec::new()) {
        Err(error) => vec![*error],
        Ok(()) => validate::embedded(schema, value, path),
    }
}

/// Why an object would be wrong that had the default in its place and nothing else.
fn metadata_problems(default: &Value, place: &Place<'_>) -> Option<String> {
    let mut object = default.clone();
    for name in place.way.iter().rev() {
        object = match name {
            Some(name) => Value::Object(Map::from_iter([((*name).to_owned(), object)])),
            None => Value::Array(vec![object]),
        };
    }
    for (field, otherwise) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
        if object.get(field).is_none() {
            object[field] = otherwise.into();
        }
    }
    let (schemas, root) = arena::build_value(place.object);
    let problems = within(schemas.at(root), &object, "");
    let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let words = match &words[..] {
        [] => return None,
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    Some(format!("must result in valid metadata: {words}"))
}
