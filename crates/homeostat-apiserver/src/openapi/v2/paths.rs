//! Paths in the words of v2: bodies are parameters, media types belong to operations, and what many
//! operations take is said once for all of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::object;
use super::schema::schema;
use super::shared;

/// The order in which servers list media types; v3 has them by name.
const MEDIA: &[&str] = &[
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// What an operation without a body says that it reads; v3 says nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::openapi) enum Reads {
    /// Objects of built-in kinds: anything.
    Anything,
    /// Custom resources: JSON and YAML.
    JsonAndYaml,
    /// What it answers with: discovery.
    WhatItProduces,
    /// Documents that are no part of the API.
    Nothing,
}

/// A path with its operations. Parameters that are said once for all go to `parameters`.
pub(super) fn path_item(
    item: &Value,
    reads: Reads,
    parameters: &mut BTreeMap<String, Value>,
) -> Value {
    let mut out = Map::new();
    for (name, value) in object(item) {
        let value = match name.as_str() {
            "parameters" => {
                flat(value).into_iter().map(|one| shared::name(one, parameters)).collect()
            }
            "get" | "put" | "post" | "delete" | "patch" | "options" | "head" => {
                operation(value, reads, parameters)
            }
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    Value::Object(out)
}

/// Parameters with the members of their schemas as their own.
fn flat(list: &Value) -> Vec<Value> {
    let flat = |parameter: &Value| {
        let mut out = Map::new();
        for (name, value) in object(parameter) {
            if name == "schema" {
                let Value::Object(fields) = schema(value) else { continue };
                out.extend(fields);
            } else {
                out.insert(name.clone(), value.clone());
            }
        }
        Value::Object(out)
    };
    list.as_array().into_iter().flatten().map(flat).collect()
}

fn operation(written: &Value, reads: Reads, shared_ones: &mut BTreeMap<String, Value>) -> Value {
    let mut out = Map::new();
    for (name, value) in object(written) {
        if !matches!(name.as_str(), "requestBody" | "parameters" | "responses") {
            out.insert(name.clone(), value.clone());
        }
    }
    out.insert("schemes".to_owned(), json!(["https"]));
    let (responses, produced) = responses(&written["responses"]);
    out.insert("responses".to_owned(), responses);
    let mut all = flat(&written["parameters"]);
    let consumed = if let Some(body) = written.get("requestBody") {
        let (types, schema) = content(body);
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body["required"] == true {
            parameter["required"] = true.into();
        }
        all.insert(0, parameter);
        types
    } else {
        match reads {
            Reads::Anything => vec!["*/*".to_owned()],
            Reads::JsonAndYaml => MEDIA[1..3].iter().map(|&name| name.to_owned()).collect(),
            Reads::WhatItProduces => produced.clone(),
            Reads::Nothing => Vec::new(),
        }
    };
    for (name, types) in [("produces", produced), ("consumes", consumed)] {
        if !types.is_empty() {
            out.insert(name.to_owned(), types.into());
        }
    }
    if !all.is_empty() {
        let all = all.into_iter().map(|one| shared::name(one, shared_ones)).collect();
        out.insert("parameters".to_owned(), all);
    }
    Value::Object(out)
}

/// The answers, and the media types they come in.
fn responses(written: &Value) -> (Value, Vec<String>) {
    let mut produced = Vec::new();
    let mut responses = Map::new();
    for (code, response) in object(written) {
        let (types, schema) = content(response);
        let mut answer = json!({"description": response["description"]});
        if !types.is_empty() {
            answer["schema"] = schema;
            produced = types;
        }
        responses.insert(code.clone(), answer);
    }
    (Value::Object(responses), produced)
}

/// The media types of a body or an answer, and its type.
fn content(of: &Value) -> (Vec<String>, Value) {
    let mut types: Vec<String> = object(&of["content"]).map(|(name, _)| name.clone()).collect();
    types.sort_by_key(|name| MEDIA.iter().position(|known| known == name).unwrap_or(MEDIA.len()));
    let first = types.first().cloned().unwrap_or_default();
    (types, schema(&of["content"][first]["schema"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_a_parameter_and_its_media_types_belong_to_the_operation() {
        let media = json!({"schema": {"$ref": "#/components/schemas/T"}});
        let both = json!({"application/yaml": media, "application/json": media});
        let written = json!({
            "parameters": [{"name": "dryRun", "in": "query", "schema": {"type": "string"}}],
            "requestBody": {"required": true, "content": both},
            "responses": {"200": {"description": "OK", "content": both}},
        });
        let v2 = operation(&written, Reads::Anything, &mut BTreeMap::new());
        assert_eq!(v2["parameters"][0]["schema"]["$ref"], "#/definitions/T");
        assert_eq!(v2["parameters"][1], json!({"name": "dryRun", "in": "query", "type": "string"}));
        assert_eq!(v2["responses"]["200"]["schema"]["$ref"], "#/definitions/T");
        assert_eq!(v2["consumes"], json!(["application/json", "application/yaml"]));
        assert_eq!(v2["produces"], v2["consumes"]);
    }
}
