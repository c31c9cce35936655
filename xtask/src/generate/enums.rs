//! The values that fields with few of them can have: kube-apiserver serves them, the published
//! documents leave them out. They are in the Go file that its own documents are made from.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Modules;
use super::openapi::Version;

/// What is said of one field.
struct Listed {
    description: Option<String>,
    /// Where below the property the values belong: itself, or its items.
    place: &'static str,
    values: Value,
}

/// Adds the values, and their descriptions, to the documents.
pub(crate) fn add(modules: &Modules, versions: &mut [Version]) -> anyhow::Result<()> {
    let file = "pkg/generated/openapi/zz_generated.openapi.go";
    let path = modules.dir("k8s.io/kubernetes")?.join(file);
    let text = std::fs::read_to_string(&path).context("reading the generated OpenAPI")?;
    let listed = read(&text)?;
    ensure!(!listed.is_empty(), "no enumerated field in {file}");
    for version in versions {
        let Some(schemas) = version.document["components"]["schemas"].as_object_mut() else {
            continue;
        };
        for (name, schema) in schemas {
            let Some(fields) = function(name).and_then(|name| listed.get(&name)) else { continue };
            for (field, listed) in fields {
                let Some(property) = schema["properties"].get_mut(field) else { continue };
                if let Some(description) = &listed.description {
                    property["description"] = description.as_str().into();
                }
                if let Some(place) = property.pointer_mut(listed.place) {
                    place["enum"] = listed.values.clone();
                }
            }
        }
    }
    Ok(())
}

/// The Go function that makes the type of that published name.
fn function(name: &str) -> Option<String> {
    let short = |path: &str| path.replace(['.', '-'], "_");
    if let Some(rest) = name.strip_prefix("io.k8s.api.") {
        return Some(format!("schema_k8sio_api_{}", short(rest)));
    }
    let (_, rest) = name.split_once(".pkg.apis.")?;
    Some(format!("schema_pkg_apis_{}", short(rest)))
}

/// The enumerated fields by function and name.
fn read(text: &str) -> anyhow::Result<BTreeMap<String, BTreeMap<String, Listed>>> {
    let mut found: BTreeMap<String, BTreeMap<String, Listed>> = BTreeMap::new();
    let (mut function, mut field) = (String::new(), String::new());
    let (mut description, mut place) = (None, "");
    for line in text.lines() {
        let code = line.trim_start_matches('\t');
        let depth = line.len() - code.len();
        if let Some(rest) = line.strip_prefix("func ") {
            function = rest.split('(').next().unwrap_or_default().to_owned();
        } else if depth == 5 && code.starts_with('"') {
            field = code.split('"').nth(1).unwrap_or_default().to_owned();
            (description, place) = (None, "");
        } else if let (7, Some(words)) = (depth, code.strip_prefix("Description: ")) {
            description = serde_json::from_str(words.trim_end_matches(',')).ok();
        } else if code.starts_with("Items: ") {
            place = "/items";
        } else if code.starts_with("AdditionalProperties: ") {
            place = "/additionalProperties";
        } else if let Some(values) = code.strip_prefix("Enum:") {
            let values = values.trim().trim_start_matches("[]interface{}{").trim_end_matches("},");
            let values = serde_json::from_str(&format!("[{values}]"))
                .with_context(|| format!("the values of {field} in {function}"))?;
            let listed = Listed { description: description.take(), place, values };
            found.entry(function.clone()).or_default().insert(field.clone(), listed);
        }
    }
    Ok(found)
}
