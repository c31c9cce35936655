//! OpenAPI v2: all documents in one, for clients that know nothing newer.
//!
//! It says nothing that the v3 documents do not say; what v2 cannot say is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::protobuf;

/// The paths and types of some v3 documents, in the words of v2.
#[derive(Debug, Clone, Default)]
pub(super) struct Swagger {
    paths: BTreeMap<String, Value>,
    definitions: BTreeMap<String, Value>,
}

impl Swagger {
    /// Takes over a v3 document.
    pub(super) fn add(&mut self, document: &Value) {
        for (path, item) in object(&document["paths"]) {
            self.paths.insert(path.clone(), path_item(item));
        }
        for (name, schema) in object(&document["components"]["schemas"]) {
            if !self.definitions.contains_key(name) {
                self.definitions.insert(name.clone(), definition(schema));
            }
        }
    }

    /// Both forms, leaving out what `known` has.
    pub(super) fn members(self, known: Option<&Members>) -> Members {
        let new = |name: &String, of: fn(&Members) -> &BTreeSet<String>| {
            known.is_none_or(|known| !of(known).contains(name))
        };
        let mut members = Members::default();
        for (name, item) in self.paths {
            if new(&name, |known| &known.path_names) {
                push_member(&mut members.paths, &name, &item);
                members.path_entries.extend(protobuf::path(&name, &item));
                members.path_names.insert(name);
            }
        }
        for (name, schema) in self.definitions {
            if new(&name, |known| &known.definition_names) {
                push_member(&mut members.definitions, &name, &schema);
                members.definition_entries.extend(protobuf::definition(&name, &schema));
                members.definition_names.insert(name);
            }
        }
        members
    }
}

/// Paths and types as they go into both forms of the document.
#[derive(Debug, Default)]
pub(super) struct Members {
    path_names: BTreeSet<String>,
    definition_names: BTreeSet<String>,
    /// JSON, without the braces.
    paths: String,
    definitions: String,
    path_entries: Vec<u8>,
    definition_entries: Vec<u8>,
}

fn push_member(text: &mut String, name: &str, value: &Value) {
    if !text.is_empty() {
        text.push(',');
    }
    let _ = write!(text, "{}:{value}", json!(name));
}

fn head() -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "securityDefinitions": {"BearerToken": {
            "description": "Bearer Token authentication",
            "type": "apiKey", "name": "authorization", "in": "header",
        }},
        "security": [{"BearerToken": []}],
    })
}

/// The whole document as JSON.
pub(super) fn text(all: &[&Members]) -> String {
    let join = |part: fn(&Members) -> &String| -> String {
        let parts = all.iter().map(|members| part(members).as_str());
        parts.filter(|text| !text.is_empty()).collect::<Vec<&str>>().join(",")
    };
    format!(
        "{},\"paths\":{{{}}},\"definitions\":{{{}}}}}",
        head().to_string().trim_end_matches('}'),
        join(|members| &members.paths),
        join(|members| &members.definitions)
    )
}

/// The whole document as protobuf.
pub(super) fn message(all: &[&Members]) -> Vec<u8> {
    let paths: Vec<&[u8]> = all.iter().map(|members| members.path_entries.as_slice()).collect();
    let types: Vec<&[u8]> =
        all.iter().map(|members| members.definition_entries.as_slice()).collect();
    protobuf::document(&head(), &paths, &types)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// A named type. Of one that takes anything at its root, v2 clients must not know more.
fn definition(written: &Value) -> Value {
    if written["x-kubernetes-preserve-unknown-fields"] == true {
        let kind = "x-kubernetes-group-version-kind";
        return json!({"type": "object", kind: written[kind]});
    }
    schema(written)
}

fn schema(written: &Value) -> Value {
    let Some(fields) = written.as_object() else { return written.clone() };
    let mut out = Map::new();
    let anything = written["x-kubernetes-preserve-unknown-fields"] == true;
    let nullable = written["nullable"] == true;
    for (name, value) in fields {
        match name.as_str() {
            "nullable" | "anyOf" | "not" | "oneOf" | "default" => {}
            "allOf" => {
                // How v3 says something about a reference; v2 says it beside the reference.
                if let [only] = value.as_array().map_or(&[][..], Vec::as_slice)
                    && let Some(reference) = only.get("$ref")
                {
                    out.insert("$ref".to_owned(), renamed(reference));
                }
            }
            "$ref" => drop(out.insert(name.clone(), renamed(value))),
            "items" | "properties" if anything || nullable => {}
            "type" if nullable || (anything && value == "object") => {}
            "items" | "additionalProperties" => drop(out.insert(name.clone(), schema(value))),
            "properties" => {
                let all = object(value).map(|(name, value)| (name.clone(), schema(value)));
                out.insert(name.clone(), Value::Object(all.collect()));
            }
            "required" => {
                let nulls = |name: &&Value| {
                    written["properties"][name.as_str().unwrap_or_default()]["nullable"] == true
                };
                let names = value.as_array().into_iter().flatten();
                let names: Vec<Value> = names.filter(|name| !nulls(name)).cloned().collect();
                if !names.is_empty() {
                    out.insert(name.clone(), names.into());
                }
            }
            _ => drop(out.insert(name.clone(), value.clone())),
        }
    }
    if out.get("type").is_some_and(|ty| ty == "array") && !out.contains_key("items") {
        out.shift_remove("type");
    }
    // Built-in types that are text or a number call themselves text.
    if fields.contains_key("oneOf") && !out.contains_key("type") {
        out.insert("type".to_owned(), "string".into());
    }
    Value::Object(out)
}

fn renamed(reference: &Value) -> Value {
    let text = reference.as_str().unwrap_or_default();
    text.replace("#/components/schemas/", "#/definitions/").into()
}

fn path_item(item: &Value) -> Value {
    let convert = |(name, value): (&String, &Value)| {
        let value = match name.as_str() {
            "parameters" => parameters(value),
            "get" | "put" | "post" | "delete" | "patch" | "options" | "head" => operation(value),
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    Value::Object(object(item).map(convert).collect())
}

fn parameters(list: &Value) -> Value {
    let flat = |parameter: &Value| {
        let mut out = Map::new();
        for (name, value) in object(parameter) {
            if name == "schema" {
                out.extend(
                    object(&schema(value)).map(|(name, value)| (name.clone(), value.clone())),
                );
            } else {
                out.insert(name.clone(), value.clone());
            }
        }
        Value::Object(out)
    };
    list.as_array().into_iter().flatten().map(flat).collect()
}

fn operation(written: &Value) -> Value {
    let mut out = Map::new();
    let content = |of: &Value| -> (Vec<String>, Value) {
        let types: Vec<String> = object(&of["content"]).map(|(name, _)| name.clone()).collect();
        let first = types.first().cloned().unwrap_or_default();
        (types, schema(&of["content"][first]["schema"]))
    };
    for (name, value) in object(written) {
        match name.as_str() {
            "requestBody" | "parameters" => {}
            "responses" => {
                let mut produced = Vec::new();
                let mut responses = Map::new();
                for (code, response) in object(value) {
                    let (types, schema) = content(response);
                    let mut answer = json!({"description": response["description"]});
                    if !types.is_empty() {
                        answer["schema"] = schema;
                        produced = types;
                    }
                    responses.insert(code.clone(), answer);
                }
                out.insert("produces".to_owned(), produced.into());
                out.insert("responses".to_owned(), Value::Object(responses));
            }
            _ => drop(out.insert(name.clone(), value.clone())),
        }
    }
    let mut all = parameters(&written["parameters"]).as_array().cloned().unwrap_or_default();
    if let Some(body) = written.get("requestBody") {
        let (types, schema) = content(body);
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body["required"] == true {
            parameter["required"] = true.into();
        }
        all.push(parameter);
        out.insert("consumes".to_owned(), types.into());
    }
    if !all.is_empty() {
        out.insert("parameters".to_owned(), all.into());
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_v2_cannot_say_is_left_out() {
        let written = json!({
            "type": "object",
            "required": ["maybe", "sure"],
            "properties": {
                "maybe": {"type": "object", "nullable": true, "properties": {"a": {}}},
                "sure": {"type": "string", "anyOf": [{"minLength": 1}]},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "meta": {"allOf": [{"$ref": "#/components/schemas/M"}], "default": {},
                    "description": "said"},
            },
        });
        let expected = json!({
            "type": "object",
            "required": ["sure"],
            "properties": {
                "maybe": {},
                "sure": {"type": "string"},
                "any": {"x-kubernetes-preserve-unknown-fields": true},
                "meta": {"$ref": "#/definitions/M", "description": "said"},
            },
        });
        assert_eq!(definition(&written), expected);
    }

    #[test]
    fn a_body_is_a_parameter() {
        let media = json!({"schema": {"$ref": "#/components/schemas/T"}});
        let written = json!({
            "parameters": [{"name": "dryRun", "in": "query", "schema": {"type": "string"}}],
            "requestBody": {"required": true, "content": {"application/json": media}},
            "responses": {"200": {"description": "OK", "content": {"application/json": media}}},
        });
        let v2 = operation(&written);
        assert_eq!(v2["parameters"][0], json!({"name": "dryRun", "in": "query", "type": "string"}));
        assert_eq!(v2["parameters"][1]["schema"]["$ref"], "#/definitions/T");
        assert_eq!(v2["responses"]["200"]["schema"]["$ref"], "#/definitions/T");
        assert_eq!(v2["consumes"], json!(["application/json"]));
    }
}
