//! The rules that make an `openAPIV3Schema` structural: every value has a type, junctors only
//! restrict, and what is written in it (defaults, patterns) works.

use serde_json::Value;

use super::{arena, list};
use crate::field::{FieldError, Reason};
use crate::validate;

/// Keys that a structural schema may not have at all.
const NOT_SUPPORTED: &[&str] =
    &["$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id"];

/// Keys that a junctor may not have: it restricts values, it does not describe them.
const NOT_IN_JUNCTORS: &[&str] = &[
    "type",
    "additionalProperties",
    "default",
    "title",
    "description",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// All that is wrong with the schemas of a definition.
pub(super) fn check(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions: Vec<&Value> = list(definition, "/spec/versions").collect();
    let schema_of = |version: &Value| version.pointer("/schema/openAPIV3Schema").cloned();
    // versions that share one schema are reported once, under the name the API uses for that
    let shared = versions.windows(2).all(|pair| schema_of(pair[0]) == schema_of(pair[1]));
    for (index, version) in versions.iter().enumerate() {
        let Some(document) = version.pointer("/schema/openAPIV3Schema").filter(|d| d.is_object())
        else {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(path, ""));
            continue;
        };
        let path = if shared {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{index}].schema.openAPIV3Schema")
        };
        let before = errors.len();
        let mut walk = Walk { errors: &mut errors };
        walk.node(document, &path, Place::Root);
        // Rules rely on the structure.
        if errors.len() == before {
            let name = version.get("name");
            let was = old.and_then(|old| {
                list(old, "/spec/versions").find(|version| version.get("name") == name)
            });
            let is_known = was.is_some_and(|was| schema_of(was).as_ref() == Some(document));
            errors.extend(super::rules::check(document, &path, is_known));
        }
        if shared {
            break;
        }
    }
    errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Field,
    Item,
    Junctor,
    /// A branch of `x-kubernetes-int-or-string`, which may say which of the two it is.
    IntOrString,
}

struct Walk<'a> {
    errors: &'a mut Vec<FieldError>,
}

impl Walk<'_> {
    fn invalid(&mut self, path: String, value: impl Into<Value>, detail: impl Into<String>) {
        self.errors.push(FieldError::new(path, Reason::Invalid, value.into(), detail));
    }

    fn node(&mut self, document: &Value, path: &str, place: Place) {
        for key in NOT_SUPPORTED.iter().filter(|key| document.get(**key).is_some()) {
            self.errors.push(FieldError::forbidden(
                format!("{path}.{key}"),
                format!("{key} is not supported"),
            ));
        }
        if matches!(place, Place::Junctor | Place::IntOrString) {
            self.junctor(document, path, place == Place::IntOrString);
        } else {
            self.types(document, path, place);
            self.containers(document, path);
            self.default(document, path);
        }
        self.pattern(document, path);
        self.below(document, path, place);
    }

    fn types(&mut self, document: &Value, path: &str, place: Place) {
        let ty = document.get("type").and_then(Value::as_str).unwrap_or_default();
        let flag = |name: &str| document.get(name) == Some(&Value::Bool(true));
        let type_path = format!("{path}.type");
        let may_be_untyped =
            flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
        match place {
            Place::Root if ty.is_empty() => {
                self.errors.push(FieldError::required(type_path, "must not be empty at the root"));
            }
            Place::Root if ty != "object" => {
                self.invalid(type_path, ty, "must be object at the root");
            }
            Place::Field | Place::Item if ty.is_empty() && !may_be_untyped => {
                let what = if place == Place::Item { "array items" } else { "object fields" };
                let detail = format!("must not be empty for specified {what}");
                self.errors.push(FieldError::required(type_path, detail));
            }
            _ if !ty.is_empty() && !TYPES.contains(&ty) => {
                let allowed: Vec<String> = TYPES.iter().map(|ty| format!("{ty:?}")).collect();
                let detail = format!("supported values: {}", allowed.join(", "));
                self.errors.push(FieldError::new(
                    type_path,
                    Reason::NotSupported,
                    Value::from(ty),
                    detail,
                ));
            }
            _ => {}
        }
        if flag("x-kubernetes-embedded-resource") && ty != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            self.invalid(format!("{path}.type"), ty, detail);
        }
        if ty == "array" && !document.get("items").is_some_and(Value::is_object) {
            self.errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
        }
    }

    fn containers(&mut self, document: &Value, path: &str) {
        let additional = document.get("additionalProperties");
        if additional == Some(&Value::Bool(false)) {
            let detail = "additionalProperties cannot be set to false";
            self.errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), detail));
        } else if additional.is_some() && document.get("properties").is_some() {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), detail));
        }
        if document.get("uniqueItems") == Some(&Value::Bool(true)) {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), detail));
        }
        let list_type = document.get("x-kubernetes-list-type").and_then(Value::as_str);
        let keys: Vec<&str> =
            list(document, "/x-kubernetes-list-map-keys").filter_map(Value::as_str).collect();
        let keys_path = format!("{path}.x-kubernetes-list-map-keys");
        match list_type {
            None | Some("atomic" | "set") if !keys.is_empty() => {
                let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
                self.invalid(
                    format!("{path}.x-kubernetes-list-type"),
                    list_type.unwrap_or_default(),
                    detail,
                );
            }
            Some("map") if keys.is_empty() => {
                let detail = "must not be empty if x-kubernetes-list-type is map";
                self.errors.push(FieldError::required(keys_path, detail));
            }
            Some("map") => self.map_keys(document, path, &keys),
            None | Some("atomic" | "set") => {}
            Some(other) => self.errors.push(FieldError::new(
                format!("{path}.x-kubernetes-list-type"),
                Reason::NotSupported,
                Value::from(other),
                "supported values: \"atomic\", \"set\", \"map\"",
            )),
        }
    }

    /// Every key is a field of the items that is always there.
    fn map_keys(&mut self, document: &Value, path: &str, keys: &[&str]) {
        let required: Vec<&Value> = list(document, "/items/required").collect();
        for key in keys {
            match document.pointer("/items/properties").and_then(|fields| fields.get(key)) {
                None => {
                    let path = format!("{path}.x-kubernetes-list-map-keys");
                    self.invalid(
                        path,
                        Value::from(keys.to_vec()),
                        "entries must all be names of item properties",
                    );
                }
                Some(field)
                    if field.get("default").is_none()
                        && !required.contains(&&Value::from(*key)) =>
                {
                    self.errors.push(FieldError::required(
                        format!("{path}.items.properties[{key}].default"),
                        "this property is in x-kubernetes-list-map-keys, so it must have a default or \
                         be a required property",
                    ));
                }
                Some(_) => {}
            }
        }
    }

    fn default(&mut self, document: &Value, path: &str) {
        let Some(default) = document.get("default") else { return };
        let (schemas, root) = arena::build_value(document);
        let mut value = default.clone();
        crate::default::apply_defaults(schemas.at(root), &mut value);
        for error in validate::schema(schemas.at(root), &value, None) {
            let below =
                if error.path.is_empty() { String::new() } else { format!(".{}", error.path) };
            self.errors.push(FieldError { path: format!("{path}.default{below}"), ..error });
        }
        for dropped in super::prune(schemas.at(root), &mut value) {
            self.invalid(
                format!("{path}.default"),
                default.clone(),
                format!("must not have unknown fields: {dropped}"),
            );
        }
    }

    fn pattern(&mut self, document: &Value, path: &str) {
        if let Some(pattern) = document.get("pattern").and_then(Value::as_str)
            && let Err(error) = regex::Regex::new(pattern)
        {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.invalid(format!("{path}.pattern"), pattern, detail);
        }
    }

    fn junctor(&mut self, document: &Value, path: &str, may_have_type: bool) {
        let is_plain_type = may_have_type
            && document.as_object().is_some_and(|object| object.len() == 1)
            && matches!(document.get("type").and_then(Value::as_str), Some("integer" | "string"));
        if is_plain_type {
            return;
        }
        for key in NOT_IN_JUNCTORS.iter().filter(|key| document.get(**key).is_some()) {
            let detail = "must be empty to be structural";
            self.errors.push(FieldError::forbidden(format!("{path}.{key}"), detail));
        }
    }

    fn below(&mut self, document: &Value, path: &str, place: Place) {
        let inside = matches!(place, Place::Junctor | Place::IntOrString);
        let child = |other: Place| if inside { Place::Junctor } else { other };
        let either = document.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
        let branch =
            if either || place == Place::IntOrString { Place::IntOrString } else { Place::Junctor };
        for (name, field) in
            document.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let is_metadata = place == Place::Root && name == "metadata";
            if !is_metadata {
                self.node(field, &format!("{path}.properties[{name}]"), child(Place::Field));
            }
        }
        if let Some(values) =
            document.get("additionalProperties").filter(|values| values.is_object())
        {
            self.node(values, &format!("{path}.additionalProperties"), child(Place::Field));
        }
        if let Some(items) = document.get("items").filter(|items| items.is_object()) {
            self.node(items, &format!("{path}.items"), child(Place::Item));
        }
        for name in ["allOf", "anyOf", "oneOf"] {
            for (index, found) in list(document, &format!("/{name}")).enumerate() {
                self.node(found, &format!("{path}.{name}[{index}]"), branch);
            }
        }
        if let Some(not) = document.get("not") {
            self.node(not, &format!("{path}.not"), Place::Junctor);
        }
    }
}
