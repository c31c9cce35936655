//! The rules that make an `openAPIV3Schema` structural: every value has a type, junctors only
//! restrict what is described outside of them.

use serde_json::Value;

use super::{SCHEMA, flag, list, text};
use crate::field::FieldError;
use crate::go::internal;
use crate::validate::Report;

/// Why a schema cannot be read as a structural one at all.
pub(super) fn unreadable(document: &Value) -> Option<&'static str> {
    let is_filled = |name: &str| match document.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(map)) => !map.is_empty() || name == "additionalItems",
        Some(_) => true,
    };
    let refused = [
        ("id", "OpenAPIV3Schema 'id' is not supported"),
        ("$schema", "OpenAPIV3Schema 'schema' is not supported"),
        ("$ref", "OpenAPIV3Schema '$ref' is not supported"),
        ("patternProperties", "OpenAPIV3Schema 'patternProperties' is not supported"),
        ("dependencies", "OpenAPIV3Schema 'dependencies' is not supported"),
        ("additionalItems", "OpenAPIV3Schema 'additionalItems' is not supported"),
        ("definitions", "OpenAPIV3Schema 'definitions' is not supported"),
    ];
    if let Some((_, why)) = refused.iter().find(|(name, _)| is_filled(name)) {
        return Some(why);
    }
    let junctors = ["/allOf", "/anyOf", "/oneOf"].into_iter().flat_map(|name| list(document, name));
    if let Some(why) = document.get("not").into_iter().chain(junctors).find_map(unreadable) {
        return Some(why);
    }
    if document.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
        );
    }
    if list(document, "/items").next().is_some() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array");
    }
    let below = below(document, "items").into_iter();
    let below = below.chain(fields(document).map(|(_, field)| field));
    below.chain(self::below(document, "additionalProperties")).find_map(unreadable)
}

/// All that keeps a schema from being structural, in order.
pub(super) fn check(document: &Value, path: &str) -> Vec<FieldError> {
    let mut walk = Walk::default();
    walk.node(document, path, Level::Root);
    walk.described(document, Some(document), path, path);
    let mut errors = walk.report.errors;
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

#[derive(Default)]
struct Walk {
    report: Report,
}

impl Walk {
    /// A schema that describes values.
    fn node(&mut self, document: &Value, path: &str, level: Level) {
        let ty = text(document, "/type");
        let items = below(document, "items");
        if ty == "array" && items.is_none() {
            self.report.required(format!("{path}.items"), "must be specified");
        }
        if let Some(items) = items {
            self.node(items, &format!("{path}.items"), Level::Item);
        }
        for (name, field) in fields(document) {
            self.node(field, &format!("{path}.properties[{name}]"), Level::Field);
        }
        if document.get("additionalProperties").is_some() {
            if level == Level::Root {
                self.report.forbidden(
                    format!("{path}.additionalProperties"),
                    "must not be used at the root",
                );
            }
            if let Some(values) = below(document, "additionalProperties") {
                self.node(values, &format!("{path}.additionalProperties"), Level::Field);
            }
        }
        let either = flag(document, "x-kubernetes-int-or-string");
        for other in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if either && flag(document, other) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.report.invalid(format!("{path}.{other}"), true, detail);
            }
        }
        let skip_any = is_int_or_string(document);
        let skip_first_all = list(document, "/allOf").next().is_some_and(is_int_or_string);
        self.restriction(document, path, skip_any, skip_first_all);
        self.types(document, path, level);
        self.metadata(document, path, level);
    }

    fn types(&mut self, document: &Value, path: &str, level: Level) {
        let ty = text(document, "/type");
        let embedded = flag(document, "x-kubernetes-embedded-resource");
        let untyped = flag(document, "x-kubernetes-int-or-string")
            || flag(document, "x-kubernetes-preserve-unknown-fields");
        let place = format!("{path}.type");
        if embedded && ty != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            if ty.is_empty() {
                self.report.required(place.clone(), detail);
            } else {
                self.report.invalid(place.clone(), ty, detail);
            }
        } else if ty.is_empty() && !untyped {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.report.required(place.clone(), detail);
        }
        if embedded && document.get("additionalProperties").is_some() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.report.forbidden(format!("{path}.additionalProperties"), detail);
        }
        if level == Level::Root && !ty.is_empty() && ty != "object" {
            self.report.invalid(place, ty, "must be object at the root");
        }
        let keeps = flag(document, "x-kubernetes-preserve-unknown-fields");
        if embedded && !keeps && fields(document).next().is_none() {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            self.report.required(format!("{path}.properties"), detail);
        }
    }

    /// What every object has may be restricted a little, not described anew.
    fn metadata(&mut self, document: &Value, path: &str, level: Level) {
        let field = |name: &str| document.get("properties").and_then(|fields| fields.get(name));
        let is_object = level == Level::Root || flag(document, "x-kubernetes-embedded-resource");
        for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")]
        {
            let Some(ty) = field(name).map(|field| text(field, "/type")) else { continue };
            if is_object && ty != wanted {
                let path = format!("{path}.properties[{name}].type");
                self.report.invalid(path, ty, format!("must be {wanted}"));
            }
        }
        let Some(metadata) = field("metadata").filter(|_| level == Level::Root) else { return };
        let names_only =
            fields(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
        let is_empty_list = |name: &str| {
            matches!(name, "allOf" | "anyOf" | "oneOf" | "enum")
                && list(metadata, &format!("/{name}")).next().is_none()
        };
        let says_more = internal::fields(SCHEMA).iter().any(|field| match field.from {
            "type" | "default" => false,
            "properties" => !names_only,
            name => field.is_set(metadata) && !is_empty_list(name),
        });
        if says_more {
            let detail = "must not specify anything other than name and generateName, but metadata \
                          is implicitly specified";
            self.report.forbidden(format!("{path}.properties[metadata]"), detail);
        }
    }

    /// What a schema or junctor asks of values.
    fn restriction(&mut self, document: &Value, path: &str, skip_any: bool, skip_first_all: bool) {
        for name in ["anyOf", "allOf", "oneOf"] {
            if name == "anyOf" && skip_any {
                continue;
            }
            for (index, found) in list(document, &format!("/{name}")).enumerate() {
                let skip = name == "allOf" && index == 0 && skip_first_all;
                self.junctor(found, &format!("{path}.{name}[{index}]"), skip);
            }
        }
        if let Some(not) = document.get("not") {
            self.junctor(not, &format!("{path}.not"), false);
        }
        let pattern = text(document, "/pattern");
        if let Err(error) = regex::Regex::new(pattern) {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.report.invalid(format!("{path}.pattern"), pattern, &detail);
        }
    }

    fn junctor(&mut self, document: &Value, path: &str, skip_any: bool) {
        self.restriction(document, path, skip_any, false);
        if let Some(items) = below(document, "items") {
            self.junctor(items, &format!("{path}.items"), false);
        }
        for (name, field) in fields(document) {
            self.junctor(field, &format!("{path}.properties[{name}]"), false);
        }
        for (name, wanted) in NOT_IN_JUNCTORS {
            let is_there = match document.get(*name) {
                None | Some(Value::Null | Value::Bool(false)) => false,
                Some(Value::String(text)) => *wanted == "undefined" || !text.is_empty(),
                Some(Value::Array(items)) => *wanted == "undefined" || !items.is_empty(),
                Some(_) => true,
            };
            if is_there || (*name == "default" && document.get(*name).is_some()) {
                let detail = format!("must be {wanted} to be structural");
                self.report.forbidden(format!("{path}.{name}"), &detail);
            }
        }
        if fields(document).any(|(name, _)| name == "metadata") {
            let detail = "must not be specified in a nested context";
            self.report.forbidden(format!("{path}.properties[metadata]"), detail);
        }
    }

    /// Whatever junctors speak of must be described outside of them.
    fn described(&mut self, junctor: &Value, schema: Option<&Value>, place: &str, path: &str) {
        let Some(schema) = schema else {
            self.report.required(place.to_owned(), &format!("because it is defined in {path}"));
            return;
        };
        if let Some(not) = junctor.get("not") {
            self.nested(not, schema, place, &format!("{path}.not"));
        }
        for name in ["allOf", "anyOf", "oneOf"] {
            for (index, found) in list(junctor, &format!("/{name}")).enumerate() {
                self.nested(found, schema, place, &format!("{path}.{name}[{index}]"));
            }
        }
    }

    fn nested(&mut self, junctor: &Value, schema: &Value, place: &str, path: &str) {
        self.described(junctor, Some(schema), place, path);
        if let Some(items) = below(junctor, "items") {
            let (place, path) = (format!("{place}.items"), format!("{path}.items"));
            match below(schema, "items") {
                Some(schema) => self.nested(items, schema, &place, &path),
                None => self.described(items, None, &place, &path),
            }
        }
        for (name, field) in fields(junctor) {
            let (place, path) =
                (format!("{place}.properties[{name}]"), format!("{path}.properties[{name}]"));
            match schema.get("properties").and_then(|fields| fields.get(name)) {
                Some(schema) => self.nested(field, schema, &place, &path),
                None => self.described(field, None, &place, &path),
            }
        }
    }
}

/// What a junctor may not say: it restricts values, it does not describe them.
const NOT_IN_JUNCTORS: &[(&str, &str)] = &[
    ("type", "empty"),
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"),
    ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    ("x-kubernetes-validations", "empty"),
];

/// A single schema below another.
pub(super) fn below<'a>(document: &'a Value, name: &str) -> Option<&'a Value> {
    document.get(name).filter(|below| below.is_object())
}

/// The fields of an object.
pub(super) fn fields(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Whether a schema's `anyOf` says "integer or string" and nothing else.
fn is_int_or_string(document: &Value) -> bool {
    let either: Vec<&Value> = list(document, "/anyOf").collect();
    let is_only = |found: &Value, ty: &str| {
        text(found, "/type") == ty
            && !internal::fields(SCHEMA)
                .iter()
                .any(|field| field.from != "type" && field.is_set(found) && says(found, field.from))
    };
    matches!(either[..], [first, second] if is_only(first, "integer") && is_only(second, "string"))
}

/// Whether a keyword that is there says something that a structural schema keeps.
fn says(document: &Value, keyword: &str) -> bool {
    let value = &document[keyword];
    match keyword {
        "$ref" | "patternProperties" | "dependencies" | "definitions" => false,
        "allOf" | "anyOf" | "oneOf" | "enum" => {
            value.as_array().is_some_and(|list| !list.is_empty())
        }
        "items" => value.is_object(),
        "additionalProperties" => value != &Value::Bool(false),
        _ => true,
    }
}
