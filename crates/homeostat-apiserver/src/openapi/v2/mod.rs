//! OpenAPI v2: all documents in one, for clients that know nothing newer.
//!
//! It says nothing that the v3 documents do not say; what v2 cannot say is left out.

mod paths;
mod protobuf;
mod schema;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

pub(super) use paths::Reads;

use super::registered;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The paths and types of some v3 documents, in the words of v2.
#[derive(Debug, Clone, Default)]
pub(super) struct Swagger {
    paths: BTreeMap<String, Value>,
    parameters: BTreeMap<String, Value>,
    definitions: BTreeMap<String, Value>,
}

impl Swagger {
    /// Takes over a v3 document.
    pub(super) fn add(&mut self, document: &Value, reads: Reads) {
        for (path, item) in object(&document["paths"]) {
            let reads = match path.as_str() {
                "/version/" => Reads::WhatItProduces,
                path if path.starts_with("/api") && path.ends_with('/') => Reads::WhatItProduces,
                path if !path.starts_with("/api") => Reads::Nothing,
                _ => reads,
            };
            let item = paths::path_item(item, reads, &mut self.parameters);
            self.paths.insert(path.clone(), item);
        }
        for (name, written) in object(&document["components"]["schemas"]) {
            if !self.definitions.contains_key(name) {
                let mut definition = schema::definition(written);
                if let Some(kind @ ("DeleteOptions" | "WatchEvent")) = name.strip_prefix(META) {
                    definition["x-kubernetes-group-version-kind"] = registered::everywhere(kind);
                }
                self.definitions.insert(name.clone(), definition);
            }
        }
    }

    /// Both forms, leaving out what `known` has.
    pub(super) fn members(self, known: Option<&Members>) -> Members {
        let known = |part: fn(&Members) -> &Part| known.map(|known| &part(known).names);
        Members {
            paths: Part::of(self.paths, known(|all| &all.paths), protobuf::path),
            parameters: Part::of(self.parameters, known(|all| &all.parameters), protobuf::shared),
            definitions: Part::of(
                self.definitions,
                known(|all| &all.definitions),
                protobuf::definition,
            ),
        }
    }
}

/// Everything that documents add to the whole.
#[derive(Debug, Default)]
pub(super) struct Members {
    paths: Part,
    parameters: Part,
    definitions: Part,
}

/// Members of one part of the document, as they go into both of its forms.
#[derive(Debug, Default)]
struct Part {
    names: BTreeSet<String>,
    /// JSON, without the braces.
    text: String,
    entries: Vec<u8>,
}

impl Part {
    fn of(
        members: BTreeMap<String, Value>,
        known: Option<&BTreeSet<String>>,
        entry: fn(&str, &Value) -> Vec<u8>,
    ) -> Self {
        let mut part = Self::default();
        for (name, value) in members {
            if known.is_some_and(|known| known.contains(&name)) {
                continue;
            }
            if !part.text.is_empty() {
                part.text.push(',');
            }
            let _ = write!(part.text, "{}:{value}", json!(name));
            part.entries.extend(entry(&name, &value));
            part.names.insert(name);
        }
        part
    }
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
    let join = |part: fn(&Members) -> &Part| -> String {
        let parts = all.iter().map(|members| part(members).text.as_str());
        parts.filter(|text| !text.is_empty()).collect::<Vec<&str>>().join(",")
    };
    format!(
        "{},\"paths\":{{{}}},\"definitions\":{{{}}},\"parameters\":{{{}}}}}",
        head().to_string().trim_end_matches('}'),
        join(|members| &members.paths),
        join(|members| &members.definitions),
        join(|members| &members.parameters)
    )
}

/// The whole document as protobuf.
pub(super) fn message(all: &[&Members]) -> Vec<u8> {
    let join = |part: fn(&Members) -> &Part| -> Vec<u8> {
        all.iter().flat_map(|members| part(members).entries.iter().copied()).collect()
    };
    protobuf::document(
        &head(),
        &join(|members| &members.paths),
        &join(|members| &members.definitions),
        &join(|members| &members.parameters),
    )
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
