//! What every node of an `openAPIV3Schema` must obey, structural or not: the keywords that are
//! known, and what they ask of each other.

use std::collections::BTreeMap;

use serde_json::Value;

use super::structural::{below, fields};
use super::{ITEMS, flag, list, rules, text};
use crate::field::FieldError;
use crate::go::internal;
use crate::validate::Report;

pub(super) const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const LIST_TYPES: &[&str] = &["atomic", "set", "map"];
const MAP_TYPES: &[&str] = &["atomic", "granular"];

/// All that is wrong with the nodes of a schema.
pub(super) fn check(document: &Value, path: &str) -> Vec<FieldError> {
    let mut walk = Walk::default();
    walk.node(document, path, &Place { is_root: true, ..Place::default() });
    walk.report.errors
}

#[derive(Clone, Default)]
struct Place {
    is_root: bool,
    /// Whether the node describes `apiVersion`, `kind` or `metadata`.
    in_metadata: bool,
    /// Why there may be no default.
    no_default: Option<String>,
}

#[derive(Default)]
struct Walk {
    report: Report,
}

impl Walk {
    fn node(&mut self, document: &Value, path: &str, place: &Place) {
        self.keywords(document, path, place);
        self.below(document, path, &Place { is_root: false, ..place.clone() }, place.is_root);
        self.map_type(document, path);
        self.list_type(document, path);
        for (index, rule) in list(document, "/x-kubernetes-validations").enumerate() {
            let path = format!("{path}.x-kubernetes-validations[{index}]");
            rules::wording(document, rule, &path, &mut self.report.errors);
        }
    }

    fn keywords(&mut self, document: &Value, path: &str, place: &Place) {
        let ty = text(document, "/type");
        if !ty.is_empty() {
            self.report.known(&format!("{path}.type"), &ty.into(), TYPES);
        }
        if let Some(why) = place.no_default.as_ref().filter(|_| document.get("default").is_some()) {
            self.report.forbidden(format!("{path}.default"), &format!("must not be set {why}"));
        }
        let is_filled = |name: &str| match document.get(name) {
            Some(Value::Object(map)) => !map.is_empty(),
            other => other.is_some(),
        };
        let refused = [
            ("id", !text(document, "/id").is_empty()),
            ("additionalItems", document.get("additionalItems").is_some()),
            ("patternProperties", is_filled("patternProperties")),
            ("definitions", is_filled("definitions")),
            ("dependencies", document.get("dependencies").is_some()),
            ("$ref", document.get("$ref").is_some()),
        ];
        for (name, _) in refused.into_iter().filter(|(_, is_there)| *is_there) {
            self.report.forbidden(format!("{path}.{name}"), &format!("{name} is not supported"));
        }
        if ty == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.report.forbidden(format!("{path}.type"), detail);
        }
        if list(document, "/items").next().is_some() {
            let detail = "items must be a schema object and not an array";
            self.report.forbidden(format!("{path}.items"), detail);
        }
        if place.in_metadata && flag(document, "x-kubernetes-embedded-resource") {
            let detail = "must not be used inside of resource meta";
            self.report.forbidden(format!("{path}.x-kubernetes-embedded-resource"), detail);
        }
        if flag(document, "uniqueItems") {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.report.forbidden(format!("{path}.uniqueItems"), detail);
        }
        let additional = document.get("additionalProperties");
        if fields(document).next().is_some()
            && additional.is_some_and(|additional| additional != &Value::Bool(true))
        {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.report.forbidden(format!("{path}.additionalProperties"), detail);
        }
    }

    fn below(&mut self, document: &Value, path: &str, place: &Place, is_root: bool) {
        if let Some(values) = below(document, "additionalProperties") {
            let mut place = place.clone();
            if place.in_metadata {
                place.no_default =
                    Some("inside additionalProperties applying to object metadata".to_owned());
            }
            self.node(values, &format!("{path}.additionalProperties"), &place);
        }
        let in_order: BTreeMap<_, _> = fields(document).collect();
        let is_object = is_root || flag(document, "x-kubernetes-embedded-resource");
        for (name, field) in in_order {
            let mut place = place.clone();
            if is_object && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                place.in_metadata = true;
                if is_root {
                    place.no_default = Some(format!("in top-level {name}"));
                }
            }
            self.node(field, &format!("{path}.properties[{name}]"), &place);
        }
        if let Some(not) = document.get("not") {
            self.node(not, &format!("{path}.not"), place);
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            for (index, found) in list(document, &format!("/{name}")).enumerate() {
                self.node(found, &format!("{path}.{name}[{index}]"), place);
            }
        }
        self.named(document, path, "definitions", place);
        if let Some(items) = below(document, "items") {
            self.node(items, &format!("{path}.items"), place);
        }
        for (index, found) in list(document, "/items").enumerate() {
            self.node(found, &format!("{path}.items[{index}]"), place);
        }
        self.named(document, path, "dependencies", place);
    }

    fn named(&mut self, document: &Value, path: &str, name: &str, place: &Place) {
        let found = document.get(name).and_then(Value::as_object);
        let in_order: BTreeMap<_, _> = found.into_iter().flatten().collect();
        for (key, found) in in_order.into_iter().filter(|(_, found)| found.is_object()) {
            self.node(found, &format!("{path}.{name}[{key}]"), place);
        }
    }

    /// A type that a keyword asks for.
    fn wants_type(&mut self, document: &Value, path: &str, wanted: &str, keyword: &str) -> bool {
        let ty = text(document, "/type");
        let detail = format!("must be {wanted} if {keyword} is specified");
        match ty {
            ty if ty == wanted => return true,
            "" => self.report.required(format!("{path}.type"), &detail),
            ty => self.report.invalid(format!("{path}.type"), ty, &detail),
        }
        false
    }

    fn map_type(&mut self, document: &Value, path: &str) {
        if document.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = format!("{path}.x-kubernetes-preserve-unknown-fields");
            self.report.invalid(path, false, "must be true or undefined");
        }
        let keyword = "x-kubernetes-map-type";
        if let Some(ty) = document.get(keyword).and_then(Value::as_str) {
            self.wants_type(document, path, "object", keyword);
            self.report.known(&format!("{path}.{keyword}"), &ty.into(), MAP_TYPES);
        }
    }

    fn list_type(&mut self, document: &Value, path: &str) {
        let keyword = "x-kubernetes-list-type";
        let list_type = document.get(keyword).and_then(Value::as_str);
        let items = below(document, "items");
        let has_keys = list(document, "/x-kubernetes-list-map-keys").next().is_some();
        if let Some(ty) = list_type {
            if self.wants_type(document, path, "array", keyword) && ty == "set" {
                self.set_items(items, path);
            }
            self.report.known(&format!("{path}.{keyword}"), &ty.into(), LIST_TYPES);
        }
        if has_keys && list_type != Some("map") {
            let path = format!("{path}.{keyword}");
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match list_type {
                None => self.report.required(path, detail),
                Some(ty) => self.report.invalid(path, ty, detail),
            }
        }
        if list_type == Some("map") {
            self.map_list(document, path, has_keys);
        }
        if let (Some(ty @ ("set" | "map")), Some(items)) = (list_type, items) {
            if flag(items, "nullable") {
                let detail = format!("cannot be nullable when x-kubernetes-list-type is {ty}");
                self.report.forbidden(format!("{path}.items.nullable"), &detail);
            }
            if ty == "map" {
                self.map_keys(document, items, path);
            }
        }
    }

    /// Items of a set are compared as a whole.
    fn set_items(&mut self, items: Option<&Value>, path: &str) {
        let Some(items) = items else { return };
        let list_type = items.get("x-kubernetes-list-type").cloned();
        let name = match text(items, "/type") {
            "array" if list_type.as_ref().is_some_and(|ty| ty != "atomic") => {
                "x-kubernetes-list-type"
            }
            "object" if text(items, "/x-kubernetes-map-type") != "atomic" => {
                "x-kubernetes-map-type"
            }
            _ => return,
        };
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        self.report.invalid(
            format!("{path}.items.{name}"),
            list_type.unwrap_or(Value::Null),
            detail,
        );
    }

    fn map_list(&mut self, document: &Value, path: &str, has_keys: bool) {
        let keys_path = format!("{path}.x-kubernetes-list-map-keys");
        if !has_keys {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.report.required(keys_path.clone(), detail);
        }
        let place = format!("{path}.items");
        let Some(items) = document.get("items") else {
            self.report.required(place, "must have a schema if x-kubernetes-list-type is map");
            return;
        };
        if !items.is_object() {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            self.report.invalid(place, internal::form(ITEMS, items), detail);
            return;
        }
        let ty = text(items, "/type");
        if ty != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.report.invalid(format!("{place}.type"), ty, detail);
            return;
        }
        let all = document.get("x-kubernetes-list-map-keys").cloned().unwrap_or(Value::Null);
        let keys: Vec<&str> =
            list(document, "/x-kubernetes-list-map-keys").filter_map(Value::as_str).collect();
        for (index, key) in keys.iter().enumerate() {
            match items.get("properties").and_then(|fields| fields.get(key)) {
                Some(field) if matches!(text(field, "/type"), "array" | "object") => {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type \
                                  is map";
                    self.report.invalid(format!("{place}.properties[{key}].type"), ty, detail);
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.report.invalid(keys_path.clone(), all.clone(), detail);
                }
            }
            if keys[..index].contains(key) {
                let detail = "must not contain duplicate entries";
                self.report.invalid(keys_path.clone(), all.clone(), detail);
            }
        }
    }

    /// Every key is a field of the items that is always there.
    fn map_keys(&mut self, document: &Value, items: &Value, path: &str) {
        for key in list(document, "/x-kubernetes-list-map-keys").filter_map(Value::as_str) {
            let Some(field) = items.get("properties").and_then(|fields| fields.get(key)) else {
                continue;
            };
            let place = format!("{path}.items.properties[{key}]");
            let is_required = list(items, "/required").any(|required| required == key);
            if !is_required && field.get("default").is_none() {
                self.report.required(
                    format!("{place}.default"),
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or \
                     be a required property",
                );
            }
            if flag(field, "nullable") {
                let detail =
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.report.forbidden(format!("{place}.nullable"), detail);
            }
        }
    }
}
